//! Statistics that are counted but not sent yet.

use super::layout::LimitCounters;
use std::sync::Arc;

/// The statistics of a limit, under envoyproxy/ratelimit's names.
pub(super) const STATISTICS: [&str; 5] = [
    "total_hits",
    "over_limit",
    "near_limit",
    "within_limit",
    "shadow_mode",
];

/// One statistic of one limit that has grown since it was last sent.
#[derive(Debug)]
pub struct StatisticIncrease {
    /// The name of the limit in statistics.
    pub key: Arc<str>,
    /// The increase since it was last sent.
    pub count: u64,
    /// The index in [`STATISTICS`].
    number: usize,
    /// The value after the increase.
    now: u64,
    of: Arc<LimitCounters>,
}

impl StatisticIncrease {
    /// Returns the statistics of a limit that have grown.
    pub fn all(key: &Arc<str>, of: &Arc<LimitCounters>) -> impl Iterator<Item = Self> {
        let grown = of.hits.unsent().into_iter().enumerate();
        let grown = grown.filter(|(_, (sent, now))| now > sent);
        grown.map(|(number, (sent, now))| Self {
            key: Arc::clone(key),
            count: now.saturating_sub(sent),
            number,
            now,
            of: Arc::clone(of),
        })
    }

    /// Returns the name of the statistic.
    pub fn name(&self) -> &'static str {
        STATISTICS.get(self.number).copied().unwrap_or_default()
    }

    /// Records that the statistic was sent.
    pub fn record_sent(&self) {
        self.of.hits.record_sent(self.number, self.now);
    }
}
