//! Settings for reporting single requests: traces and log lines.

use crate::text::Secret;
use std::time::Duration;

/// The trace collector, and the share of requests that it receives (`traces`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traces {
    /// The whole URL to which spans are posted as OTLP.
    pub url: String,
    /// The headers of every post. The values are secrets: they often contain tokens.
    pub headers: Vec<(String, Secret)>,
    /// The share of requests without a caller's sampling decision that get spans. If the caller has decided,
    /// its decision applies.
    pub sample: Sample,
    /// The service name in spans.
    pub service: String,
    /// The timeout of one post.
    pub timeout: Duration,
}

impl Traces {
    /// The default share of requests with spans: one percent.
    pub const SAMPLE: Sample = Sample(10_000);
    /// The default service name.
    pub const SERVICE: &str = "tidegate";
    /// The default timeout of one post.
    pub const TIMEOUT: Duration = Duration::from_secs(10);
    /// The OTLP path for spans, below the address of a collector.
    pub const PATH: &str = "/v1/traces";
}

/// The log lines about single requests (`logs`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Logs {
    /// The share of refusals that are logged. Default: none.
    pub refusals: Sample,
}

/// A share of all requests in millionths, from none to all.
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
    /// No requests.
    pub const NONE: Self = Self(0);
    /// All requests.
    pub const ALL: Self = Self(1_000_000);

    /// Creates a share of this many millionths, at most all.
    pub fn millionths(millionths: u32) -> Self {
        Self(millionths.min(Self::ALL.0))
    }

    /// Returns true if the share is zero.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// Returns true if a request with the uniformly random number `chance` is in the sample.
    pub fn takes(self, chance: u64) -> bool {
        // The upper half of the product is `chance` scaled down to 0..1,000,000.
        let scaled = (u128::from(chance) * u128::from(Self::ALL.0)) >> 64;
        scaled < u128::from(self.0)
    }
}

/// Formats the share in percent, as in the configuration.
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
