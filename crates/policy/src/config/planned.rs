//! `rate: { plan: … }`: a rate that a plan sets.

use super::band::{self, BandDefaults};
use super::fault::ConfigFault;
use super::fields::{optional, required};
use super::key;
use super::plans;
use super::reader::{ConfigReader, ConfigValue};
use super::suggest::closest;
use super::syntax::NodeKind;
use super::table::Shape::{Text, Word};
use super::table::{FieldReader, FieldTable};
use super::words::OF;
use crate::limit::{Band, KeyPart, Limit};
use crate::plan::{LABEL, PlanRate, PlanSource, PlannedRate, RateOwner, Unknown};

/// The fields of a rate that a plan sets.
pub(super) static PLANNED: FieldTable = FieldTable {
    what: "rate from a plan",
    fields: &[
        required("plan", Text("events"), "The source, one of `plans`."),
        required(
            "subject",
            Text("attr:project"),
            "Whose rate it is: user, api-key, header:NAME, attr:NAME or another single word of `key`.",
        ),
        optional(
            "of",
            Word(&OF),
            "`group`: the quota of the group that the subject belongs to; `subject` unless told.",
        ),
        required(
            "default",
            Text("100/min"),
            "What a subject has that the source does not know: a rate, `unlimited` or `refuse`; or `skip`: the limit does not apply to it.",
        ),
    ],
    exactly_one: &[],
};

/// Reads a rate that is a map with fields of a plan; `None` for any other rate. If the map is invalid,
/// the plan is `None`.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    counting: BandDefaults,
    sources: &[PlanSource],
) -> Option<(Vec<Band>, Option<PlannedRate>)> {
    let value = fields.get("rate")?;
    let mut known = PLANNED.fields.iter();
    if !is_map(&value) || !known.any(|field| value.node.get(field.name).is_some()) {
        return None;
    }
    if let Some(burst) = fields.get("burst") {
        let fault = ConfigFault::new("`burst` has no effect: the plan sets the burst of each rate");
        let help = "remove it; for `default`, write `default: 10/s burst 50`";
        reader.error(burst.key_spot(), fault.help(help));
    }
    let mut bands = Vec::new();
    let plan = planned(reader, &value, counting, sources, &mut bands);
    Some((bands, plan))
}

fn planned(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
    sources: &[PlanSource],
    bands: &mut Vec<Band>,
) -> Option<PlannedRate> {
    let fields = reader.fields(value, &PLANNED)?;
    let source = reader.setting(&fields, "plan", |name| find(name, sources));
    let subject = reader.setting(&fields, "subject", subject);
    let of = reader.setting(&fields, "of", |word| OF.parse(word));
    let unknown = fields
        .get("default")
        .and_then(|value| unknown(reader, &value, counting, bands));
    let sample = PlanRate {
        amount: 1,
        period_us: 1_000_000,
        burst: None,
        block_us: None,
    };
    Some(PlannedRate {
        source: source?,
        subject: subject?,
        of: of.unwrap_or_default(),
        unknown: unknown?,
        counting,
        // An error in the default rate is already reported.
        sample: band::build_planned(sample, LABEL, counting)
            .ok()
            .map(Box::new),
        lends: false,
    })
}

fn find(name: &str, sources: &[PlanSource]) -> Result<usize, ConfigFault> {
    if let Some(number) = sources.iter().position(|it| it.name == name) {
        return Ok(number);
    }
    let names = sources.iter().map(|it| it.name.as_str());
    let fault = ConfigFault::new(format!(
        "there is no source of plans {}",
        ConfigFault::quote(name)
    ));
    Err(fault.help(match closest(name, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if sources.is_empty() => {
            format!("add one: `plans: [{{ name: {name}, from: {{ file: plans.yaml }} }}]`")
        }
        None => {
            let names: Vec<String> = names.map(ConfigFault::quote).collect();
            format!("expected {}", names.join(" or "))
        }
    }))
}

