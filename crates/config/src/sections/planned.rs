//! `rate: { plan: … }`: a rate that a plan sets.
//!
//! Such a limit has no rate in the configuration. Its plan source, its subject and its default are checked
//! here: the source must exist, and the subject must be a key part that is a single text.

use super::band;
use super::key;
use super::plans;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::table::FieldReader;
use crate::language::words::OF;
use crate::syntax::NodeKind;
use crate::tables::PLANNED;
use tidegate_policy::band::BandDefaults;
use tidegate_policy::limit::{Band, KeyPart, Limit};
use tidegate_policy::plan::{LABEL, PlanRate, PlannedRate, RateName, RateOwner, UnknownSubject};
use tidegate_policy::plan_source::PlanSource;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::closest;
use tidegate_policy::unit::Unit;

/// Reads a rate that is a map with fields of a plan; `None` for any other rate. If the map is invalid,
/// the plan is `None`.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    (counting, unit): (BandDefaults, Option<&Unit>),
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
    let plan = planned(reader, &value, (counting, unit), sources, &mut bands);
    Some((bands, plan))
}

fn planned(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    (counting, unit): (BandDefaults, Option<&Unit>),
    sources: &[PlanSource],
    bands: &mut Vec<Band>,
) -> Option<PlannedRate> {
    let fields = reader.fields(value, &PLANNED)?;
    let source = reader.setting(&fields, "plan", |name| find(name, sources));
    let subject = reader.setting(&fields, "subject", subject);
    let of = reader.setting(&fields, "of", |word| OF.parse(word));
    let name = rate_name(reader, &fields, unit, source.and_then(|it| sources.get(it)));
    let unknown = fields
        .get("default")
        .and_then(|value| unknown(reader, &value, counting, bands));
    let sample = PlanRate::parse("1/s");
    Some(PlannedRate {
        source: source?,
        name: name?,
        subject: subject?,
        of: of.unwrap_or_default(),
        unknown: unknown?,
        counting,
        // An error in the default rate is already reported.
        sample: sample
            .ok()
            .and_then(|rate| rate.band(LABEL, counting).ok())
            .map(Box::new),
        lends: false,
    })
}

/// Reads the name of the rate, which is that of the limit's unit unless it is written. The source must have it.
fn rate_name(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    unit: Option<&Unit>,
    source: Option<&PlanSource>,
) -> Option<RateName> {
    let written = fields.get("name");
    let name = match &written {
        Some(value) => reader.parse(value, RateName::parse)?,
        // An error in the unit is already reported, like one in the source.
        None => RateName::from(unit?.clone()),
    };
    let (source, spot) = (source?, written.or_else(|| fields.get("plan"))?);
    let known = &source.terms.rates;
    if name.is_requests() || known.contains(&name) {
        return Some(name);
    }
    let message = format!("the plans `{}` have no rate `{name}`", source.name);
    let help = match closest(name.as_str(), known.iter().map(RateName::as_str)) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("add it to them: `rates: [{name}]`"),
    };
    reader.error(spot.spot(), ConfigFault::new(message).help(help));
    None
}

fn find(name: &str, sources: &[PlanSource]) -> Result<usize, ConfigFault> {
    if let Some(number) = sources.iter().position(|it| it.name == name) {
        return Ok(number);
    }
    let names = sources.iter().map(|it| it.name.as_str());
    let fault = ConfigFault::new(format!("unknown plan source {}", ConfigFault::quote(name)));
    Err(fault.help(match closest(name, names.clone()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None if sources.is_empty() => {
            format!("add one: `plans: [{{ name: {name}, file: plans.yaml }}]`")
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
                "{} cannot be the subject of a plan",
                ConfigFault::quote(text)
            ));
            Err(fault.help(
                "use an identity that the source lists, for example `attr:project`, \
                `user` or `api-key`",
            ))
        }
        part => Ok(part),
    }
}

fn unknown(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
    bands: &mut Vec<Band>,
) -> Option<UnknownSubject> {
    let word = reader.text(value)?;
    match word.trim() {
        "unlimited" => return Some(UnknownSubject::Unlimited),
        "refuse" => return Some(UnknownSubject::Refuse),
        "skip" => return Some(UnknownSubject::Skip),
        _ => {}
    }
    let rate = reader.parse(value, |text| {
        if let Some(meant) = closest(text, ["unlimited", "refuse", "skip"]) {
            let fault = ConfigFault::new(format!("{} is not a rate", ConfigFault::quote(text)));
            return Err(fault.help(format!("did you mean `{meant}`?")));
        }
        PlanRate::parse(text)
    })?;
    // Report errors as for any other rate, then build the band again under the label that all bands of
    // plans share.
    band::from_text(reader, value, counting)?;
    let band = rate.band(LABEL, counting).ok()?;
    bands.push(Band {
        text: word.trim().to_owned(),
        ..band
    });
    Some(UnknownSubject::Band)
}

/// Reports settings that only a plan supports, and warns if subjects with different rates share a
/// bucket.
pub(crate) fn check(
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
            let fault = ConfigFault::new("`group` needs a plan");
            let help = "write `rate: { plan: NAME, subject: attr:project, of: group, default: unlimited }`";
            reader.error(key.spot(), fault.help(help));
        }
        Some(plan) if !has_group && !limit.key.contains(&plan.subject) => {
            warn_shared(reader, &key, plan);
        }
        Some(plan)
            if has_group && plan.of == RateOwner::Subject && !limit.key.contains(&plan.subject) =>
        {
            let fault = ConfigFault::new(
                "subjects of a group would share a bucket, each at a different \
                    rate",
            );
            reader.warn(
                key.spot(),
                fault.help("use `of: group` in `rate`, or add the subject to the key"),
            );
        }
        _ => {}
    }
    if let (true, Some(UnknownSubject::Refuse)) =
        (limit.quota_mode, limit.plan.as_ref().map(|it| it.unknown))
        && let Some(value) = fields.get("rate")
    {
        let fault = ConfigFault::new("`combine: any` cannot refuse requests by one limit alone");
        reader.error(
            value.key_spot(),
            fault.help("use another `default`, or remove `combine: any`"),
        );
    }
}

fn is_map(value: &ConfigValue<'_>) -> bool {
    matches!(value.node.kind, NodeKind::Map(_))
}

fn warn_shared(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>, plan: &PlannedRate) {
    let fault = ConfigFault::new(
        "subjects with different rates would share a bucket: the key does not contain the subject",
    );
    let part = match plan.of {
        RateOwner::Subject => tidegate_policy::slot_group::part_as_written(&plan.subject),
        RateOwner::Group => "group".to_owned(),
    };
    reader.warn(value.spot(), fault.help(format!("write `key: {part}`")));
}
