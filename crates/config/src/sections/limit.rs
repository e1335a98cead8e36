//! A limit: the requests that it applies to, its bucket key and its amount.

// A new algorithm is an error here, and not a guess.
#![deny(clippy::wildcard_enum_match_arm)]

use super::band;
use super::block;
use super::calendar;
use super::concurrent;
use super::condition;
use super::descriptor;
use super::key;
use super::mode;
use super::naming::KeyNamer;
use super::planned;
use super::respond;
use super::template;
use super::unlimited_words;
use super::waiting;
use super::warn;
use crate::language::names::DistinctNames;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::table::FieldReader;
use crate::language::words::{
    ALGORITHM, ALIGN, CHARGE, COMBINE, FLAG, MISSING, ON_CHANGE, ON_FAILURE,
};
use crate::tables::LIMIT;
use std::time::Duration;
use tidegate_core::{Algorithm, LimitMode, OnChange};
use tidegate_policy::band::BandDefaults;
use tidegate_policy::calendar::CalendarLevel;
use tidegate_policy::limit::{
    Band, ChargeTime, Condition, KeyPart, Limit, MissingIdentity, WaitRules,
};
use tidegate_policy::plan::PlannedRate;
use tidegate_policy::plan_source::PlanSource;
use tidegate_policy::policy::Evaluate;
use tidegate_policy::respond::RefusalLayer;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::unit::Unit;

/// Settings that all limits of a policy share.
pub(crate) struct LimitScope<'a> {
    pub(crate) names: DistinctNames,
    pub(crate) naming: &'a mut KeyNamer,
    /// The refusal settings of the policy.
    pub(crate) refusal: &'a RefusalLayer,
    /// The evaluation mode of the policy.
    pub(crate) evaluate: Evaluate,
    /// The sources of rates that are not written in the configuration.
    pub(crate) plans: &'a [PlanSource],
    /// True if the policy takes reservations.
    pub(crate) reserves: bool,
    /// The default of `charge` for its limits.
    pub(crate) charge: ChargeTime,
    /// The calendar of its windows.
    pub(crate) calendar: CalendarLevel,
}

/// Reads a limit.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    around: &mut LimitScope<'_>,
) -> Option<Limit> {
    let fields = reader.fields(value, &LIMIT)?;
    let name = fields
        .get("name")
        .and_then(|value| around.names.read(reader, &value));
    let mode = mode::read_of_limit(reader, &fields);
    let conditions = conditions(reader, &fields);
    let key = key(reader, &fields, &conditions);
    let missing = reader.setting(&fields, "missing", |word| MISSING.parse(word));
    let combines_any = combines_any(reader, &fields, around.evaluate, missing);
    let on_failure = reader.setting(&fields, "on_failure", |word| ON_FAILURE.parse(word));
    let refusal = fields
        .get("respond")
        .and_then(|value| respond::read_refusal(reader, &value, around.refusal));
    let written = fields
        .get("template")
        .and_then(|value| Some((template::read(reader, &value)?, value)));
    let unit = unit(reader, &fields);
    let counted = counted(reader, &fields, around, (mode.mode, unit.as_ref()));
    let warns_at = warn::read(reader, &fields);
    let limit = Limit {
        name: name?,
        enabled: mode.enabled,
        conditions,
        key,
        missing: missing.unwrap_or_default(),
        bands: counted.bands,
        unit: unit.unwrap_or_default(),
        algorithm: counted.algorithm,
        mode: mode.mode,
        shadowed: false,
        // A limit in shadow mode never refuses, so it does not take part.
        quota_mode: combines_any && mode.mode == LimitMode::Enforce,
        // Filled in once all limits are read.
        replaces: Vec::new(),
        charge: counted.charge,
        waiting: counted.waiting,
        block: counted.block,
        refundable: counted.refundable,
        hold: counted.hold,
        on_failure,
        refusal,
        template: None,
        plan: counted.plan,
        warn: warns_at.unwrap_or_default(),
    };
    planned::check(reader, &fields, &limit, around.plans);
    calendar::check(reader, &fields, &limit);
    if limit.is_unlimited() && unlimited_words::is_unlimited(reader, &fields) {
        return Some(without_buckets(reader, &fields, around.evaluate, limit));
    }
    refuse_scaled(reader, &fields, &limit, around.naming);
    let template = around.naming.template(reader, value, &limit, written);
    Some(Limit { template, ..limit })
}

