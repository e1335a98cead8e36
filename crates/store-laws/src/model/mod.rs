//! The model: the meaning of each algorithm, written to be read.
//!
//! Each algorithm has its own file. It opens with the definition and computes three values at an
//! instant: the remaining units, the time until a cost passes, the time until the bucket is full.
//! This file turns those into decisions, alike for all algorithms.
//!
//! Levels are exact fractions. Time is whole microseconds: a wait is rounded up and a remainder
//! down, each once, at the very end. Instants and periods stay below 2^62, so that sums of them
//! need no care.

mod bucketed_window;
mod calendar_window;
mod concurrent;
mod fixed_window;
mod limits;
mod sliding_log;
mod sliding_window;
#[cfg(test)]
mod tests;
mod token_bucket;

use std::cmp::Reverse;

use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{Signed, ToPrimitive, Zero};

pub use concurrent::PermitsModel;
pub use limits::{ModelLimit, decide_limits};

use bucketed_window::BucketedWindowModel;
use calendar_window::CalendarWindowModel;
use fixed_window::FixedWindowModel;
use sliding_log::SlidingLogModel;
use sliding_window::SlidingWindowModel;
use token_bucket::TokenBucketModel;

/// Algorithm of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelAlgorithm {
    /// Tokens return at a steady rate, up to a burst.
    TokenBucket,
    /// An amount per window that opens with its first charge.
    FixedWindow,
    /// An amount per window that starts at a multiple of the period since the epoch.
    FixedWindowAligned,
    /// The two-counter estimate over windows aligned to the epoch.
    SlidingWindow,
    /// An amount in any window, counted one by one.
    SlidingLog,
    /// An amount in any window, counted by sub-windows.
    BucketedWindow {
        /// Into how many sub-windows the period is divided.
        parts: u64,
    },
    /// An amount between two starts, which are multiples of the period since the epoch.
    CalendarWindow,
    /// An amount in use at once. The period has no meaning.
    Concurrent,
}

/// Quota of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelQuota {
    /// Algorithm.
    pub algorithm: ModelAlgorithm,
    /// Units per period.
    pub amount: u64,
    /// The period.
    pub period_us: u64,
    /// Units at once. Only a token bucket reads it; for windows it is the amount.
    pub burst: u64,
    /// Units below empty that [`ModelBucket::force`] may go.
    pub overdraft: u64,
}

/// A bucket's answer to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// True if the request may pass.
    pub allowed: bool,
    /// The largest cost that would pass next: after the charge if there was one, else now.
    pub remaining: u64,
    /// Time until this cost would pass without other requests: zero if allowed, `None` for never.
    pub wait_us: Option<u64>,
    /// Time until the bucket is full again.
    pub reset_us: u64,
}

/// One bucket under one quota.
///
/// A bucket's time never runs backwards: an instant earlier than the latest one passed to [`take`],
/// [`force`] or [`give_back`] counts as that latest.
///
/// [`take`]: Self::take
/// [`force`]: Self::force
/// [`give_back`]: Self::give_back
#[derive(Clone, Debug)]
pub struct ModelBucket {
    seen_us: u64,
    state: State,
}

/// A request over several buckets, as a whole. [`decide_all`] decides it.
#[derive(Clone, Copy, Debug)]
pub struct ModelRequest;

/// Definition of an algorithm. Instants never run backwards from one call to the next.
trait AlgorithmModel {
    /// Returns the largest cost that passes at `now_us`.
    fn remaining(&self, now_us: u64) -> u64;

    /// Returns the time until `cost`, at least 1, passes without other requests: `Some(0)` means
    /// that it passes now, `None` that it never will.
    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64>;

    /// Returns the time until the bucket is full again.
    fn reset_us(&self, now_us: u64) -> u64;

    /// Charges `cost` even if it does not fit, but no further below empty than the overdraft. A
    /// level that is further below already does not change.
    fn charge(&mut self, now_us: u64, cost: u64);

    /// Undoes a charge of `cost` made at `taken_at_us`, as far as it still counts.
    fn give_back(&mut self, taken_at_us: u64, cost: u64);

    /// Undoes the latest `cost` units of charges, as far as they still count at `now_us`.
    fn give_back_latest(&mut self, now_us: u64, cost: u64);
}

#[derive(Clone, Debug)]
enum State {
    TokenBucket(TokenBucketModel),
    FixedWindow(FixedWindowModel),
    SlidingWindow(SlidingWindowModel),
    SlidingLog(SlidingLogModel),
    BucketedWindow(BucketedWindowModel),
    CalendarWindow(CalendarWindowModel),
    Concurrent(PermitsModel),
}