/// Reads the subject of a rate. It must be a key part that is a single text.
fn subject(text: &str) -> Result<KeyPart, ConfigFault> {
    let part = key::part(text)?;
    match part {
        KeyPart::Ip | KeyPart::Descriptor | KeyPart::Group | KeyPart::Global => {
            let fault = ConfigFault::new(format!(
                "no plan knows a subject by {}",
                ConfigFault::quote(text)
            ));
            Err(fault.help("use what a request is known by in the source, for example `attr:project`, `user` or `api-key`"))
        }
        part => Ok(part),
    }
}

fn unknown(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
    bands: &mut Vec<Band>,
) -> Option<Unknown> {
    let word = reader.text(value)?;
    match word.trim() {
        "unlimited" => return Some(Unknown::Unlimited),
        "refuse" => return Some(Unknown::Refuse),
        "skip" => return Some(Unknown::Skip),
        _ => {}
    }
    let rate = reader.parse(value, |text| {
        if let Some(meant) = closest(text, ["unlimited", "refuse", "skip"]) {
            let fault = ConfigFault::new(format!("{} is not a rate", ConfigFault::quote(text)));
            return Err(fault.help(format!("did you mean `{meant}`?")));
        }
        super::rate::parse(text)
    })?;
    let rate = PlanRate {
        amount: rate.amount,
        period_us: rate.period_us,
        burst: rate.burst,
        block_us: None,
    };
    // Report errors as for any other rate, then build the band again under the label that all bands of
    // plans share.
    band::from_text(reader, value, counting)?;
    let band = band::build_planned(rate, LABEL, counting).ok()?;
    bands.push(Band {
        text: word.trim().to_owned(),
        ..band
    });
    Some(Unknown::Band)
}

/// Reports settings that only a plan supports, and warns if subjects with different rates share a
/// bucket.
pub(super) fn check(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    limit: &Limit,
    sources: &[PlanSource],
) {
    if let Some(value) = fields.get("rate") {
        plans::check_inline(reader, &value, limit, sources);
    }
    let has_group = limit.key.contains(&KeyPart::Group);
    let Some(key) = fields.get("key") else {
        if let (Some(plan), Some(value)) = (&limit.plan, fields.get("rate")) {
            warn_shared(reader, &value, plan);
        }
        return;
    };
    match &limit.plan {
        None if has_group && fields.get("rate").is_none_or(|it| !is_map(&it)) => {
            let fault =
                ConfigFault::new("`group` is the group of a plan's subject, and there is no plan");
            let help = "write `rate: { plan: NAME, subject: attr:project, of: group, default: unlimited }`";
            reader.error(key.spot(), fault.help(help));
        }
        Some(plan) if !has_group && !limit.key.contains(&plan.subject) => {
            warn_shared(reader, &key, plan);
        }
        Some(plan)
            if has_group && plan.of == RateOwner::Subject && !limit.key.contains(&plan.subject) =>
        {
            let fault =
                ConfigFault::new("all subjects of a group share a bucket, each at its own rate");
            reader.warn(
                key.spot(),
                fault.help("use `of: group` in `rate`, or add the subject to the key"),
            );
        }
        _ => {}
    }
    if let (true, Some(Unknown::Refuse)) =
        (limit.quota_mode, limit.plan.as_ref().map(|it| it.unknown))
        && let Some(value) = fields.get("rate")
    {
        let fault = ConfigFault::new("one quota of several refuses nobody by itself");
        reader.error(
            value.key_spot(),
            fault.help("use another `default`, or remove `mode: quota`"),
        );
    }
}

fn is_map(value: &ConfigValue<'_>) -> bool {
    matches!(value.node.kind, NodeKind::Map(_))
}

fn warn_shared(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>, plan: &PlannedRate) {
    let fault = ConfigFault::new(
        "subjects with rates of their own share a bucket: the key tells them not apart",
    );
    let part = match plan.of {
        RateOwner::Subject => crate::group::part_as_written(&plan.subject),
        RateOwner::Group => "group".to_owned(),
    };
    reader.warn(value.spot(), fault.help(format!("write `key: {part}`")));
}