/// Reads the unit; `None` if it is invalid.
fn unit(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<Unit> {
    let Some(value) = fields.get("unit") else {
        return Some(Unit::default());
    };
    reader.parse(&value, Unit::parse)
}

/// Reads `match`: without it, every request matches.
fn conditions(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Vec<Condition> {
    match fields.get("match") {
        Some(value) => condition::read_all(reader, &value),
        None => Vec::new(),
    }
}

/// Removes the key from an unlimited limit, which has no buckets, and warns about its settings that then
/// have no effect.
fn without_buckets(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    evaluate: Evaluate,
    limit: Limit,
) -> Limit {
    unlimited_words::warn_in_vain(reader, fields, evaluate, &limit);
    Limit {
        key: vec![KeyPart::Global],
        ..limit
    }
}

/// Reads the bucket key.
fn key(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    conditions: &[Condition],
) -> Vec<KeyPart> {
    let key = match fields.get("key") {
        Some(value) => {
            let key = key::read(reader, &value);
            descriptor::check_key(reader, &value, &key, conditions);
            key
        }
        None => vec![KeyPart::Global],
    };
    if !unlimited_words::is_unlimited(reader, fields) {
        warn_about_missing(reader, fields, &key);
    }
    key
}

/// Reads `combine`: true if one limit of several that allows is enough.
fn combines_any(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    evaluate: Evaluate,
    missing: Option<MissingIdentity>,
) -> bool {
    let any = reader.setting(fields, "combine", |word| COMBINE.parse(word));
    let Some(value) = fields.get("combine").filter(|_| any == Some(true)) else {
        return false;
    };
    if evaluate != Evaluate::Each {
        let fault = ConfigFault::new("`combine: any` needs `evaluate: each`");
        let help = "set `evaluate: each` in the policy, or remove `combine`";
        reader.error(value.spot(), fault.help(help));
    }
    if let (Some(MissingIdentity::Refuse), Some(value)) = (missing, fields.get("missing")) {
        let fault = ConfigFault::new("`combine: any` cannot refuse requests by one limit alone");
        let help = "use `missing: skip` or `missing: address`, or remove `combine: any`";
        reader.error(value.spot(), fault.help(help));
    }
    true
}

/// The counting rules of a limit.
#[derive(Default)]
struct LimitCounting {
    bands: Vec<Band>,
    plan: Option<PlannedRate>,
    algorithm: Algorithm,
    charge: ChargeTime,
    waiting: Option<WaitRules>,
    block: Option<Band>,
    refundable: bool,
    hold: Option<Duration>,
}

fn counted(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    around: &LimitScope<'_>,
    (mode, unit): (LimitMode, Option<&Unit>),
) -> LimitCounting {
    if unlimited_words::is_unlimited(reader, fields) {
        unlimited_words::check(reader, fields);
        return LimitCounting::default();
    }
    let terms = (mode, around.evaluate, around.reserves);
    if let Some(in_flight) = concurrent::read(reader, fields, terms) {
        return LimitCounting {
            bands: in_flight.band.into_iter().collect(),
            algorithm: Algorithm::Concurrent,
            charge: ChargeTime::InFlight,
            waiting: in_flight.waiting,
            hold: in_flight.hold,
            ..LimitCounting::default()
        };
    }
    let charge = reader.setting(fields, "charge", |word| CHARGE.parse(word));
    let charge = charge.unwrap_or(around.charge);
    let algorithm = algorithm(reader, fields);
    let overdraft = overdraft(reader, fields, charge, around.reserves);
    let waiting = waiting::read(reader, fields, mode, charge, around.evaluate);
    let refundable = reader.setting(fields, "refundable", |word| FLAG.parse(word));
    let counting = BandDefaults {
        algorithm,
        overdraft,
        refundable: refundable.unwrap_or(false),
        on_change: on_change(reader, fields, algorithm),
        max_wait: waiting.map(|waiting| waiting.max_wait),
        calendar: calendar::of_limit(reader, fields, around.calendar),
    };
    let (bands, plan) = match planned::read(reader, fields, (counting, unit), around.plans) {
        Some((bands, plan)) => (bands, plan),
        None => (band::read_all(reader, fields, counting), None),
    };
    LimitCounting {
        algorithm: match plan {
            // Its rates may have any period.
            Some(_) => algorithm,
            None => calendar::algorithm(reader, fields, &bands, algorithm),
        },
        bands,
        plan,
        charge,
        waiting,
        block: block::read(reader, fields, waiting.is_some()),
        refundable: counting.refundable,
        hold: None,
    }
}

/// Reads the algorithm and the alignment of its windows.
fn algorithm(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Algorithm {
    let written = reader.setting(fields, "algorithm", |word| ALGORITHM.parse(word));
    let algorithm = written.unwrap_or_default();
    let Some(value) = fields.get("align") else {
        return algorithm;
    };
    let align = reader.parse(&value, |word| ALIGN.parse(word));
    match (algorithm, align) {
        (Algorithm::FixedWindow(_), Some(Some(align))) => Algorithm::FixedWindow(align),
        // Windows of the calendar are always fixed windows. For other bands,
        // `calendar::algorithm` reports an alignment that does not fit.
        _ => algorithm,
    }
}

/// Reads the effect of changed numbers on buckets.
fn on_change(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    algorithm: Algorithm,
) -> OnChange {
    let on_change = reader.setting(fields, "on_change", |word| ON_CHANGE.parse(word));
    match (on_change, fields.get("on_change")) {
        (Some(OnChange::Scale), Some(value)) if algorithm.is_log() => {
            let fault = ConfigFault::new("`on_change: scale` is not supported by this algorithm");
            let help = "use `on_change: keep` or `on_change: reset`, or `algorithm: token-bucket`, `fixed-window` or `sliding-window`";
            reader.error(value.spot(), fault.help(help));
            OnChange::Keep
        }
        (on_change, _) => on_change.unwrap_or_default(),
    }
}

/// Reports `on_change: scale` in the open layout, whose documents do not record the total that a value
/// is a share of.
fn refuse_scaled(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    limit: &Limit,
    naming: &KeyNamer,
) {
    if let (OnChange::Scale, Some(value)) = (limit.on_change(), fields.get("on_change"))
        && naming.is_open(limit)
    {
        let fault = ConfigFault::new("`on_change: scale` is not supported by `layout: open`");
        let help =
            "use `on_change: keep` or `on_change: reset`, or `layout: packed` in `store.redis`";
        reader.error(value.spot(), fault.help(help));
    }
}

/// Reads the overdraft: how far below empty charges may go. `None` is the amount of each band.
fn overdraft(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    charge: ChargeTime,
    reserves: bool,
) -> Option<u64> {
    let Some(value) = fields.get("overdraft") else {
        return (charge != ChargeTime::EvenIfRefused).then_some(0);
    };
    if charge == ChargeTime::IfFits && !reserves {
        let fault = ConfigFault::new(
            "`overdraft` has no effect unless a cost is always charged or the policy has `reserve`",
        );
        let fault = fault.help("add `charge: always`, or remove `overdraft`");
        reader.error(value.key_spot(), fault);
    }
    let overdraft = reader.parse(&value, |text| whole(text, &(0..=u64::MAX)));
    Some(overdraft.unwrap_or(0))
}

fn warn_about_missing(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>, key: &[KeyPart]) {
    if let (Some(value), [KeyPart::Global]) = (fields.get("missing"), key) {
        let fault = ConfigFault::new("`missing` has no effect: `key: global` needs no identity")
            .help("remove it, or set `key`");
        reader.warn(value.key_spot(), fault);
    }
}

#[cfg(test)]
mod tests {
    use super::{ALGORITHM, Algorithm};
    use crate::language::words::Vocabulary;
    use tidegate_core::Align;

    #[test]
    fn every_algorithm_has_a_name() {
        for algorithm in Algorithm::RATES {
            // The alignment of a fixed window is a separate field.
            let is_fixed = matches!(
                algorithm,
                Algorithm::FixedWindow(_) | Algorithm::CalendarWindow
            );
            let named = if is_fixed {
                Algorithm::FixedWindow(Align::FirstRequest)
            } else {
                algorithm
            };
            let words = ALGORITHM.list();
            let mut meanings = words.iter().filter_map(|word| ALGORITHM.get(word));
            assert!(meanings.any(|it| it == named), "{algorithm:?}");
        }
    }
}
