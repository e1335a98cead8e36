//! What is told of single requests: traces and lines of the log.

use crate::config::Secret;
use std::time::Duration;

/// Where spans go, and of how many requests (`traces`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// Where spans are posted as OTLP: the whole URL.
    pub endpoint: String,
    /// What every post says in its head. The values are secrets: they often hold tokens.
    pub headers: Vec<(String, Secret)>,
    /// Of how many requests there are spans that came without a word on it; those whose caller has
    /// decided are as the caller says.
    pub sample: Sample,
    /// What this server is called there.
    pub service: String,
    /// How long one post may take.
    pub timeout: Duration,
}

impl Traces {
    /// Of how many requests there are spans unless told: one of a hundred.
    pub const SAMPLE: Sample = Sample(10_000);
    /// What this server is called unless told.
    pub const SERVICE: &str = "tidegate";
    /// How long one post may take unless told.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// Where OTLP takes spans, below the address of a collector.
    pub const PATH: &str = "/v1/traces";
}

/// What the log hears of single requests (`logs`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// Of how many refusals there is a line; of none unless told.
    pub refusals: Sample,
}

/// How many of all: a share in millionths, from none to all.
///
/// ```
/// use tidegate_policy::traces::Sample;
///
/// assert!(Sample::ALL.takes(u64::MAX) && !Sample::NONE.takes(0));
/// let half = Sample::millionths(500_000);
/// assert!(half.takes(1 << 62) && !half.takes(3 << 62));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample(u32);

impl Sample {
    /// None of them.
    pub const NONE: Self = Self(0);
    /// All of them.
    pub const ALL: Self = Self(1_000_000);

    /// So many of a million; more are all.
    pub fn millionths(millionths: u32) -> Self {
        Self(millionths.min(Self::ALL.0))
    }

    /// Whether it is none.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Whether one is taken to which chance has given this number.
    pub fn takes(self, chance: u64) -> bool {
        // The upper half of a product is the number scaled down to 0..1,000,000.
        let scaled = (u128::from(chance) * u128::from(Self::ALL.0)) >> 64;
        scaled < u128::from(self.0)
    }
}

/// As it is written: in percent.
impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, rest) = (self.0 / 10_000, self.0 % 10_000);
        if rest == 0 {
            return write!(f, "{whole}%");
        }
        let rest = format!("{rest:04}");
        write!(f, "{whole}.{}%", rest.trim_end_matches('0'))
    }
}
