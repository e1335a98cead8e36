//! The names of a policy's bands in header fields, each unique in the policy.

use crate::band::Band;
use crate::calendar::CalendarWindows;
use crate::limit::Limit;
use crate::respond::{HeaderNames, NameVisibility};
use foldhash::fast::FixedState;
use hashbrown::HashSet;

/// Returns the texts of the bands of all limits, by limit.
pub(super) fn speak(limits: &[Limit], names: NameVisibility) -> Vec<Box<[HeaderNames]>> {
    let mut taken = HashSet::with_hasher(FixedState::default());
    let numbered = limits.iter().zip(1_usize..);
    numbered
        .map(|(limit, number)| {
            let own = match names {
                NameVisibility::Shown => visible(&limit.name),
                NameVisibility::Hidden => number.to_string(),
            };
            // Bands of a plan have a name before any of them exists.
            let bands = limit.shapes().iter().zip(1_usize..);
            bands
                .map(|(band, nth)| {
                    let name = match (limit.shapes().len(), names) {
                        (1, _) => own.clone(),
                        (_, NameVisibility::Shown) => format!("{own}.{}", label(band)),
                        (_, NameVisibility::Hidden) => format!("{own}.{nth}"),
                    };
                    HeaderNames::new(unique(&name, &mut taken), &band.quota, &limit.unit)
                })
                .collect()
        })
        .collect()
}

/// Returns the text that distinguishes the band from others of its limit.
fn label(band: &Band) -> String {
    match &band.label {
        Some(label) => visible(label),
        None => match band.quota.calendar().and_then(CalendarWindows::of) {
            Some(windows) => windows.period().word().to_owned(),
            None => period(band.quota.period_us()),
        },
    }
}

/// Formats a period, such as `1h`, `15min`, `500ms`.
fn period(micros: u64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (86_400_000_000, "d"),
        (3_600_000_000, "h"),
        (60_000_000, "min"),
        (1_000_000, "s"),
        (1_000, "ms"),
    ];
    let unit = UNITS
        .iter()
        .find(|(length, _)| micros.is_multiple_of(*length));
    unit.map_or_else(
        || format!("{micros}us"),
        |(length, unit)| format!("{}{unit}", micros / length),
    )
}

/// Replaces special characters. Names in a configuration have none; names from code may have any.
fn visible(name: &str) -> String {
    let plain = |c: char| match c {
        '"' | '\\' => '_',
        c if c.is_ascii_graphic() || c == ' ' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

/// Returns the name, or a variant that is not taken yet: a limit may have the name of another limit's band.
fn unique(name: &str, taken: &mut HashSet<String, FixedState>) -> String {
    let mut free = name.to_owned();
    let mut suffix = 2_usize;
    while !taken.insert(free.clone()) {
        free = format!("{name}~{suffix}");
        suffix = suffix.saturating_add(1);
    }
    free
}
