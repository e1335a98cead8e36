//! A state under another quota of its band: what was written before the numbers changed, read by those
//! that hold now.
//!
//! Nothing needs to be done where only the rate or the amount changed: a token bucket is a moment, and
//! a window a count. What is done here is for those that [scale](Quota::scales), for a tick or a length
//! of windows that is another, and for a token bucket that begins or ends to lend. Where something has
//! to be rounded, it is in favour of the limit.

use super::token_bucket::Credits;
use super::{Bucket, FixedWindow, Lent, SlidingWindow, TokenBucket};
use crate::quota::{Basis, EXACT_MAX, same_share};
use crate::{Algorithm, Quota, Timestamp};
use std::num::NonZeroU64;

impl Bucket {
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
        Some(match (quota.algorithm(), self) {
            (Algorithm::TokenBucket, Self::Tokens(tokens)) => {
                match tokens.adapted(from, quota, now) {
                    tokens if quota.lends() => Self::Lent(Box::new(Lent::unknown(tokens, now))),
                    tokens => Self::Tokens(tokens),
                }
            }
            (Algorithm::TokenBucket, Self::Lent(mut lent)) => {
                let before = std::mem::take(&mut lent.tokens);
                lent.tokens = before.adapted(from, quota, now);
                match quota.lends() {
                    false => Self::Tokens(lent.tokens),
                    true if lent.tokens.credits == before.credits => Self::Lent(lent),
                    true => Self::Lent(Box::new(Lent::unknown(lent.tokens, now))),
                }
            }
            (Algorithm::FixedWindow(_), Self::Fixed(window)) => {
                Self::Fixed(window.adapted(from, quota))
            }
            (Algorithm::SlidingWindow, Self::Sliding(window)) => {
                Self::Sliding(window.adapted(from, quota, now))
            }
            (Algorithm::SlidingLog | Algorithm::BucketedWindow, Self::Log(log)) => Self::Log(log),
            _ => return None,
        })
    }
}

impl Basis {
    /// Whether what was used under it has to be scaled to be read under `own`.
    fn is_scaled_to(self, own: Self) -> bool {
        let differ = (self.whole, self.tick_us) != (own.whole, own.tick_us);
        self.whole > 0 && own.whole > 0 && differ
    }
}

impl TokenBucket {
    /// The state under `quota`. Where ticks or debts come to mean something else, nothing is known of
    /// what was credited before.
    fn adapted(self, from: Basis, quota: &Quota, now: Timestamp) -> Self {
        let own = quota.basis();
        let last = self.at.saturating_add(u64::from(self.fraction > 0));
        let at = if from.is_scaled_to(own) {
            let owed = last.saturating_sub(now.as_micros() / whole(from.tick_us));
            let owed = same_share(owed, from.whole, quota.whole_up());
            (now.as_micros() / whole(own.tick_us)).saturating_add(owed)
        } else if from.tick_us > own.tick_us {
            last.saturating_mul(from.tick_us / whole(own.tick_us))
        } else if from.tick_us < own.tick_us {
            last.div_ceil((own.tick_us / whole(from.tick_us)).max(1))
        } else if from.parts != own.parts {
            return Self {
                at: last,
                fraction: 0,
                ..self
            };
        } else {
            return self;
        };
        Self {
            at: at.min(EXACT_MAX),
            fraction: 0,
            credits: if quota.is_refundable() {
                Credits::unknown(now)
            } else {
                Credits::default()
            },
        }
    }
}

impl Credits {
    /// What was credited to a state that did not count it: nothing is known of the time before.
    pub fn unknown(now: Timestamp) -> Self {
        Self {
            since: now.as_micros(),
            ticks: 0,
        }
    }
}

impl FixedWindow {
    fn adapted(self, from: Basis, quota: &Quota) -> Self {
        if !from.is_scaled_to(quota.basis()) {
            return self;
        }
        Self {
            used: same_share(self.used, from.whole, quota.whole_up()),
            ..self
        }
    }
}

impl SlidingWindow {
    fn adapted(self, from: Basis, quota: &Quota, now: Timestamp) -> Self {
        let own = quota.basis();
        let scaled = |used| {
            if from.is_scaled_to(own) {
                same_share(used, from.whole, quota.whole_up())
            } else {
                used
            }
        };
        let scaled = Self {
            index: self.index,
            current: scaled(self.current),
            previous: scaled(self.previous),
        };
        let window = if from.period_us == own.period_us {
            scaled
        } else {
            scaled.of_length(from.period_us, own.period_us, now)
        };
        // A count that a larger amount left; all products of this quota are to stay exact.
        let most = EXACT_MAX.saturating_sub(1) / 2 / quota.period;
        Self {
            current: window.current.min(most),
            previous: window.previous.min(most),
            ..window
        }
    }

    /// The counts in windows of another length. What was counted in a window counts as if it had been
    /// at its end, or now if that has not come.
    fn of_length(self, from_us: u64, to_us: u64, now: Timestamp) -> Self {
        let start = self.index.saturating_mul(from_us).min(EXACT_MAX);
        let end = start.saturating_add(from_us.saturating_sub(1));
        let latest = end.min(now.as_micros().max(start)) / whole(to_us);
        let before = start.saturating_sub(1) / whole(to_us);
        let newest = if self.current > 0 { latest } else { before };
        let index = newest.max(now.as_micros() / whole(to_us));
        let counted = |window: u64| {
            let at = |used: u64, of: u64| if of == window { used } else { 0 };
            at(self.current, latest).saturating_add(at(self.previous, before))
        };
        Self {
            index,
            current: counted(index),
            previous: index.checked_sub(1).map_or(0, counted),
        }
    }
}

fn whole(number: u64) -> NonZeroU64 {
    NonZeroU64::new(number).unwrap_or(NonZeroU64::MIN)
}
