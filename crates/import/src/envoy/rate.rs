//! `rate_limit`: the rate, its name and the limits that it replaces.

use super::fields::{EnvoyMap, RATE_LIMIT, REPLACES};
use crate::document::{ImportedFile, line};
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind};

/// A rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EnvoyRate {
    Unlimited,
    Of { amount: u64, unit: &'static str },
}

/// A `rate_limit`.
#[derive(Debug)]
pub(super) struct EnvoyRateLimit {
    pub(super) rate: EnvoyRate,
    pub(super) name: Option<String>,
    /// The names of the limits that do not apply if this one does, with the line of each.
    pub(super) replaces: Vec<(String, usize)>,
}

/// Units, with their spelling in the configuration. Months have 30 days and years 365.
const UNITS: [(&str, &str); 7] = [
    ("second", "s"),
    ("minute", "min"),
    ("hour", "h"),
    ("day", "day"),
    ("week", "week"),
    ("month", "30d"),
    ("year", "365d"),
];

/// Reads a `rate_limit`; `None` if it is empty or invalid.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
) -> Option<EnvoyRateLimit> {
    if let NodeKind::Null = value.node.kind {
        return None;
    }
    let map = EnvoyMap::read(document, value, &RATE_LIMIT)?;
    let unlimited = map.flag(document, "unlimited");
    let amount = map.get("requests_per_unit");
    let number = amount
        .as_ref()
        .and_then(|value| document.number(value, u32::MAX.into()));
    let unit = unit(document, &map, unlimited);
    let name = map.text(document, "name").map(|(name, _)| name);
    let replaces = replaces(document, &map, name.as_deref());
    if amount.is_none() && !unlimited {
        document.warn(
            value.node.place,
            "`requests_per_unit` is missing: all requests are refused, as in envoyproxy/ratelimit",
        );
    }
    let rate = match unit {
        Some(unit) if !unlimited => EnvoyRate::Of {
            amount: number.unwrap_or(0),
            unit,
        },
        _ => EnvoyRate::Unlimited,
    };
    Some(EnvoyRateLimit {
        rate,
        name,
        replaces,
    })
}

/// Reads the unit, which is required unless the limit is unlimited.
fn unit(
    document: &mut ImportedFile<'_>,
    map: &EnvoyMap<'_>,
    unlimited: bool,
) -> Option<&'static str> {
    let written = map.text(document, "unit");
    let name = written.as_ref().map_or("", |(name, _)| name.as_str());
    let known = UNITS
        .iter()
        .find(|(unit, _)| unit.eq_ignore_ascii_case(name));
    let spot = match &written {
        Some((_, value)) => value.spot(),
        None => map.spot(),
    };
    match (known, unlimited) {
        (Some(_), true) => {
            let fault = ConfigFault::new("should not specify rate limit unit when unlimited");
            document.error(spot, fault.help("remove `unit`, or `unlimited`"));
        }
        (None, false) => {
            let units: Vec<&str> = UNITS.iter().map(|(unit, _)| *unit).collect();
            let fault = ConfigFault::new(format!("invalid rate limit unit '{name}'"));
            document.error(spot, fault.help(format!("one of {}", units.join(", "))));
        }
        _ => {}
    }
    if let (Some(("month" | "year", length)), Some((_, value)), false) =
        (known, &written, unlimited)
    {
        let text = format!(
            "`unit: {name}` has {length}, as in envoyproxy/ratelimit; for one of the calendar, write `/{}` in \
             place of `/{length}`, and remove `algorithm` and `align`",
            name.to_ascii_lowercase()
        );
        document.note(value.node.place, text);
    }
    known.map(|(_, length)| *length)
}

fn replaces(
    document: &mut ImportedFile<'_>,
    map: &EnvoyMap<'_>,
    own: Option<&str>,
) -> Vec<(String, usize)> {
    let Some(value) = map.get("replaces") else {
        return Vec::new();
    };
    let mut names = Vec::new();
    for item in document.items(&value) {
        let Some(entry) = super::descriptor::map(document, &item, &REPLACES) else {
            continue;
        };
        match entry.text(document, "name") {
            None => {
                let fault = ConfigFault::new("should not have an empty replaces entry");
                let help = "write `- name: NAME`, with the `name` of another `rate_limit`";
                document.error(entry.spot(), fault.help(help));
            }
            Some((name, value)) if Some(name.as_str()) == own => {
                let fault = ConfigFault::new("replaces should not contain name of same descriptor");
                document.error(value.spot(), fault.help("remove it"));
            }
            Some((name, value)) => names.push((name, line(value.node.place))),
        }
    }
    names
}
