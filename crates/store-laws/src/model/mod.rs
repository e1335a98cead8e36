//! The model: what each algorithm means, written to be read.
//!
//! Each algorithm has a file of its own that opens with its definition and answers three questions
//! about an instant: how much is left, how long until a cost passes, how long until all is as new.
//! This file turns those answers into decisions, alike for all algorithms.
//!
//! Levels are exact fractions. Time is whole microseconds: a wait is rounded up and a remainder
//! down, each once, at the very end. Instants and periods stay below 2^62, so that sums of them
//! need no care.

mod bucketed_window;
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

pub use limits::{ModelLimit, decide_limits};

use bucketed_window::BucketedWindow;
use fixed_window::FixedWindow;
use sliding_log::SlidingLog;
use sliding_window::SlidingWindow;
use token_bucket::TokenBucket;

/// By which rule a bucket counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModelAlgorithm {
    /// Tokens return at a steady rate, up to a burst.
    TokenBucket,
    /// So many in a window that opens with its first charge.
    FixedWindow,
    /// So many in a window that starts at a multiple of the period since the epoch.
    FixedWindowAligned,
    /// The two-counter estimate over windows aligned to the epoch.
    SlidingWindow,
    /// So many in any window, counted one by one.
    SlidingLog,
    /// So many in any window, counted by sub-windows.
    BucketedWindow {
        /// Into how many sub-windows the period is divided.
        parts: u64,
    },
}

/// How much a bucket allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelQuota {
    /// By which rule.
    pub algorithm: ModelAlgorithm,
    /// How much per period.
    pub amount: u64,
    /// The period.
    pub period_us: u64,
    /// How much at once. Only a token bucket reads it; for windows it is the amount.
    pub burst: u64,
    /// How far below empty [`ModelBucket::force`] may go.
    pub overdraft: u64,
}

/// What a bucket says to one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelAnswer {
    /// Whether the request may pass.
    pub allowed: bool,
    /// The largest cost that would pass next: after the charge if there was one, else now.
    pub remaining: u64,
    /// When this cost would pass if nobody else came: zero when allowed, `None` for never.
    pub wait_us: Option<u64>,
    /// When the bucket is as good as new.
    pub reset_us: u64,
}

/// One bucket under one quota.
///
/// A bucket's time never runs backwards: an instant earlier than the latest that [`take`], [`force`]
/// or [`give_back`] was told counts as that latest.
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

/// What an algorithm must say. Instants never run backwards from one call to the next.
trait AlgorithmModel {
    /// The largest cost that passes at `now_us`.
    fn remaining(&self, now_us: u64) -> u64;

    /// How long until `cost`, at least 1, passes if nobody else comes: `Some(0)` means that it
    /// passes now, `None` that it never will.
    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64>;

    /// How long until the bucket is as good as new.
    fn reset_us(&self, now_us: u64) -> u64;

    /// Charges `cost` whether it fits or not, but goes no further below empty than the overdraft;
    /// what is further below already stays there.
    fn charge(&mut self, now_us: u64, cost: u64);

    /// Undoes a charge of `cost` made at `taken_at_us`, as far as it still counts.
    fn give_back(&mut self, taken_at_us: u64, cost: u64);

    /// Undoes `cost` units of what was charged last, as far as it still counts at `now_us`.
    fn give_back_latest(&mut self, now_us: u64, cost: u64);
}

#[derive(Clone, Debug)]
enum State {
    TokenBucket(TokenBucket),
    FixedWindow(FixedWindow),
    SlidingWindow(SlidingWindow),
    SlidingLog(SlidingLog),
    BucketedWindow(BucketedWindow),
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
    /// So much per period, all of it at once, and nothing below empty.
    pub const fn new(algorithm: ModelAlgorithm, amount: u64, period_us: u64) -> Self {
        Self {
            algorithm,
            amount,
            period_us,
            burst: amount,
            overdraft: 0,
        }
    }

    /// A token bucket with a burst.
    pub const fn token_bucket(amount: u64, period_us: u64, burst: u64) -> Self {
        Self {
            burst,
            ..Self::new(ModelAlgorithm::TokenBucket, amount, period_us)
        }
    }

    /// How much a window that counts `count` may still be charged by force.
    fn room_above(&self, count: u64) -> u64 {
        let deepest = self.amount.saturating_add(self.overdraft);
        deepest.saturating_sub(count)
    }
}

// === impl ModelBucket ===

impl ModelBucket {
    /// Makes a bucket that is as good as new.
    ///
    /// # Panics
    ///
    /// If the quota's amount, period or number of parts is zero: what lets nothing pass is a
    /// policy, and never comes to a bucket.
    pub fn new(quota: ModelQuota) -> Self {
        assert!(quota.amount > 0, "a quota has an amount");
        assert!(quota.period_us > 0, "a quota has a period");
        let state = match quota.algorithm {
            ModelAlgorithm::TokenBucket => State::TokenBucket(TokenBucket::new(quota)),
            ModelAlgorithm::FixedWindow => State::FixedWindow(FixedWindow::new(quota)),
            ModelAlgorithm::FixedWindowAligned => State::FixedWindow(FixedWindow::aligned(quota)),
            ModelAlgorithm::SlidingWindow => State::SlidingWindow(SlidingWindow::new(quota)),
            ModelAlgorithm::SlidingLog => State::SlidingLog(SlidingLog::new(quota)),
            ModelAlgorithm::BucketedWindow { parts } => {
                assert!(parts > 0, "a bucketed window has parts");
                State::BucketedWindow(BucketedWindow::new(quota, parts))
            }
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

    /// Charges `cost` whether it fits or not, down to the quota's overdraft below empty; a bucket
    /// that is deeper already stays as it is.
    ///
    /// `allowed` tells whether one whole token was left before. Where none was, the wait is until
    /// one whole token is there again.
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
    /// `taken_at_us` is the bucket's own instant of the charge, which is later than the caller's
    /// where the caller's clock went back. `cost` is what was charged, or a part of it: less than was
    /// asked, where the overdraft stopped a forced charge. A charge of a part and one of the rest at one
    /// instant are as good as one of both.
    pub fn give_back(&mut self, now_us: u64, taken_at_us: u64, cost: u64) {
        let now_us = self.see(now_us);
        self.state
            .algorithm_mut()
            .give_back(taken_at_us.min(now_us), cost);
    }

    /// Undoes `cost` units of what was charged last, or all that still counts if that is less. Nobody
    /// says when that was: this can let through more than the quota allows.
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
    /// Tells which of a request's answers is reported, by its place.
    ///
    /// Of those that refuse, the one with the longest wait, never being the longest; where none
    /// refuses, the one with the fewest remaining. Of equals, the first.
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
        }
    }
}

// === fractions ===

fn whole(number: u64) -> BigRational {
    BigRational::from_integer(BigInt::from(number))
}

/// Rounds down; what is below zero is zero, and what is beyond `u64` is its maximum.
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
