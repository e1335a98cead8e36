//! The algorithms: pure functions over exact integers.
//!
//! Each state answers the same questions ([`BucketState`]): how long must this cost wait, charge it, give
//! it back, and what does the bucket read. Deciding over several buckets is one piece of code
//! for all of them, [`step`].
//!
//! A file of an algorithm has all that is known of it: its state, the arithmetic, from when on a state
//! is as good as new, a state under another quota of its band, and the state as numbers ([`Bucket::encode`]).
//! A state outlives the numbers of its quota. Nothing needs to be done where only the rate or the amount
//! changed: a token bucket is a moment, and a window a count. What is done is for quotas that
//! [scale](Quota::scales), for a tick or a length of windows that is another, and for a token bucket that
//! begins or ends to lend. Where something has to be rounded, it is in favour of the limit.

pub mod fixed_window;
pub mod lent;
pub mod log;
pub mod sliding_window;
#[cfg(test)]
mod tests;
pub mod token_bucket;

pub use fixed_window::FixedWindow;
pub use lent::LendingBucket;
pub use log::Log;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

use crate::quota::{Basis, EXACT_MAX};
use crate::{Algorithm, Op, Outcome, Quota, Receipt, Timestamp, Wait, step};
use std::num::NonZeroU64;

/// The state of one bucket under one quota.
///
/// `quota` must be the one that the state was made for, or one of the same algorithm; `now` must
/// not run backwards, and if it does the state stays where it was: it refuses for longer.
pub trait BucketState {
    /// How long `cost` units must wait; none if they fit now. (A sliding log is never asked for more
    /// than [`Quota::cost_max`] at once; that is seen to by [`step`].)
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait;

    /// Takes `cost` units, which [`wait`](BucketState::wait) said fit.
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

    /// Makes a state that [is ahead](BucketState::is_ahead) one that is used up as of `now`, so that what
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
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading;

    /// The instant from which on this state is as good as new.
    fn fresh_at(&self, quota: &Quota) -> Timestamp;
}

/// What a bucket reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketReading {
    /// Whole units left.
    pub remaining: u64,
    /// Microseconds until the bucket is as good as new.
    pub reset_us: u64,
    /// What has been credited, where that is counted and there is a debt; see [`Outcome::mark`].
    pub mark: u64,
}

