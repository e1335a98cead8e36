//! `rate` and `bands`: the amount a limit allows.

use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::{name, whole};
use crate::language::table::FieldReader;
use crate::syntax::NodeKind;
use crate::tables::{BAND, BANDS_MAX};
use tidegate_policy::band::{Band, BandDefaults, build};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::rate;

/// Reads `rate` or `bands`.
pub(crate) fn read_all(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    counting: BandDefaults,
) -> Vec<Band> {
    let burst = burst(reader, fields);
    if let Some(value) = fields.get("rate") {
        let band = match value.node.kind {
            NodeKind::Map(_) => rate_as_map(reader, &value),
            _ => from_parts(reader, &value, burst, None, counting),
        };
        return band.into_iter().collect();
    }
    let Some(value) = fields.get("bands") else {
        return Vec::new();
    };
    if let Some((_, burst)) = burst {
        let fault = ConfigFault::new("`burst` is for `rate`, and this limit has `bands`");
        let help = "write it in the band, for example `bands: [10/s burst 50, 1000/h]`";
        reader.error(burst.key_spot(), fault.help(help));
    }
    let items = reader.list(&value);
    if items.len() > BANDS_MAX {
        let fault = ConfigFault::new(format!("a limit has at most {BANDS_MAX} bands"));
        reader.error(value.key_spot(), fault);
        return Vec::new();
    }
    let mut bands: Vec<Band> = Vec::new();
    for item in &items {
        let band = match item.node.kind {
            NodeKind::Map(_) => from_map(reader, item, counting),
            _ => from_text(reader, item, counting),
        };
        if let Some(band) = band {
            refuse_twin(reader, item, &bands, &band);
            bands.push(band);
        }
    }
    bands
}

/// Reports `rate` written as a map. A map is either a plan, which is read elsewhere, or a misplaced
/// band.
fn rate_as_map(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Band> {
    let fault = ConfigFault::new("`rate` is a map; expected a rate")
        .help("for example `10/s burst 50`; for a label, write it as one of `bands`; for a plan, name it with `plan`");
    reader.error(value.key_spot(), fault);
    None
}

pub(crate) fn from_text(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
) -> Option<Band> {
    from_parts(reader, value, None, None, counting)
}

fn from_map(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    counting: BandDefaults,
) -> Option<Band> {
    let fields = reader.fields(value, &BAND)?;
    let label = reader.setting(&fields, "label", name);
    let burst = burst(reader, &fields);
    from_parts(reader, &fields.get("rate")?, burst, label, counting)
}

/// Reads the field `burst` next to a rate.
fn burst<'v>(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'v>,
) -> Option<(u64, ConfigValue<'v>)> {
    let value = fields.get("burst")?;
    let burst = reader.parse(&value, |text| whole(text, &(0..=u64::MAX)))?;
    Some((burst, value))
}

/// Reads a rate, together with the field `burst` next to it.
fn from_parts(
    reader: &mut ConfigReader<'_>,
    rate_value: &ConfigValue<'_>,
    burst: Option<(u64, ConfigValue<'_>)>,
    label: Option<String>,
    counting: BandDefaults,
) -> Option<Band> {
    let (mut text, mut rate) = reader.parse(rate_value, |text| {
        Ok((text.to_owned(), rate::parse_calendar(text)?))
    })?;
    if let Some((burst, burst_value)) = burst {
        if rate.burst.is_some() {
            let fault = ConfigFault::new("the burst is set twice: in `rate` and as `burst`");
            reader.error(burst_value.key_spot(), fault.help("write one of the two"));
            return None;
        }
        rate.burst = Some(burst);
        text = format!("{text} burst {burst}");
    }
    let band = build(text, rate, label, counting);
    reader.accept(rate_value, band)
}

/// Reports a band with the same identity as an earlier band of the limit. A band's identity is its
/// label, otherwise its period.
fn refuse_twin(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    earlier: &[Band],
    band: &Band,
) {
    let same = |other: &&Band| {
        let same_name = match (&other.label, &band.label) {
            (Some(a), Some(b)) => a == b,
            (None, None) => {
                let calendars = [other, band].map(|it| it.quota.calendar().is_some());
                calendars[0] == calendars[1] && other.quota.period_us() == band.quota.period_us()
            }
            _ => false,
        };
        // The number that identifies a band in every store may collide, however unlikely.
        same_name || other.quota.id() == band.quota.id()
    };
    let Some(twin) = earlier.iter().find(same) else {
        return;
    };
    let what = match (&twin.label, &band.label) {
        (Some(_), Some(_)) => "label",
        _ => "period",
    };
    let message = format!(
        "bands `{}` and `{}` have the same {what}",
        twin.text, band.text
    );
    let help = match what {
        "label" => "give each band a different label".to_owned(),
        _ => format!("add a label: {{ rate: {}, label: NAME }}", band.text),
    };
    reader.error(value.spot(), ConfigFault::new(message).help(help));
}
