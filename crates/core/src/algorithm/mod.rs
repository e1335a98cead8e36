//! The algorithms: pure functions over exact integers.
//!
//! Each state implements the same operations ([`BucketState`]): the wait for a cost, charge, refund
//! and reading. Deciding over several buckets is one piece of code for all of them,
//! [`step`](crate::step).
//!
//! | algorithm | state | file |
//! |---|---|---|
//! | token bucket, leaky bucket, GCRA | the instant at which the debt is paid off | [`token_bucket`] |
//! | token bucket that lends | the same, and the lowest debts of late | [`lent`] |
//! | fixed window | start and count | [`fixed_window`] |
//! | calendar window | end, count and last charge | [`calendar_window`] |
//! | sliding window | two counters | [`sliding_window`] |
//! | sliding log, bucketed window | runs of units with their stamps | [`log`] |
//! | permits in flight | a count, and those that end by themselves | [`permits`] |
//!
//! The file of an algorithm has everything about it: its state, the arithmetic, the instant from
//! which a state is full again, a state under another quota of its band, and the state as numbers
//! ([`Bucket::encode`]). The state as numbers for a store that knows no quota is in `numbers`, and what
//! the two fixed kinds of windows share in `count`.
//!
//! A state outlives the numbers of its quota. A new rate or amount needs no conversion: a token
//! bucket is an instant, and a window a count. Conversion is needed for quotas that
//! [scale](Quota::scales), for another tick or window length, and for a token bucket that begins or
//! stops lending. Rounding favours the limit.

pub mod calendar_window;
mod count;
pub mod fixed_window;
pub mod lent;
pub mod log;
mod numbers;
pub mod permits;
pub(crate) mod questions;
pub mod sliding_window;
#[cfg(test)]
mod tests;
pub mod token_bucket;

pub use calendar_window::CalendarWindow;
pub use fixed_window::FixedWindow;
pub use lent::LendingBucket;
pub use log::Log;
pub use permits::Permits;
pub use sliding_window::SlidingWindow;
pub use token_bucket::TokenBucket;

use crate::ask::{PermitId, PermitTerms};
use crate::quota::{Basis, EXACT_MAX};
use crate::{Algorithm, BucketReading, Op, Outcome, Quota, Receipt, Timestamp, Wait};
use std::num::NonZeroU64;

/// The state of one bucket under one quota.
///
/// `quota` must be the one that the state was made for, or one of the same algorithm; `now` must
/// not run backwards, and if it does the state stays where it was: it refuses for longer.
pub trait BucketState {
    /// Returns the wait until `cost` units fit; [`Wait::NONE`] if they fit now.
    ///
    /// [`step`](crate::step) never passes a sliding log more than [`Quota::cost_max`] at once.
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait;

    /// Charges `cost` units, which must fit according to [`wait`](BucketState::wait).
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp);

    /// Takes `cost` units whether they fit or not, down to the quota's overdraft. A state deeper
    /// than that already stays as it is. Returns the whole units that were taken.
    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64;

    /// Refunds the charge of `receipt`, as far as that is safe. Returns the increase of the credit
    /// count, if the state has one; see [`Outcome::mark`].
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64;

    /// Returns true if the state is further ahead of `now` than this quota can have brought it.
    /// Reasons: the clock has gone far back, the quota was cut, or `now` is outdated.
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool;

    /// Makes a state that [is beyond reach](BucketState::is_beyond_reach) one that is used up as of `now`, so that what
    /// it owes to another clock or quota refuses no longer than what this one can owe. Does nothing
    /// to any other state.
    ///
    /// `now` must have been read after the state: as of an earlier instant, a state that others have
    /// charged since would be put back, and what they took given out again.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp);

    /// Charges `cost` units, at least one, if they fit, and returns the outcome.
    ///
    /// Nearly every request does this. So a state may compute it directly instead of through the
    /// methods above, as the default does. The result must be the same.
    #[inline]
    fn take(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> Outcome
    where
        Self: Sized,
    {
        questions::decide_by_questions(quota, self, Op::Take(cost), now).outcome
    }

    /// Returns the remaining units and the time until the bucket is full again.
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading;

    /// Returns the instant from which this state equals a new one. A store may forget it then.
    fn fresh_at(&self, quota: &Quota) -> Timestamp;

    /// Returns true if it has permits of this id that have not ended. Only [`Permits`] have any.
    #[inline]
    fn has_permits(&self, _id: PermitId, _now: Timestamp) -> bool {
        false
    }

    /// Returns the wait of an [`Op::Acquire`], if other asks take `beside` units first.
    fn acquire_wait(&self, quota: &Quota, terms: PermitTerms, beside: u64, now: Timestamp) -> Wait {
        match terms.units {
            0 => Wait::NONE,
            units => self.wait(quota, units.saturating_add(beside), now),
        }
    }

    /// Carries out an [`Op::Acquire`] that fits, and returns the units charged.
    fn acquire(&mut self, quota: &Quota, terms: PermitTerms, now: Timestamp) -> u64 {
        self.charge(quota, terms.units, now);
        terms.units
    }

    /// Carries out an [`Op::Renew`].
    fn renew(&mut self, _id: PermitId, _ttl_us: u64, _now: Timestamp) {}

    /// Carries out an [`Op::Release`], and returns the units that are free again.
    fn release(&mut self, _id: PermitId, _now: Timestamp) -> u64 {
        0
    }
}

