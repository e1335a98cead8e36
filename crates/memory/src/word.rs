//! A bucket's state in 64 bits, one of them a lock.
//!
//! ```text
//!  63                                              13 12           1   0
//! ┌──────────────────────────────────────────────────┬──────────────┬───┐
//! │ instant: microseconds since the store began (51) │ small (12)   │ L │
//! └──────────────────────────────────────────────────┴──────────────┴───┘
//! ```
//!
//! The instant is, to the microsecond, when the bucket is as good as new, so that whoever looks for
//! room can tell without knowing the quota. The small number is the fraction of a token bucket's
//! last tick, or a fixed window's count. A word of all zeros is a bucket as good as new.

use tidegate_core::algorithm::{FixedWindow, TokenBucket};
use tidegate_core::{Bucket, BucketState, Outcome, Quota, Timestamp};

/// Evaluates `$call` with `$State` as the state that a word of `$quota` holds.
macro_rules! with_state {
    ($quota:expr, $State:ident => $call:expr) => {
        match $quota.algorithm() {
            tidegate_core::Algorithm::FixedWindow(_) => {
                type $State = tidegate_core::algorithm::FixedWindow;
                $call
            }
            // The last three are never words.
            tidegate_core::Algorithm::TokenBucket
            | tidegate_core::Algorithm::SlidingWindow
            | tidegate_core::Algorithm::SlidingLog
            | tidegate_core::Algorithm::BucketedWindow => {
                type $State = tidegate_core::algorithm::TokenBucket;
                $call
            }
        }
    };
}
pub(crate) use with_state;

/// Set while a thread changes several words at once.
pub const LOCKED: u64 = 1;

const SMALL_BITS: u32 = 12;
const INSTANT_SHIFT: u32 = SMALL_BITS + 1;

/// Small numbers in a word are below this.
pub const SMALL_END: u64 = 1 << SMALL_BITS;

// What core calls narrow fits.
const _: () = assert!(SMALL_END >= tidegate_core::quota::NARROW_END);

/// Instants in a word are below this: 71 years after the store began.
pub const INSTANT_END: u64 = 1 << (64 - INSTANT_SHIFT);

/// Puts an instant and a small number into an unlocked word. What is too large becomes the largest
/// that fits; [`Place`](crate::store) sends such states to the records instead.
#[inline]
pub fn pack(instant: u64, small: u64) -> u64 {
    let instant = instant.min(INSTANT_END - 1);
    let small = small.min(SMALL_END - 1);
    instant << INSTANT_SHIFT | small << 1
}

/// The instant of a word.
#[inline]
pub fn instant(word: u64) -> u64 {
    word >> INSTANT_SHIFT
}

/// The small number of a word.
#[inline]
pub fn small(word: u64) -> u64 {
    word >> 1 & (SMALL_END - 1)
}

/// The word of a bucket that is as good as new from `now` on. It is like no word before it.
#[inline]
pub fn fresh(now: u64) -> u64 {
    pack(now, 0)
}

/// Whether the bucket is as good as new at `now`, and not in anybody's hands.
#[inline]
pub fn is_fresh(word: u64, now: u64) -> bool {
    // A token bucket with a fraction is paid off within the microsecond after its instant.
    word & LOCKED == 0 && instant(word) < now
}

/// A state that is an instant and a small number.
pub trait Narrow: BucketState + Copy {
    /// The bucket of such a state.
    const BUCKET: fn(Self) -> Bucket;

    /// The state in `word` of a store that began at `epoch`.
    fn unpack(word: u64, epoch: u64, quota: &Quota) -> Self;
    /// Takes `cost` units, at least one, if they fit: the state afterwards and the answer, or `None`
    /// where something is out of the ordinary.
    fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)>;
    /// The unlocked word for this state.
    fn pack(&self, epoch: u64, quota: &Quota) -> u64;
}

impl Narrow for TokenBucket {
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

impl Narrow for FixedWindow {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_keeps_what_is_put_into_it() {
        for at in [0, 1, 999_999, INSTANT_END - 1] {
            for n in [0, 1, 6, SMALL_END - 1] {
                let word = pack(at, n);
                assert_eq!((instant(word), small(word), word & LOCKED), (at, n, 0));
            }
        }
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
