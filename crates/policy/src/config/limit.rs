//! A limit: the requests that it applies to, its bucket key and its amount.

use super::band::{self, BandDefaults};
use super::block;
use super::condition;
use super::descriptor;
use super::fault::ConfigFault;
use super::fields::LIMIT;
use super::key;
use super::naming::KeyNamer;
use super::planned;
use super::policy::DistinctNames;
use super::reader::{ConfigReader, ConfigValue};
use super::respond;
use super::scalar::whole;
use super::table::FieldReader;
use super::template;
use super::unlimited;
use super::waiting;
use super::warn;
use super::words::{ALGORITHM, ALIGN, CHARGE, FLAG, MISSING, MODE, ON_CHANGE, ON_FAILURE};
use crate::limit::{Band, ChargeTime, Condition, Evaluate, KeyPart, Limit, Missing, WaitRules};
use crate::plan::{PlanSource, PlannedRate};
use crate::respond::RefusalLayer;
use tidegate_core::{Algorithm, LimitMode, OnChange};

/// Settings that all limits of a policy share.
pub(super) struct LimitScope<'a> {
    pub(super) names: DistinctNames,
    pub(super) naming: &'a mut KeyNamer,
    /// The refusal settings of the policy.
    pub(super) refusal: &'a RefusalLayer,
    /// The evaluation mode of the policy.
    pub(super) evaluate: Evaluate,
    /// The sources of rates that are not written in the configuration.
    pub(super) plans: &'a [PlanSource],
    /// True if the policy takes reservations.
    pub(super) reserves: bool,
    /// The default of `charge` for its limits.
    pub(super) charge: ChargeTime,
}

/// Reads a limit.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    around: &mut LimitScope<'_>,
) -> Option<Limit> {
    let fields = reader.fields(value, &LIMIT)?;
    let name = fields
        .get("name")
        .and_then(|value| around.names.read(reader, &value));
    let enabled = reader.setting(&fields, "enabled", |word| FLAG.parse(word));
    let conditions = match fields.get("match") {
        Some(value) => condition::read_all(reader, &value),
        None => Vec::new(),
    };
    let key = key(reader, &fields, &conditions);
    let missing = reader.setting(&fields, "missing", |word| MISSING.parse(word));
    let (mode, quota_mode) = mode(reader, &fields, around.evaluate, missing);
    let on_failure = reader.setting(&fields, "on_failure", |word| ON_FAILURE.parse(word));
    let refusal = fields
        .get("respond")
        .and_then(|value| respond::read_refusal(reader, &value, around.refusal));
    let written = fields
        .get("template")
        .and_then(|value| Some((template::read(reader, &value)?, value)));
    let counted = counted(reader, &fields, around, mode);
    let warns_at = warn::read(reader, &fields);
    let limit = Limit {
        name: name?,
        enabled: enabled.unwrap_or(true),
        conditions,
        key,
        missing: missing.unwrap_or_default(),
        bands: counted.bands,
        algorithm: counted.algorithm,
        mode,
        shadowed: false,
        quota_mode,
        // Filled in once all limits are read.
        replaces: Vec::new(),
        charge: counted.charge,
        waiting: counted.waiting,
        block: counted.block,
        refundable: counted.refundable,
        on_failure,
        refusal,
        template: None,
        plan: counted.plan,
        warn: warns_at,
    };
    planned::check(reader, &fields, &limit, around.plans);
    if limit.is_unlimited() && unlimited::is_unlimited(reader, &fields) {
        unlimited::warn_in_vain(reader, &fields, around.evaluate, &limit);
        return Some(Limit {
            key: vec![KeyPart::Global],
            ..limit
        });
    }
    refuse_scaled(reader, &fields, &limit, around.naming);
    let template = around.naming.template(reader, value, &limit, written);
    Some(Limit { template, ..limit })
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
    if !unlimited::is_unlimited(reader, fields) {
        warn_about_missing(reader, fields, &key);
    }
    key
}

/// Reads the mode: enforced, shadow, or one of several quotas.
fn mode(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    evaluate: Evaluate,
    missing: Option<Missing>,
) -> (LimitMode, bool) {
    let word = reader.setting(fields, "mode", |word| MODE.parse(word));
    let (mode, is_quota) = word.unwrap_or_default();
    let Some(value) = fields.get("mode").filter(|_| is_quota) else {
        return (mode, false);
    };
    if evaluate != Evaluate::Each {
        let fault = ConfigFault::new("`mode: quota` needs limits that count apart from each other");
        let help = "use `evaluate: each` in the policy, or remove `mode`";
        reader.error(value.spot(), fault.help(help));
    }
    if let (Some(Missing::Refuse), Some(value)) = (missing, fields.get("missing")) {
        let fault = ConfigFault::new("one quota of several refuses nobody by itself");
        let help = "use `missing: skip` or `missing: address`, or remove `mode: quota`";
        reader.error(value.spot(), fault.help(help));
    }
    (mode, true)
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
}

fn counted(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    around: &LimitScope<'_>,
    mode: LimitMode,
) -> LimitCounting {
    if unlimited::is_unlimited(reader, fields) {
        unlimited::check(reader, fields);
        return LimitCounting::default();
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
    };
    let (bands, plan) = match planned::read(reader, fields, counting, around.plans) {
        Some((bands, plan)) => (bands, plan),
        None => (band::read_all(reader, fields, counting), None),
    };
    LimitCounting {
        bands,
        plan,
        algorithm,
        charge,
        waiting,
        block: block::read(reader, fields, waiting.is_some()),
        refundable: counting.refundable,
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
        (Algorithm::FixedWindow(_), Some(align)) => Algorithm::FixedWindow(align),
        // If the algorithm is invalid, do not report the alignment as well.
        (_, Some(_)) if written.is_some() || fields.get("algorithm").is_none() => {
            let fault = ConfigFault::new("only fixed windows can be aligned")
                .help("add `algorithm: fixed-window`, or remove `align`");
            reader.error(value.key_spot(), fault);
            algorithm
        }
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
    let is_log = matches!(algorithm, Algorithm::SlidingLog | Algorithm::BucketedWindow);
    match (on_change, fields.get("on_change")) {
        (Some(OnChange::Scale), Some(value)) if is_log => {
            let fault =
                ConfigFault::new("the algorithm remembers single units, which cannot be scaled");
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
        let fault =
            ConfigFault::new("the open layout does not remember of what a bucket was a share");
        let help = "use `on_change: keep` or `on_change: reset`, or `layout: packed` in `store`";
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
        let fault =
            ConfigFault::new("`missing` has no effect: one bucket for all needs no identity")
                .help("remove it, or say whose bucket with `key`");
        reader.warn(value.key_spot(), fault);
    }
}

#[cfg(test)]
mod tests {
    use super::{ALGORITHM, Algorithm};
    use crate::config::words::Vocabulary;
    use tidegate_core::Align;

    #[test]
    fn every_algorithm_has_a_word() {
        for algorithm in Algorithm::ALL {
            // The alignment of a fixed window is a separate field.
            let named = match algorithm {
                Algorithm::FixedWindow(_) => Algorithm::FixedWindow(Align::FirstRequest),
                other => other,
            };
            let words = ALGORITHM.list();
            let mut meanings = words.iter().filter_map(|word| ALGORITHM.get(word));
            assert!(meanings.any(|it| it == named), "{algorithm:?}");
        }
    }
}