/// Decides one request over several buckets, all or nothing.
///
/// Returns whether every bucket allows, and each bucket's answer. Where one refuses, none is
/// charged: those that refuse say so, and the others answer as they would to a look.
pub fn decide_all(
    buckets: &mut [&mut ModelBucket],
    now_us: u64,
    cost: u64,
) -> (bool, Vec<ModelAnswer>) {
    let allowed = buckets
        .iter()
        .all(|bucket| bucket.would(now_us, cost).allowed);
    let answers = buckets
        .iter_mut()
        .map(|bucket| {
            if allowed || !bucket.would(now_us, cost).allowed {
                bucket.take(now_us, cost)
            } else {
                bucket.take(now_us, 0)
            }
        })
        .collect();
    (allowed, answers)
}

// === impl ModelQuota ===

impl ModelQuota {
    /// Returns a quota without overdraft whose burst is its amount.
    pub const fn new(algorithm: ModelAlgorithm, amount: u64, period_us: u64) -> Self {
        Self {
            algorithm,
            amount,
            period_us,
            burst: amount,
            overdraft: 0,
        }
    }

    /// Returns a token bucket with a burst.
    pub const fn token_bucket(amount: u64, period_us: u64, burst: u64) -> Self {
        Self {
            burst,
            ..Self::new(ModelAlgorithm::TokenBucket, amount, period_us)
        }
    }

    /// Returns the units that a window with `count` units may still be charged by force.
    fn room_above(&self, count: u64) -> u64 {
        let deepest = self.amount.saturating_add(self.overdraft);
        deepest.saturating_sub(count)
    }
}

// === impl ModelBucket ===

impl ModelBucket {
    /// Creates a full bucket.
    ///
    /// # Panics
    ///
    /// If the quota's amount, period or number of parts is zero: a policy that admits nothing needs
    /// no bucket.
    pub fn new(quota: ModelQuota) -> Self {
        assert!(quota.amount > 0, "a quota has an amount");
        assert!(quota.period_us > 0, "a quota has a period");
        let state = match quota.algorithm {
            ModelAlgorithm::TokenBucket => State::TokenBucket(TokenBucketModel::new(quota)),
            ModelAlgorithm::FixedWindow => State::FixedWindow(FixedWindowModel::new(quota)),
            ModelAlgorithm::FixedWindowAligned => {
                State::FixedWindow(FixedWindowModel::aligned(quota))
            }
            ModelAlgorithm::SlidingWindow => State::SlidingWindow(SlidingWindowModel::new(quota)),
            ModelAlgorithm::SlidingLog => State::SlidingLog(SlidingLogModel::new(quota)),
            ModelAlgorithm::BucketedWindow { parts } => {
                assert!(parts > 0, "a bucketed window has parts");
                State::BucketedWindow(BucketedWindowModel::new(quota, parts))
            }
            ModelAlgorithm::CalendarWindow => {
                State::CalendarWindow(CalendarWindowModel::new(quota))
            }
            ModelAlgorithm::Concurrent => State::Concurrent(PermitsModel::new(quota)),
        };
        Self { seen_us: 0, state }
    }

    /// Charges `cost` if it fits, and nothing if it does not. A cost of 0 only looks: it is always
    /// allowed.
    pub fn take(&mut self, now_us: u64, cost: u64) -> ModelAnswer {
        let now_us = self.see(now_us);
        let bucket = self.state.algorithm_mut();
        let wait_us = match cost {
            0 => Some(0),
            _ => bucket.wait_us(now_us, cost),
        };
        let allowed = wait_us == Some(0);
        if allowed && cost > 0 {
            bucket.charge(now_us, cost);
        }
        ModelAnswer {
            allowed,
            remaining: bucket.remaining(now_us),
            wait_us,
            reset_us: bucket.reset_us(now_us),
        }
    }

    /// Answers what [`take`](Self::take) would, and changes nothing.
    pub fn would(&self, now_us: u64, cost: u64) -> ModelAnswer {
        self.clone().take(now_us, cost)
    }

    /// Answers whether `cost` would pass, 0 standing for 1, and changes nothing.
    pub fn test(&mut self, now_us: u64, cost: u64) -> ModelAnswer {
        let now_us = self.see(now_us);
        let unchanged = self.would(now_us, 0);
        let would = self.would(now_us, cost.max(1));
        ModelAnswer {
            allowed: would.allowed,
            wait_us: would.wait_us,
            ..unchanged
        }
    }