/// The state of one bucket, whichever its algorithm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// Of a token bucket.
    Tokens(TokenBucket),
    /// Of a fixed window.
    Fixed(FixedWindow),
    /// Of a calendar window.
    Calendar(CalendarWindow),
    /// Of a sliding window.
    Sliding(SlidingWindow),
    /// Of a sliding log or a bucketed window.
    Log(Log),
    /// Of a token bucket that [lends](Quota::lends).
    Lent(Box<LendingBucket>),
    /// Of a limit of requests in flight.
    Permits(Permits),
}

impl Bucket {
    /// Creates a full bucket, with the state that the quota's algorithm needs.
    pub fn new(quota: &Quota) -> Self {
        match quota.algorithm() {
            Algorithm::TokenBucket if quota.lends() => Self::Lent(Box::default()),
            Algorithm::TokenBucket => Self::Tokens(TokenBucket::default()),
            Algorithm::FixedWindow(_) => Self::Fixed(FixedWindow::default()),
            Algorithm::CalendarWindow => Self::Calendar(CalendarWindow::default()),
            Algorithm::SlidingWindow => Self::Sliding(SlidingWindow::default()),
            Algorithm::SlidingLog | Algorithm::BucketedWindow => Self::Log(Log::default()),
            Algorithm::Concurrent => Self::Permits(Permits::default()),
        }
    }

