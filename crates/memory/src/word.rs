//! A bucket's state in 64 bits, one of them a lock.
//!
//! ```text
//!  63                                              13 12           1   0
//! ┌──────────────────────────────────────────────────┬──────────────┬───┐
//! │ instant: microseconds since the store began (51) │ small (12)   │ L │
//! └──────────────────────────────────────────────────┴──────────────┴───┘
//! ```
//!
//! The instant is, to the microsecond, the time at which the bucket is full again. So a search for
//! a free slot needs no quota. The small number is the fraction of a token bucket's last tick, or a
//! window's count. A word of all zeros is a full bucket.
//!
//! # Example
//!
//! ```
//! use tidegate_memory::word;
//!
//! let word = word::pack(1_000, 7);
//! assert!(!word::is_fresh(word, 999));
//! assert!(word::is_fresh(word::fresh(500), 501));
//! ```

use tidegate_core::algorithm::{CalendarWindow, FixedWindow, TokenBucket};
use tidegate_core::{Bucket, BucketState, Outcome, Quota, Timestamp};

/// Evaluates `$call` with `$State` as the type of state in a word of `$quota`.
macro_rules! with_state {
    ($quota:expr, $State:ident => $call:expr) => {
        match $quota.algorithm() {
            tidegate_core::Algorithm::FixedWindow(_) => {
                type $State = tidegate_core::algorithm::FixedWindow;
                $call
            }
            tidegate_core::Algorithm::CalendarWindow => {
                type $State = tidegate_core::algorithm::CalendarWindow;
                $call
            }
            // The last four are never words.
            tidegate_core::Algorithm::TokenBucket
            | tidegate_core::Algorithm::SlidingWindow
            | tidegate_core::Algorithm::SlidingLog
            | tidegate_core::Algorithm::BucketedWindow
            | tidegate_core::Algorithm::Concurrent => {
                type $State = tidegate_core::algorithm::TokenBucket;
                $call
            }
        }
    };
}
pub(crate) use with_state;

/// Bit that is set while a thread changes several words at once.
pub const LOCKED: u64 = 1;

/// Bits of the small number.
const SMALL_BITS: u32 = 12;
/// Bits below the instant: the small number and the lock.
const INSTANT_SHIFT: u32 = SMALL_BITS + 1;

/// End of the range of small numbers.
pub const SMALL_END: u64 = 1 << SMALL_BITS;

// A narrow state, as defined by core, fits.
const _: () = assert!(SMALL_END >= tidegate_core::quota::NARROW_END);

/// End of the range of instants: 71 years after the store began.
pub const INSTANT_END: u64 = 1 << (64 - INSTANT_SHIFT);

/// Packs an instant and a small number into an unlocked word. Larger values are cut to the largest
/// that fits; the [store](crate::store) keeps such states in the records instead.
///
/// ```
/// use tidegate_memory::word;
///
/// let word = word::pack(1_000, 7);
/// assert_eq!((word::instant(word), word::small(word)), (1_000, 7));
/// assert_eq!(word & word::LOCKED, 0);
/// assert_eq!(word::small(word::pack(0, u64::MAX)), word::SMALL_END - 1);
/// ```
#[inline]
pub fn pack(instant: u64, small: u64) -> u64 {
    let instant = instant.min(INSTANT_END - 1);
    let small = small.min(SMALL_END - 1);
    instant << INSTANT_SHIFT | small << 1
}

/// Returns the instant of a word, in microseconds since the store began.
#[inline]
pub fn instant(word: u64) -> u64 {
    word >> INSTANT_SHIFT
}

/// Returns the small number of a word.
#[inline]
pub fn small(word: u64) -> u64 {
    word >> 1 & (SMALL_END - 1)
}

/// Returns the word of a bucket that is full from `now` on. It differs from every word before it.
///
/// ```
/// use tidegate_memory::word;
///
/// let word = word::fresh(1_000);
/// assert_eq!((word::instant(word), word::small(word)), (1_000, 0));
/// assert!(word::is_fresh(word, 1_001));
/// ```
#[inline]
pub fn fresh(now: u64) -> u64 {
    pack(now, 0)
}

/// Returns true if the bucket was full before `now`, and its word is not locked.
///
/// ```
/// use tidegate_memory::word;
///
/// let word = word::pack(1_000, 0);
/// assert!(!word::is_fresh(word, 1_000));
/// assert!(word::is_fresh(word, 1_001));
/// assert!(!word::is_fresh(word | word::LOCKED, 1_001));
/// ```
#[inline]
pub fn is_fresh(word: u64, now: u64) -> bool {
    // A token bucket with a fraction is paid off within the microsecond after its instant.
    word & LOCKED == 0 && instant(word) < now
}

