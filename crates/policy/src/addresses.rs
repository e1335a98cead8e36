//! Counting addresses: who asks how often, and who asks too often.

use std::time::Duration;

/// How requests are counted by address, and when one is banned (`addresses`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressLimits {
    /// How long a period is, after which counts begin anew.
    pub period: Duration,
    /// An address that has asked this often in one period is banned.
    pub threshold: u64,
    /// Who is told to keep it out; none are banned where absent.
    pub ban: Option<BanRule>,
    /// The name in Redis of the counts of this period.
    pub period_map: String,
    /// The name in Redis of the counts of all periods.
    pub total_map: String,
    /// How many addresses either counts by themselves; all others are counted as one.
    pub max_addresses: u64,
    /// After how long the counts of all periods begin anew; never where absent.
    pub total_lasts: Option<Duration>,
    /// Whether requests of those are counted who are kept out.
    pub count_banned: bool,
}

/// What becomes of an address that has asked too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BanRule {
    /// The guard, by its name, whose set it is put into.
    pub guard: String,
    /// For how long; for ever where absent.
    pub length: Option<Duration>,
}

impl AddressLimits {
    /// How long a period is unless told.
    pub const PERIOD: Duration = Duration::from_secs(15);
    /// How often an address may ask in one period unless told.
    pub const THRESHOLD: u64 = 10_000;
    /// How many addresses are counted by themselves unless told.
    pub const MAX_ADDRESSES: u64 = 1_000_000;
    /// The name of the counts of this period unless told.
    pub const PERIOD_MAP: &str = "CurrentPeriodMap";
    /// The name of the counts of all periods unless told.
    pub const TOTAL_MAP: &str = "AllIPsMap";
}
