//! Settings for counting requests by client address, and for banning busy addresses.

use std::time::Duration;

/// Rules for counting requests by address and banning addresses (`addresses`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLimits {
    /// The length of a period, after which the period's counts restart at zero.
    pub period: Duration,
    /// The number of requests in one period at which an address is banned.
    pub threshold: u64,
    /// The ban that applies at the threshold. No address is banned where this is absent.
    pub ban: Option<BanRule>,
    /// The name in Redis of the counts of this period.
    pub period_map: String,
    /// The name in Redis of the counts of all periods.
    pub total_map: String,
    /// The number of addresses that each map counts separately. All further addresses share one count.
    pub max_addresses: u64,
    /// The time after which the counts of all periods restart at zero; never where absent.
    pub total_lasts: Option<Duration>,
    /// True if requests from banned clients are counted too.
    pub count_banned: bool,
}

/// The ban of an address that reached the threshold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanRule {
    /// The name of the guard whose set receives the address.
    pub guard: String,
    /// The length of the ban; permanent where absent.
    pub length: Option<Duration>,
}

impl AddressLimits {
    /// The default length of a period.
    pub const PERIOD: Duration = Duration::from_secs(15);
    /// The default number of requests per period at which an address is banned.
    pub const THRESHOLD: u64 = 10_000;
    /// The default number of addresses that are counted separately.
    pub const MAX_ADDRESSES: u64 = 1_000_000;
    /// The default name of the counts of the current period.
    pub const PERIOD_MAP: &str = "tidegate:addresses:period";
    /// The default name of the counts of all periods.
    pub const TOTAL_MAP: &str = "tidegate:addresses:total";
}