/// The state of one bucket, whichever its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    Lent(Box<LendingBucket>),
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
            Self::Lent(lent) => size_of_val::<LendingBucket>(lent),
            Self::Tokens(_) | Self::Fixed(_) | Self::Sliding(_) => 0,
        }
    }

    /// The same state under `quota`, where it was written under one of the same band with this basis.
    /// `None` if it is of another algorithm: then two hashes have collided.
    ///
    /// ```
    /// use tidegate_core::{Bucket, OnChange, Op, Quota, Timestamp, step};
    ///
    /// let quota = |amount| Quota::new(amount, 1_000_000).on_change(OnChange::Scale).build();
    /// let (before, after) = (quota(100)?, quota(200)?);
    /// let now = Timestamp::from_millis(1_700_000_000_000);
    /// let mut bucket = Bucket::new(&before);
    /// step::decide_one(&before, &mut bucket, Op::Take(50), now);
    ///
    /// let mut bucket = bucket.adapted(before.basis(), &after, now).expect("it is the same band");
    /// let half = step::decide_one(&after, &mut bucket, Op::Look, now);
    /// assert_eq!(half.remaining, 100);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn adapted(self, from: Basis, quota: &Quota, now: Timestamp) -> Option<Self> {
        Some(match (self, quota.algorithm()) {
            (Self::Tokens(tokens), Algorithm::TokenBucket) => {
                match tokens.adapted(from, quota, now) {
                    tokens if quota.lends() => {
                        Self::Lent(Box::new(LendingBucket::unknown(tokens, now)))
                    }
                    tokens => Self::Tokens(tokens),
                }
            }
            (Self::Lent(mut lent), Algorithm::TokenBucket) => {
                let before = std::mem::take(&mut lent.tokens);
                lent.tokens = before.adapted(from, quota, now);
                match quota.lends() {
                    false => Self::Tokens(lent.tokens),
                    true if lent.tokens.credits == before.credits => Self::Lent(lent),
                    true => Self::Lent(Box::new(LendingBucket::unknown(lent.tokens, now))),
                }
            }
            (Self::Fixed(window), Algorithm::FixedWindow(_)) => {
                Self::Fixed(window.adapted(from, quota))
            }
            (Self::Sliding(window), Algorithm::SlidingWindow) => {
                Self::Sliding(window.adapted(from, quota, now))
            }
            (Self::Log(log), Algorithm::SlidingLog | Algorithm::BucketedWindow) => Self::Log(log),
            (
                _,
                Algorithm::TokenBucket
                | Algorithm::FixedWindow(_)
                | Algorithm::SlidingWindow
                | Algorithm::SlidingLog
                | Algorithm::BucketedWindow,
            ) => return None,
        })
    }

    /// Writes the state as numbers, one `put` for each, as stores elsewhere keep it. The form never
    /// changes; what is added to it is told apart by the count of numbers.
    ///
    /// | state | numbers |
    /// |---|---|
    /// | token bucket | `at`, `fraction`; if refundable, also what was credited: `since`, `ticks`; if it lends, then up to eight lows of `at`, `ticks`, earliest first |
    /// | fixed window | `start`, `used` |
    /// | sliding window | `index`, `current`, `previous`, and the length of a window in microseconds |
    /// | sliding log, bucketed window | all units, then runs of `stamp`, `units`, oldest first |
    ///
    /// The [code of the quota's basis](Quota::basis_code) comes last, if there is one.
    ///
    /// ```
    /// use tidegate_core::{Bucket, Op, Quota, Timestamp, step};
    ///
    /// let (quota, now) = (Quota::new(100, 1_000_000).build()?, Timestamp::from_millis(1_700_000_000_000));
    /// let mut bucket = Bucket::new(&quota);
    /// step::decide_one(&quota, &mut bucket, Op::Take(50), now);
    ///
    /// let mut numbers = Vec::new();
    /// bucket.encode(&quota, &mut |number| numbers.push(number));
    /// assert_eq!(Bucket::decode(numbers.into_iter(), &quota, now), Some(bucket));
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn encode(&self, quota: &Quota, put: &mut impl FnMut(u64)) {
        match self {
            Self::Tokens(tokens) => LendingBucket::encode_tokens(*tokens, quota, put),
            Self::Lent(lent) => lent.encode(quota, put),
            Self::Fixed(window) => window.encode(put),
            Self::Sliding(window) => window.encode(quota, put),
            Self::Log(log) => log.encode(put),
        }
        quota.basis_code().into_iter().for_each(put);
    }

    /// Reads what [`encode`](Self::encode) wrote under this quota or another of its band. `None` if the
    /// numbers cannot be of its algorithm.
    pub fn decode(
        numbers: impl ExactSizeIterator<Item = u64>,
        quota: &Quota,
        now: Timestamp,
    ) -> Option<Self> {
        let (bucket, basis) = match quota.algorithm() {
            Algorithm::TokenBucket => LendingBucket::decode(numbers, quota, now)?,
            Algorithm::FixedWindow(_) => FixedWindow::decode(numbers)?,
            Algorithm::SlidingWindow => SlidingWindow::decode(numbers, quota)?,
            Algorithm::SlidingLog | Algorithm::BucketedWindow => Log::decode(numbers)?,
        };
        bucket.adapted(basis, quota, now)
    }

    /// The instant in microseconds from which on what [`encode`](Self::encode) wrote counts as absent;
    /// 2^53 stands for any that is later.
    pub fn expires_us(&self, quota: &Quota) -> u64 {
        match self {
            // Without a count there is no window, wherever the clock has been.
            Self::Fixed(FixedWindow { used: 0, .. })
            | Self::Sliding(SlidingWindow {
                current: 0,
                previous: 0,
                ..
            }) => 0,
            Self::Tokens(_) | Self::Lent(_) | Self::Fixed(_) | Self::Sliding(_) | Self::Log(_) => {
                self.fresh_at(quota).as_micros().min(EXACT_MAX)
            }
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

impl BucketState for Bucket {
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
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        each!(self, state => state.reading(quota, now))
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        each!(self, state => state.fresh_at(quota))
    }
}

fn whole(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}
