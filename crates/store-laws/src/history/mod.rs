//! Requests and their answers, and the units by which they exceed a quota.
//!
//! The checker replays nothing but the admissions, at the store's own instants, through the
//! [`model`](crate::model). An admission that the model would refuse, given only those before it,
//! is *over*, and is left out of the rest. That is the fewest units that would have to be taken
//! from the history for the rest to keep to the quota. So a store that forgets its buckets `n`
//! times may be over by `n` capacities and no more.
//!
//! Refused requests do not count, and neither do requests with an unknown result: a charge whose
//! answer was lost can only make a store admit less. (Not so if a window opens with its first
//! charge, known or not: such a quota can be checked only if every answer is known.)

#[cfg(test)]
mod tests;

use tidegate_core::quota::WINDOW_PARTS;
use tidegate_core::{Algorithm, Align, Quota, Reply, StoreError, StoreErrorKind};

use crate::model::{ModelAlgorithm, ModelBucket, ModelQuota};

/// Requests on the same buckets, from any number of clients, with their results.
///
/// ```
/// use tidegate_core::Quota;
/// use tidegate_store_laws::history::History;
///
/// let two_a_second = Quota::new(2, 1_000_000).build()?;
/// let mut history = History::default();
/// for at_us in [0, 1, 500_000, 500_001] {
///     history.admit(at_us, 1);
/// }
/// assert_eq!(history.over(&two_a_second), 1);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// The store's instant in microseconds, and the cost.
    admitted: Vec<(u64, u64)>,
    refused: u64,
    unknown: Vec<StoreErrorKind>,
}

impl History {
    /// Records that `cost` was admitted at the store's instant `at_us`.
    pub fn admit(&mut self, at_us: u64, cost: u64) {
        self.admitted.push((at_us, cost));
    }

    /// Records `requests` more refusals.
    pub fn refuse(&mut self, requests: u64) {
        self.refused += requests;
    }

    /// Records the result of a request of `cost`.
    pub fn record(&mut self, cost: u64, answer: &Result<Reply, StoreError>) {
        match answer {
            Ok(reply) if reply.passed => self.admit(reply.at.as_micros(), cost),
            Ok(_) => self.refused += 1,
            Err(error) => self.unknown.push(error.kind()),
        }
    }

    /// Adds the records of another client of the same buckets.
    pub fn merge(&mut self, other: Self) {
        self.admitted.extend(other.admitted);
        self.refused += other.refused;
        self.unknown.extend(other.unknown);
    }

    /// Returns the units that were admitted.
    pub fn admitted(&self) -> u64 {
        self.admitted.iter().map(|(_, cost)| cost).sum()
    }

    /// Returns the units that were admitted before the store's instant `until_us`.
    pub fn admitted_before(&self, until_us: u64) -> u64 {
        let before = self.admitted.iter().filter(|(at, _)| *at < until_us);
        before.map(|(_, cost)| cost).sum()
    }

    /// Returns the number of refused requests.
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the requests with an unknown result, by the kind of error.
    pub fn unknown(&self) -> &[StoreErrorKind] {
        &self.unknown
    }

    /// Returns the instants of all admissions, in no order.
    pub fn instants_us(&self) -> impl Iterator<Item = u64> {
        self.admitted.iter().map(|(at, _)| *at)
    }

    /// Returns the instants of the first and the last admission.
    pub fn span_us(&self) -> Option<(u64, u64)> {
        Some((self.instants_us().min()?, self.instants_us().max()?))
    }

    /// Returns the units admitted beyond `quota`.
    pub fn over(&self, quota: &Quota) -> u64 {
        self.over_model(model_of(quota))
    }

    /// Returns the units [over](Self::over) a token bucket, if the instants are only known to be up
    /// to `skew_us` after the true ones: the refill of that time is allowed on top.
    pub fn over_with_skew(&self, quota: &Quota, skew_us: u64) -> u64 {
        let mut model = model_of(quota);
        let refilled = u128::from(model.amount) * u128::from(skew_us);
        let refilled = refilled.div_ceil(u128::from(model.period_us));
        let extra = u64::try_from(refilled).unwrap_or(u64::MAX);
        match model.algorithm {
            ModelAlgorithm::TokenBucket => model.burst = model.burst.saturating_add(extra),
            // Units of another window may have been counted in this one.
            ModelAlgorithm::FixedWindow
            | ModelAlgorithm::FixedWindowAligned
            | ModelAlgorithm::SlidingWindow
            | ModelAlgorithm::SlidingLog
            | ModelAlgorithm::BucketedWindow { .. }
            | ModelAlgorithm::CalendarWindow => {
                model.amount = model.amount.saturating_mul(2);
            }
            // No time gives them back.
            ModelAlgorithm::Concurrent => {}
        }
        self.over_model(model)
    }

    fn over_model(&self, quota: ModelQuota) -> u64 {
        let mut admitted = self.admitted.clone();
        admitted.sort_unstable();
        let mut bucket = ModelBucket::new(quota);
        let mut over = 0;
        for (at_us, cost) in admitted {
            if !bucket.take(at_us, cost).allowed {
                over += cost;
            }
        }
        over
    }
}

/// Returns the same quota in the model's words.
pub fn model_of(quota: &Quota) -> ModelQuota {
    ModelQuota {
        burst: quota.capacity(),
        overdraft: quota.overdraft(),
        ..ModelQuota::new(
            model_algorithm(quota.algorithm()),
            quota.amount(),
            quota.period_us(),
        )
    }
}

/// Returns the same algorithm in the model's words.
pub fn model_algorithm(algorithm: Algorithm) -> ModelAlgorithm {
    match algorithm {
        Algorithm::TokenBucket => ModelAlgorithm::TokenBucket,
        Algorithm::FixedWindow(Align::FirstRequest) => ModelAlgorithm::FixedWindow,
        Algorithm::FixedWindow(Align::Clock) => ModelAlgorithm::FixedWindowAligned,
        Algorithm::SlidingWindow => ModelAlgorithm::SlidingWindow,
        Algorithm::SlidingLog => ModelAlgorithm::SlidingLog,
        Algorithm::BucketedWindow => ModelAlgorithm::BucketedWindow {
            parts: WINDOW_PARTS,
        },
        Algorithm::CalendarWindow => ModelAlgorithm::CalendarWindow,
        Algorithm::Concurrent => ModelAlgorithm::Concurrent,
    }
}