/// A state that is an instant and a small number, so that it fits a word.
///
/// A token bucket's word has the instant at which its debt is paid off, and the fraction of the
/// last tick. A fixed window's word has the end of the window, and its count. A calendar window ends
/// with a whole second, so that the instant also has the time of the last charge.
/// [`Quota::is_narrow`] decides which quotas have such states.
pub trait NarrowState: BucketState + Copy {
    /// Constructor of the [`Bucket`] of such a state.
    const BUCKET: fn(Self) -> Bucket;

    /// Reads the state in `word`, for a store that began at `epoch`.
    ///
    /// A word that the caller has just [packed](Self::pack) reads as the same state, except that the last charge of a
    /// calendar window may be up to four minutes later, in the same window.
    fn unpack(word: u64, epoch: u64, quota: &Quota) -> Self;
    /// Takes `cost` units, at least one, if they fit. Returns the next state and the outcome;
    /// `None` for cases that [`BucketState::take`] has to handle.
    fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)>;
    /// Returns the unlocked word for this state. Its instant is that at which the bucket is full, or up to a second
    /// later; of a calendar window whose period is none of the calendar's, up to four times as late.
    fn pack(&self, epoch: u64, quota: &Quota) -> u64;
}

impl NarrowState for TokenBucket {
    const BUCKET: fn(Self) -> Bucket = Bucket::Tokens;

    #[inline]
    fn unpack(word: u64, epoch: u64, _quota: &Quota) -> Self {
        Self {
            at: epoch.saturating_add(instant(word)),
            fraction: small(word),
            ..Self::default()
        }
    }

    #[inline]
    fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)> {
        TokenBucket::take_usual(self, quota, cost, now)
    }

    #[inline]
    fn pack(&self, epoch: u64, _quota: &Quota) -> u64 {
        pack(self.at.saturating_sub(epoch), self.fraction)
    }
}

impl NarrowState for FixedWindow {
    const BUCKET: fn(Self) -> Bucket = Bucket::Fixed;

    #[inline]
    fn unpack(word: u64, epoch: u64, quota: &Quota) -> Self {
        let end = epoch.saturating_add(instant(word));
        match small(word) {
            0 => Self {
                start: end,
                used: 0,
            },
            used => Self {
                start: end.saturating_sub(quota.period_us()),
                used,
            },
        }
    }

    #[inline]
    fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)> {
        FixedWindow::take_usual(self, quota, cost, now)
    }

    #[inline]
    fn pack(&self, epoch: u64, quota: &Quota) -> u64 {
        let end = match self.used {
            // No window, since it was to begin.
            0 => self.start,
            _ => self.start.saturating_add(quota.period_us()),
        };
        pack(end.saturating_sub(epoch), self.used)
    }
}

/// A second, with which calendar windows end, in microseconds.
const SECOND_US: u64 = 1_000_000;

/// An hour.
const HOUR_US: u64 = 3_600 * SECOND_US;

/// The times for which charges matter: none beyond the window of a quota without a calendar, and
/// [`Quota::reach_us`] of an hour, a day, a week, a month, a quarter and a year.
const REACHES_US: [u64; 7] = [
    0,
    2 * HOUR_US,
    48 * HOUR_US,
    8 * 24 * HOUR_US,
    32 * 24 * HOUR_US,
    93 * 24 * HOUR_US,
    REACH_US_MAX,
];

/// The longest time for which a charge matters.
pub(crate) const REACH_US_MAX: u64 = 367 * 24 * HOUR_US;

/// The most steps from the last charge to the end of a window.
const STEPS_MAX: u64 = 1 << 17;

/// The number of steps, with 0.
const STEPS: u64 = STEPS_MAX + 1;

// The number of the reach and the steps are microseconds of a second.
const _: () = assert!(7 * STEPS < SECOND_US);

/// Returns the microseconds of a step.
const fn step_us(reach_us: u64) -> u64 {
    match reach_us {
        // Only the window of the last charge matters, which is that of the end.
        0 => HOUR_US,
        reach_us => reach_us / STEPS_MAX,
    }
}

/// Returns how long after the end of its window a state matters, in whole seconds, if the last charge was `before_us`
/// before the end.
const fn beyond_us(reach_us: u64, before_us: u64) -> u64 {
    let before = before_us - before_us % SECOND_US;
    reach_us.saturating_sub(before)
}

