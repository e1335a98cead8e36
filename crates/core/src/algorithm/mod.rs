//! The algorithms: pure functions over exact integers.
//!
//! Each state answers the same questions ([`Meter`]): how long must this cost wait, charge it, give
//! it back, and what does the bucket read. Deciding over several buckets is one piece of code
//! for all of them, [`step`].

mod adapt;
pub mod fixed_window;
pub mod lent;
pub mod log;
pub mod sliding_window;
#[cfg(test)]
mod tests;
pub mod token_bucket;

pub use fixed_window::FixedWindow;
pub use lent::Lent;
pub use log::Log;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

use crate::{Algorithm, Op, Outcome, Quota, Receipt, Timestamp, Wait, step};

/// The state of one bucket under one quota.
///
/// `quota` must be the one that the state was made for, or one of the same algorithm; `now` must
/// not run backwards, and if it does the state stays where it was: it refuses for longer.
pub trait Meter {
    /// How long `cost` units must wait; none if they fit now. (A sliding log is never asked for more
    /// than [`Quota::cost_max`] at once; that is seen to by [`step`].)
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait;

    /// Takes `cost` units, which [`wait`](Meter::wait) said fit.
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp);

    /// Takes `cost` units whether they fit or not, down to the quota's overdraft. A state deeper
    /// than that already stays as it is. Returns the whole units that were taken.
    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64;

    /// Gives back what `receipt` says was taken, so far as that is safe. Tells what that adds to the
    /// count of credits, where there is one; see [`Outcome::mark`].
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64;

    /// Whether the state is further ahead of `now` than this quota can have brought it: the clock
    /// has gone far back, or the quota was cut, or `now` is not now any more.
    fn is_ahead(&self, quota: &Quota, now: Timestamp) -> bool;

    /// Makes a state that [is ahead](Meter::is_ahead) one that is used up as of `now`, so that what
    /// it owes to another clock or quota refuses no longer than what this one can owe. Does nothing
    /// to any other state.
    ///
    /// `now` must have been read after the state: as of an earlier instant, a state that others have
    /// charged since would be put back, and what they took given out again.
    fn settle(&mut self, quota: &Quota, now: Timestamp);

    /// Takes `cost` units, at least one, if they fit, and answers for it.
    ///
    /// This is what nearly every request does, so a state may do in one go what the default does by
    /// asking each of the questions above in turn. The answer is the same.
    #[inline]
    fn take(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> Outcome
    where
        Self: Sized,
    {
        step::decide_plainly(quota, self, Op::Take(cost), now).outcome
    }

    /// What remains, and when the bucket is as good as new.
    fn reading(&self, quota: &Quota, now: Timestamp) -> Reading;

    /// The instant from which on this state is as good as new.
    fn fresh_at(&self, quota: &Quota) -> Timestamp;
}

/// What a bucket reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Whole units left.
    pub remaining: u64,
    /// Microseconds until the bucket is as good as new.
    pub reset_us: u64,
    /// What has been credited, where that is counted and there is a debt; see [`Outcome::mark`].
    pub mark: u64,
}

/// The state of one bucket, whichever its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Bucket {
    /// Of a token bucket.
    Tokens(TokenBucket),
    /// Of a fixed window.
    Fixed(FixedWindow),
    /// Of a sliding window.
    Sliding(SlidingWindow),
    /// Of a sliding log or a bucketed window.
    Log(Log),
    /// Of a token bucket that [lends](Quota::lends).
    Lent(Box<Lent>),
}

impl Bucket {
    /// A bucket that is as good as new.
    pub fn new(quota: &Quota) -> Self {
        match quota.algorithm() {
            Algorithm::TokenBucket if quota.lends() => Self::Lent(Box::default()),
            Algorithm::TokenBucket => Self::Tokens(TokenBucket::default()),
            Algorithm::FixedWindow(_) => Self::Fixed(FixedWindow::default()),
            Algorithm::SlidingWindow => Self::Sliding(SlidingWindow::default()),
            Algorithm::SlidingLog | Algorithm::BucketedWindow => Self::Log(Log::default()),
        }
    }

    /// Memory that it holds beyond its own size, in bytes.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Log(log) => log.heap_bytes(),
            Self::Lent(lent) => size_of_val::<Lent>(lent),
            _ => 0,
        }
    }
}

/// Calls the same method of whichever state it is.
macro_rules! each {
    ($bucket:expr, $state:ident => $call:expr) => {
        match $bucket {
            Bucket::Tokens($state) => $call,
            Bucket::Fixed($state) => $call,
            Bucket::Sliding($state) => $call,
            Bucket::Log($state) => $call,
            Bucket::Lent($state) => $call,
        }
    };
}

impl Meter for Bucket {
    #[inline]
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        each!(self, state => state.wait(quota, cost, now))
    }

    #[inline]
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        each!(self, state => state.charge(quota, cost, now));
    }

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        each!(self, state => state.force(quota, cost, now))
    }

    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        each!(self, state => state.give_back(quota, receipt, now))
    }

    #[inline]
    fn is_ahead(&self, quota: &Quota, now: Timestamp) -> bool {
        each!(self, state => state.is_ahead(quota, now))
    }

    fn settle(&mut self, quota: &Quota, now: Timestamp) {
        each!(self, state => state.settle(quota, now));
    }

    #[inline]
    fn take(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> Outcome {
        each!(self, state => state.take(quota, cost, now))
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> Reading {
        each!(self, state => state.reading(quota, now))
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        each!(self, state => state.fresh_at(quota))
    }
}