    /// Returns the memory that it holds beyond its own size, in bytes.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Self::Log(log) => log.heap_bytes(),
            Self::Lent(lent) => size_of_val::<LendingBucket>(lent),
            Self::Permits(permits) => permits.heap_bytes(),
            Self::Tokens(_) | Self::Fixed(_) | Self::Calendar(_) | Self::Sliding(_) => 0,
        }
    }

    /// Returns the same state under `quota`, where it was written under one of the same band with
    /// this basis. `None` if it is of another algorithm: then two hashes have collided.
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
                lent.tokens = lent.tokens.adapted(from, quota, now);
                match quota.lends() {
                    false => Self::Tokens(lent.tokens),
                    true if from.keeps_ticks(quota.basis()) => Self::Lent(lent),
                    true => Self::Lent(Box::new(LendingBucket::unknown(lent.tokens, now))),
                }
            }
            (Self::Fixed(window), Algorithm::FixedWindow(_)) => {
                Self::Fixed(window.adapted(from, quota))
            }
            (Self::Calendar(window), Algorithm::CalendarWindow) => {
                Self::Calendar(window.adapted(from, quota))
            }
            (Self::Sliding(window), Algorithm::SlidingWindow) => {
                Self::Sliding(window.adapted(from, quota, now))
            }
            (Self::Log(log), Algorithm::SlidingLog | Algorithm::BucketedWindow) => Self::Log(log),
            // A lower limit takes nothing away.
            (Self::Permits(permits), Algorithm::Concurrent) => Self::Permits(permits),
            (
                _,
                Algorithm::TokenBucket
                | Algorithm::FixedWindow(_)
                | Algorithm::SlidingWindow
                | Algorithm::SlidingLog
                | Algorithm::BucketedWindow
                | Algorithm::CalendarWindow
                | Algorithm::Concurrent,
            ) => return None,
        })
    }

    /// Writes the state as numbers, one `put` for each, for stores outside this process. The form
    /// never changes; additions are recognized by the count of numbers.
    ///
    /// | state | numbers |
    /// |---|---|
    /// | token bucket | `at`, `fraction`; if refundable, also the credits: `since`, `ticks`; if it lends, then up to eight lows of `at`, `ticks`, earliest first |
    /// | fixed window | `start`, `used` |
    /// | calendar window | `end`, `used`, and when it was last charged |
    /// | sliding window | `index`, `current`, `previous`, and the length of a window in microseconds |
    /// | sliding log, bucketed window | all units, then runs of `stamp`, `units`, oldest first |
    /// | permits | those that guards hold; then of each id both halves, the units and the end, earliest first |
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
            Self::Calendar(window) => window.encode(put),
            Self::Sliding(window) => window.encode(quota, put),
            Self::Log(log) => log.encode(put),
            Self::Permits(permits) => permits.encode(put),
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
            Algorithm::CalendarWindow => CalendarWindow::decode(numbers)?,
            Algorithm::SlidingWindow => SlidingWindow::decode(numbers, quota)?,
            Algorithm::SlidingLog | Algorithm::BucketedWindow => Log::decode(numbers)?,
            Algorithm::Concurrent => Permits::decode(numbers)?,
        };
        bucket.adapted(basis, quota, now)
    }

    /// Returns the instant in microseconds from which on what [`encode`](Self::encode) wrote counts
    /// as absent; 2^53 stands for any that is later.
    pub fn expires_us(&self, quota: &Quota) -> u64 {
        match self {
            // Without a count there is no window, wherever the clock has been.
            Self::Fixed(FixedWindow { used: 0, .. })
            | Self::Calendar(CalendarWindow { used: 0, .. })
            | Self::Sliding(SlidingWindow {
                current: 0,
                previous: 0,
                ..
            }) => 0,
            Self::Tokens(_)
            | Self::Lent(_)
            | Self::Fixed(_)
            | Self::Calendar(_)
            | Self::Sliding(_)
            | Self::Log(_)
            | Self::Permits(_) => self.fresh_at(quota).as_micros().min(EXACT_MAX),
        }
    }
}

/// Calls the same method of whichever state it is.
macro_rules! each {
    ($bucket:expr, $state:ident => $call:expr) => {
        match $bucket {
            Bucket::Tokens($state) => $call,
            Bucket::Fixed($state) => $call,
            Bucket::Calendar($state) => $call,
            Bucket::Sliding($state) => $call,
            Bucket::Log($state) => $call,
            Bucket::Lent($state) => $call,
            Bucket::Permits($state) => $call,
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
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        each!(self, state => state.is_beyond_reach(quota, now))
    }

    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        each!(self, state => state.clamp_to_now(quota, now));
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

    fn has_permits(&self, id: PermitId, now: Timestamp) -> bool {
        each!(self, state => state.has_permits(id, now))
    }

    fn acquire_wait(&self, quota: &Quota, terms: PermitTerms, beside: u64, now: Timestamp) -> Wait {
        each!(self, state => state.acquire_wait(quota, terms, beside, now))
    }

    fn acquire(&mut self, quota: &Quota, terms: PermitTerms, now: Timestamp) -> u64 {
        each!(self, state => state.acquire(quota, terms, now))
    }

    fn renew(&mut self, id: PermitId, ttl_us: u64, now: Timestamp) {
        each!(self, state => state.renew(id, ttl_us, now));
    }

    fn release(&mut self, id: PermitId, now: Timestamp) -> u64 {
        each!(self, state => state.release(id, now))
    }
}

/// Returns the number, or 1 for 0, as a divisor.
fn whole(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}
