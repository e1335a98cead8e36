//! The name of a band, and its quota, as written in header fields. They are computed once because every
//! response contains them.

use super::NameVisibility;
use crate::limit::{Band, Limit};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use tidegate_core::{Algorithm, Quota};

/// The texts of a band in header fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    name: String,
    draft_11: String,
    draft_03: String,
    window_s: u64,
    per_second: u64,
}

impl HeaderNames {
    /// Returns the name, unique in the policy: the limit's name and, if the limit has several bands, the
    /// band's label or period after a dot. If names are hidden, it is a number.
    ///
    /// It is visible ASCII without quotes and backslashes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns an item of `RateLimit-Policy` in draft 11: `"per-client";q=50;w=5`.
    pub fn draft_11(&self) -> &str {
        &self.draft_11
    }

    /// Returns an item of `RateLimit-Limit` in draft 03: `50;w=5`.
    pub fn draft_03(&self) -> &str {
        &self.draft_03
    }

    /// Returns the seconds after which an empty bucket is full again, rounded up.
    pub fn window_s(&self) -> u64 {
        self.window_s
    }

    /// Returns the whole units per second, at least 1.
    pub fn per_second(&self) -> u64 {
        self.per_second
    }

    pub(crate) fn new(name: String, quota: &Quota) -> Self {
        let (capacity, window_s) = (quota.capacity(), window_s(quota));
        Self {
            draft_11: format!("\"{name}\";q={};w={window_s}", integer(capacity)),
            draft_03: format!("{capacity};w={window_s}"),
            name,
            window_s,
            per_second: per_second(quota),
        }
    }
}

/// The largest integer of structured fields: fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

fn integer(number: u64) -> u64 {
    number.min(INTEGER_MAX)
}

/// Returns the texts of the bands of all limits, by limit.
pub(crate) fn speak(limits: &[Limit], names: NameVisibility) -> Vec<Box<[HeaderNames]>> {
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
                    HeaderNames::new(unique(&name, &mut taken), &band.quota)
                })
                .collect()
        })
        .collect()
}

/// Returns the text that distinguishes the band from others of its limit.
fn label(band: &Band) -> String {
    match &band.label {
        Some(label) => visible(label),
        None => period(band.quota.period_us()),
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

/// Returns the seconds after which an empty bucket is full again, rounded up.
fn window_s(quota: &Quota) -> u64 {
    let micros = match quota.algorithm() {
        // Refills evenly: capacity ÷ (amount ÷ period).
        Algorithm::TokenBucket => {
            let all = u128::from(quota.capacity()) * u128::from(quota.period_us());
            all.div_ceil(u128::from(quota.amount()).max(1))
        }
        _ => u128::from(quota.period_us()),
    };
    let seconds = micros.div_ceil(1_000_000).max(1);
    u64::try_from(seconds).map_or(INTEGER_MAX, integer)
}

/// Returns the whole units per second, at least 1.
fn per_second(quota: &Quota) -> u64 {
    let units = u128::from(quota.amount()) * 1_000_000 / u128::from(quota.period_us()).max(1);
    u64::try_from(units).unwrap_or(u64::MAX).max(1)
}