/// The instant is a whole second, that in which the last charge no longer matters. As microseconds of the second it
/// has the number of the reach and the steps between the last charge and the end of the window. Both tell how
/// long that second is after the end, so that the end is exact. The number of the reach is that of the quota under
/// which the word was written: another one may read it. Read back, the charge is up to a step late, in
/// the same window. That matters only if the starts change, and then in favour of the limit.
///
/// A state without a count has an instant that lies in the past, as every full bucket has.
impl NarrowState for CalendarWindow {
    const BUCKET: fn(Self) -> Bucket = Bucket::Calendar;

    #[inline]
    fn unpack(word: u64, epoch: u64, _quota: &Quota) -> Self {
        let instant = epoch.saturating_add(instant(word));
        match small(word) {
            0 => Self {
                end: 0,
                used: 0,
                at: instant,
            },
            used => {
                let (number, steps) = (instant % SECOND_US / STEPS, instant % SECOND_US % STEPS);
                let number = usize::try_from(number).unwrap_or(0);
                let reach_us = REACHES_US.get(number).copied().unwrap_or(0);
                let before = steps.saturating_mul(step_us(reach_us));
                let full = instant.saturating_sub(instant % SECOND_US);
                let end = full.saturating_sub(beyond_us(reach_us, before));
                let at = end.saturating_sub(before.max(1));
                Self { end, used, at }
            }
        }
    }

    #[inline]
    fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)> {
        CalendarWindow::take_usual(self, quota, cost, now)
    }

    #[inline]
    fn pack(&self, epoch: u64, quota: &Quota) -> u64 {
        let instant = match self.used {
            // No window, since it was to begin.
            0 => self.at,
            _ => {
                let reach = quota.reach_us();
                let mut reaches = (0..).zip(REACHES_US);
                let (number, reach_us) = reaches.find(|(_, it)| *it >= reach).unwrap_or((0, 0));
                let step = step_us(reach_us);
                let steps = (self.end.saturating_sub(self.at) / step).min(STEPS_MAX);
                let beyond = beyond_us(reach_us, steps.saturating_mul(step));
                let code: u64 = number * STEPS + steps;
                self.end.saturating_add(beyond).saturating_add(code)
            }
        };
        pack(instant.saturating_sub(epoch), self.used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_round_trips_its_state() {
        for at in [0, 1, 999_999, INSTANT_END - 1] {
            for n in [0, 1, 6, SMALL_END - 1] {
                let word = pack(at, n);
                assert_eq!((instant(word), small(word), word & LOCKED), (at, n, 0));
            }
        }
    }

    #[test]
    fn a_word_of_a_calendar_window_has_its_exact_end_and_lasts_until_no_window_can_contain_its_charge()
     {
        const EPOCH: u64 = 1_700_000_000_123_456;
        let day = 24 * HOUR_US;
        let quota = |period_us: u64| {
            let spec = Quota::new(5, period_us).algorithm(tidegate_core::Algorithm::CalendarWindow);
            let calendar = tidegate_core::quota::CalendarCode::new(std::num::NonZeroU64::MIN);
            spec.calendar(calendar).build().unwrap()
        };
        let periods = [
            HOUR_US,
            5_000 * SECOND_US,
            day,
            7 * day,
            31 * day,
            92 * day,
            366 * day,
        ];
        for period in periods {
            let own = quota(period);
            assert!(own.is_narrow());
            let end = 1_790_000_000 * SECOND_US;
            for before in [
                1,
                SECOND_US,
                61 * SECOND_US + 7,
                period / 3,
                period,
                own.reach_us(),
            ] {
                let at = end - before;
                let state = CalendarWindow { end, used: 3, at };
                let word = state.pack(EPOCH, &own);
                let full = state.fresh_at(&own).as_micros();
                assert!(EPOCH + instant(word) >= full, "{period} {before}");
                for other in periods {
                    let read = CalendarWindow::unpack(word, EPOCH, &quota(other));
                    assert_eq!((read.end, read.used), (end, 3), "{period} {before}");
                    let late = read.at - at;
                    assert!(
                        late <= step_us(REACH_US_MAX) && read.at < end,
                        "{period} {before}"
                    );
                }
                let read = CalendarWindow::unpack(word, EPOCH, &own);
                assert_eq!(read.pack(EPOCH, &own), word, "{period} {before}");
            }
        }
        assert!(!quota(400 * day).is_narrow());
    }

    #[test]
    fn a_bucket_is_fresh_only_after_its_instant_and_never_while_locked() {
        let word = pack(100, 3);
        assert!(!is_fresh(word, 100));
        assert!(is_fresh(word, 101));
        assert!(!is_fresh(word | LOCKED, 101));
        assert!(is_fresh(0, 1));
    }
}
