//! What a band is called, and its quota as header fields spell it: worked out once, for they are
//! sent with every answer.

use super::NameVisibility;
use crate::limit::{Band, Limit};
use foldhash::fast::FixedState;
use hashbrown::HashSet;
use tidegate_core::{Algorithm, Quota};

/// A band as header fields spell it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderNames {
    name: String,
    draft_11: String,
    draft_03: String,
    window_s: u64,
    per_second: u64,
}

impl HeaderNames {
    /// What it is called, unique in its policy: the limit's name, and where the limit has several
    /// bands, the band's label or period after a dot. A number where names are hidden.
    ///
    /// Visible ASCII without quotes and backslashes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// An item of `RateLimit-Policy` in draft 11: `"per-client";q=50;w=5`.
    pub fn draft_11(&self) -> &str {
        &self.draft_11
    }

    /// An item of `RateLimit-Limit` in draft 03: `50;w=5`.
    pub fn draft_03(&self) -> &str {
        &self.draft_03
    }

    /// Seconds in which the capacity is there again, rounded up.
    pub fn window_s(&self) -> u64 {
        self.window_s
    }

    /// Units a second: whole, at least 1.
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

/// Structured fields have integers of fifteen digits.
const INTEGER_MAX: u64 = 999_999_999_999_999;

fn integer(number: u64) -> u64 {
    number.min(INTEGER_MAX)
}

/// The bands of all limits, by limit.
pub(crate) fn speak(limits: &[Limit], names: NameVisibility) -> Vec<Box<[HeaderNames]>> {
    let mut taken = HashSet::with_hasher(FixedState::default());
    let numbered = limits.iter().zip(1_usize..);
    numbered
        .map(|(limit, number)| {
            let own = match names {
                NameVisibility::Shown => visible(&limit.name),
                NameVisibility::Hidden => number.to_string(),
            };
            // Those of a plan have a name before there are any.
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

/// What tells the band from others of its limit.
fn label(band: &Band) -> String {
    match &band.label {
        Some(label) => visible(label),
        None => period(band.quota.period_us()),
    }
}

/// Such as `1h`, `15min`, `500ms`.
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

/// Names from a configuration are plain; those given in code may be anything.
fn visible(name: &str) -> String {
    let plain = |c: char| match c {
        '"' | '\\' => '_',
        c if c.is_ascii_graphic() || c == ' ' => c,
        _ => '_',
    };
    name.chars().map(plain).collect()
}

/// The name, or one made from it that nobody has yet: a limit may be called as another's band.
fn unique(name: &str, taken: &mut HashSet<String, FixedState>) -> String {
    let mut free = name.to_owned();
    let mut suffix = 2_usize;
    while !taken.insert(free.clone()) {
        free = format!("{name}~{suffix}");
        suffix = suffix.saturating_add(1);
    }
    free
}

/// Seconds in which the capacity is there again, rounded up.
fn window_s(quota: &Quota) -> u64 {
    let micros = match quota.algorithm() {
        // Refilled evenly: capacity ÷ (amount ÷ period).
        Algorithm::TokenBucket => {
            let all = u128::from(quota.capacity()) * u128::from(quota.period_us());
            all.div_ceil(u128::from(quota.amount()).max(1))
        }
        _ => u128::from(quota.period_us()),
    };
    let seconds = micros.div_ceil(1_000_000).max(1);
    u64::try_from(seconds).map_or(INTEGER_MAX, integer)
}

/// Units a second: whole, at least 1.
fn per_second(quota: &Quota) -> u64 {
    let units = u128::from(quota.amount()) * 1_000_000 / u128::from(quota.period_us()).max(1);
    u64::try_from(units).unwrap_or(u64::MAX).max(1)
}