    /// Charges `cost` even if it does not fit, down to the quota's overdraft below empty. A bucket
    /// that is deeper already does not change.
    ///
    /// `allowed` is true if one whole token was left before. If none was, the wait is until one
    /// whole token is there again.
    pub fn force(&mut self, now_us: u64, cost: u64) -> ModelAnswer {
        let now_us = self.see(now_us);
        let bucket = self.state.algorithm_mut();
        let allowed = bucket.remaining(now_us) >= 1;
        bucket.charge(now_us, cost);
        ModelAnswer {
            allowed,
            remaining: bucket.remaining(now_us),
            wait_us: if allowed {
                Some(0)
            } else {
                bucket.wait_us(now_us, 1)
            },
            reset_us: bucket.reset_us(now_us),
        }
    }

    /// Charges `cost` as [`force`](Self::force) does, but answers as [`take`](Self::take) does: refused
    /// where it did not fit before, with the wait until it would fit after this charge. 0 is a
    /// [`test`](Self::test).
    pub fn debit(&mut self, now_us: u64, cost: u64) -> ModelAnswer {
        let fits = self.test(now_us, cost);
        if cost == 0 {
            return fits;
        }
        let charged = self.force(now_us, cost);
        ModelAnswer {
            allowed: fits.allowed,
            wait_us: if fits.allowed {
                Some(0)
            } else {
                self.test(now_us, cost).wait_us
            },
            ..charged
        }
    }

    /// Undoes a charge of `cost` that was counted at `taken_at_us`, exactly: afterwards the bucket
    /// is as if that cost had never been charged, and everything since had been. (A fixed window
    /// that other charges share still starts where it was opened.)
    ///
    /// `taken_at_us` is the bucket's own instant of the charge, which is later than the caller's if
    /// the caller's clock went back. `cost` is the charge, or a part of it: less than requested, if
    /// the overdraft stopped a forced charge. A charge of a part and one of the rest at one instant
    /// equal one of both.
    pub fn give_back(&mut self, now_us: u64, taken_at_us: u64, cost: u64) {
        let now_us = self.see(now_us);
        self.state
            .algorithm_mut()
            .give_back(taken_at_us.min(now_us), cost);
    }

    /// Undoes the latest `cost` units of charges, or all that still count if that is less. Their
    /// time is unknown: this can admit more than the quota allows.
    pub fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        let now_us = self.see(now_us);
        self.state.algorithm_mut().give_back_latest(now_us, cost);
    }

    fn see(&mut self, now_us: u64) -> u64 {
        self.seen_us = self.seen_us.max(now_us);
        self.seen_us
    }
}

// === impl ModelRequest ===

impl ModelRequest {
    /// Returns the index of the reported answer of a request.
    ///
    /// Of those that refuse, it is the one with the longest wait, never being the longest. If none
    /// refuses, it is the one with the fewest remaining. Of equals, the first.
    pub fn binding(answers: &[ModelAnswer]) -> Option<usize> {
        let refusing = answers.iter().enumerate().filter(|(_, it)| !it.allowed);
        let (place, _) = refusing
            .min_by_key(|(_, it)| Reverse(it.wait_us.unwrap_or(u64::MAX)))
            .or_else(|| {
                answers
                    .iter()
                    .enumerate()
                    .min_by_key(|(_, it)| it.remaining)
            })?;
        Some(place)
    }
}

// === impl State ===

impl State {
    fn algorithm_mut(&mut self) -> &mut dyn AlgorithmModel {
        match self {
            Self::TokenBucket(state) => state,
            Self::FixedWindow(state) => state,
            Self::SlidingWindow(state) => state,
            Self::SlidingLog(state) => state,
            Self::BucketedWindow(state) => state,
            Self::CalendarWindow(state) => state,
            Self::Concurrent(state) => state,
        }
    }
}

// === fractions ===

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(number))
}

/// Rounds down; numbers below zero become zero, and numbers beyond `u64` its maximum.
fn floor(number: &BigRational) -> u64 {
    if number.is_negative() {
        return 0;
    }
    number.floor().to_integer().to_u64().unwrap_or(u64::MAX)
}

/// Rounds up, with the same bounds as [`floor`].
fn ceil(number: &BigRational) -> u64 {
    floor(&number.ceil())
}

fn at_least_zero(number: BigRational) -> BigRational {
    number.max(BigRational::zero())
}
