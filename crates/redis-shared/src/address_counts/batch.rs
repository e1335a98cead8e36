//! Counts on their way, and how far they have come.

use super::tally::BatchProgress;

/// Counts that are to be added: names, and how much each. A batch is sent with one census only.
#[derive(Debug)]
pub struct CountBatch {
    pub(super) counts: Vec<(Vec<u8>, u64)>,
    pub(super) period: BatchProgress,
    pub(super) total: BatchProgress,
}

impl CountBatch {
    /// Counts; a name may come more than once. They are sent a thousand at a time.
    pub fn new(mut counts: Vec<(Vec<u8>, u64)>) -> Self {
        // Nothing is no reason for a field.
        counts.retain(|(_, count)| *count > 0);
        Self {
            counts,
            period: BatchProgress::default(),
            total: BatchProgress::default(),
        }
    }

    /// The sum of its counts.
    pub fn sum(&self) -> u64 {
        sum(&self.counts)
    }
}

/// The fields in which a batch was counted, in each map.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchPlacement {
    /// In the map of the period.
    pub period: MapPlacement,
    /// In the map of all time.
    pub total: MapPlacement,
}

/// The fields in which a batch was counted in one map. The three sums make up the whole batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapPlacement {
    /// The sum in the address's own field.
    pub own: u64,
    /// The sum in [`OTHER`](super::OTHER).
    pub other: u64,
    /// The sum for which it is unknown whether it was counted.
    pub doubtful: u64,
}

pub(super) fn sum(counts: &[(Vec<u8>, u64)]) -> u64 {
    let counts = counts.iter().map(|(_, count)| *count);
    counts.fold(0, u64::saturating_add)
}
