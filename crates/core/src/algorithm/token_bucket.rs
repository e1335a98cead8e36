//! Token bucket, leaky bucket and GCRA: one state, the moment at which the debt is paid off.
//!
//! A unit of cost incurs a debt of `price`; each tick pays off `drain`. With `L` units per `P`
//! ticks these are `P / gcd` and `L / gcd`, so that both are whole and nothing is ever rounded. The
//! debt is stored as the moment when it will be paid off, `at + fraction / drain` ticks. That
//! moment does not move without a charge, so neither an idle bucket nor a refusal needs a write.
//!
//! If a tick is longer than a microsecond, an instant may fall between two ticks. A debt is then
//! read at the tick before it and begun at the tick after it, so that it never seems smaller than
//! it is.

use super::questions::decide_by_questions;
use super::{BucketState, whole};
use crate::quota::{Basis, EXACT_MAX, same_share};
use crate::{BucketReading, Op, Outcome, Quota, Receipt, Timestamp, Wait};
use std::num::NonZeroU64;

/// A count of credits begins again beyond this, long before it could leave exact arithmetic.
const CREDITS_MAX: u64 = EXACT_MAX >> 1;

/// The state of a token bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// The whole tick before the debt is paid off.
    pub at: u64,
    /// Debt left to pay off after that tick; less than the drain of the quota that left it.
    pub fraction: u64,
    /// Credits so far. Kept only for refundable quotas.
    pub credits: CreditCount,
}

/// Part of the debt that was paid off by credits and not by the clock.
///
/// A charge leaves a debt, and it is known when the clock will have paid that off. With this count,
/// the holder of a receipt knows a lower bound of the debt since then (see
/// [`TokenBucket::give_back`]). The bound holds after any time and any other charges and credits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CreditCount {
    /// Since when it counts, in microseconds: since the last charge that found no debt, for a
    /// bucket without a debt may be forgotten, and its count with it. Receipts that are older say
    /// nothing about this count.
    pub since: u64,
    /// The sum of all credits since then, each rounded up to whole ticks of debt. Ticks and not
    /// units of debt, so that a change of the rate does not change what they are worth.
    pub ticks: u64,
}

/// A debt at a tick: what [`TokenBucket`] means once the time is known.
#[derive(Clone, Copy)]
struct Debt {
    /// The tick.
    now: u64,
    /// The debt at that tick, in units of debt.
    units: u64,
}

impl TokenBucket {
    /// Returns the debt at the tick `now`.
    #[inline]
    fn debt(&self, quota: &Quota, now: u64) -> Debt {
        let units = match self.at.checked_sub(now) {
            None => 0,
            // A fraction may have been left by a quota with a larger drain: it is less than a tick.
            Some(ahead) => ahead
                .saturating_mul(quota.drain.get())
                .saturating_add(self.fraction.min(quota.drain.get())),
        };
        Debt { now, units }
    }

    /// Stores a debt as the moment when it will be paid off.
    #[inline]
    fn set(&mut self, quota: &Quota, debt: Debt) {
        let ticks = divide(debt.units, quota.drain);
        self.at = debt.now.saturating_add(ticks);
        self.fraction = debt
            .units
            .saturating_sub(ticks.saturating_mul(quota.drain.get()));
    }

    /// Takes `cost` units, at least one, if they fit: the state afterwards and the answer, or `None`
    /// where something is out of the ordinary and [`BucketState::take`] has to see to it.
    ///
    /// One division instead of five, no call and no address taken, so that a store's hot path keeps
    /// everything in registers. Nothing can wrap: `ahead` and `cost` are checked first, so that every
    /// product stays below 2^53, as the quota was built to.
    #[expect(
        clippy::inline_always,
        reason = "a call would put the state and the answer into memory"
    )]
    #[inline(always)]
    pub fn take_usual(&self, quota: &Quota, cost: u64, now: Timestamp) -> Option<(Self, Outcome)> {
        let micros = now.as_micros();
        let drain = quota.drain.get();
        let ahead = self.at.saturating_sub(micros);
        if !quota.narrow || cost > quota.capacity || ahead > quota.ahead_max {
            return None;
        }
        let fraction = if self.at < micros {
            0
        } else {
            self.fraction.min(drain)
        };
        let owed = ahead.wrapping_mul(drain).wrapping_add(fraction);
        let after = owed.wrapping_add(cost.wrapping_mul(quota.price.get()));
        if after > quota.brim {
            let room = quota.brim.saturating_sub(owed);
            let outcome = Outcome {
                remaining: if room < quota.price.get() {
                    0
                } else {
                    divide(room, quota.price)
                },
                wait: Wait::from_micros(divide_up(after.wrapping_sub(quota.brim), quota.drain)),
                overdrawn: overdrawn(quota, owed),
                reset_us: ahead.wrapping_add(u64::from(fraction > 0)),
                mark: 0,
            };
            return Some((*self, outcome));
        }
        let ticks = divide(after, quota.drain);
        let next = Self {
            at: micros.saturating_add(ticks),
            fraction: after.wrapping_sub(ticks.wrapping_mul(drain)),
            ..*self
        };
        let outcome = Outcome {
            remaining: divide(quota.brim.wrapping_sub(after), quota.price),
            wait: Wait::NONE,
            overdrawn: 0,
            reset_us: ticks.wrapping_add(u64::from(next.fraction > 0)),
            mark: 0,
        };
        Some((next, outcome))
    }

    /// Charges without asking whether it fits.
    #[inline]
    fn add(&mut self, quota: &Quota, units: u64, now: Timestamp) {
        let debt = self.debt(quota, tick_after(quota, now));
        if quota.refundable && (debt.units == 0 || self.credits.ticks > CREDITS_MAX) {
            self.credits = CreditCount {
                since: self.credits.since.max(now.as_micros()),
                ticks: 0,
            };
        }
        self.set(
            quota,
            Debt {
                units: debt.units.saturating_add(units),
                ..debt
            },
        );
    }

    /// Converts the state to `quota`. If the meaning of ticks or debts changes, earlier credits
    /// become unknown.
    pub(super) fn adapted(self, from: Basis, quota: &Quota, now: Timestamp) -> Self {
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
                CreditCount::unknown(now)
            } else {
                CreditCount::default()
            },
        }
    }

    /// Returns the debt at the tick `now`, in units of debt.
    pub(super) fn debt_at(&self, quota: &Quota, now: u64) -> u64 {
        self.debt(quota, now).units
    }

    /// Carries out [`give_back`](BucketState::give_back) for a caller that knows that the debt has
    /// not been below `low` since the charge. Returns the credit, and the increase of the credit
    /// count.
    pub(super) fn refund_above(
        &mut self,
        quota: &Quota,
        receipt: Receipt,
        low: u64,
        now: Timestamp,
    ) -> (u64, u64) {
        if quota.refundable && receipt.at.as_micros() < self.credits.since {
            return (0, 0);
        }
        let debt = self.debt(quota, tick_after(quota, now));
        let charge = receipt.cost.saturating_mul(quota.price.get());
        let elapsed = debt.now.saturating_sub(tick_of(quota, receipt.at));
        let paid = elapsed.saturating_mul(quota.drain.get());
        let credit = charge
            .min(self.lowest(quota, receipt, debt.now).max(low))
            .max(charge.saturating_sub(paid))
            .min(debt.units);
        if credit == 0 {
            return (0, 0);
        }
        let units = debt.units.saturating_sub(credit);
        self.set(quota, Debt { units, ..debt });
        (credit, self.count(quota, divide_up(credit, quota.drain)))
    }

    /// Returns the lowest that the debt can have been between the charge and the tick `now`; 0
    /// where nothing is known.
    fn lowest(&self, quota: &Quota, receipt: Receipt, now: u64) -> u64 {
        let ticks = self.credits.ticks;
        if !quota.refundable || receipt.mark > ticks {
            return 0;
        }
        let under = ticks
            .saturating_sub(receipt.mark)
            .saturating_sub(receipt.behind);
        let due = tick_of(quota, receipt.until)
            .saturating_sub(now)
            .saturating_sub(under);
        // The last of these ticks was rounded up: it pays off something, and maybe no more than that.
        match due.checked_sub(1) {
            Some(whole) => whole.saturating_mul(quota.drain.get()).saturating_add(1),
            None => 0,
        }
    }

    /// Counts a credit, and returns the increase of the count.
    fn count(&mut self, quota: &Quota, ticks: u64) -> u64 {
        if !quota.refundable {
            return 0;
        }
        let (before, most) = (self.credits.ticks, EXACT_MAX.saturating_sub(1));
        self.credits.ticks = before.saturating_add(ticks).min(most);
        self.credits.ticks.saturating_sub(before)
    }
}

impl CreditCount {
    /// Creates the count of a state that did not count credits: nothing is known of the time before
    /// `now`.
    pub fn unknown(now: Timestamp) -> Self {
        Self {
            since: now.as_micros(),
            ticks: 0,
        }
    }
}

impl BucketState for TokenBucket {
    #[inline]
    fn wait(&self, quota: &Quota, cost: u64, now: Timestamp) -> Wait {
        if cost > quota.capacity {
            return Wait::NEVER;
        }
        let debt = self.debt(quota, tick_of(quota, now));
        let after = debt
            .units
            .saturating_add(cost.saturating_mul(quota.price.get()));
        match after.checked_sub(quota.brim) {
            None | Some(0) => Wait::NONE,
            Some(excess) => {
                let ticks = divide_up(excess, quota.drain);
                Wait::from_micros(micros_until(quota, debt.now.saturating_add(ticks), now))
            }
        }
    }

    #[inline]
    fn charge(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        self.add(quota, cost.saturating_mul(quota.price.get()), now);
    }

    #[inline]
    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> u64 {
        let owed = self.debt(quota, tick_after(quota, now)).units;
        let room = quota.floor.saturating_sub(owed);
        let asked = cost.saturating_mul(quota.price.get());
        let units = asked.min(room);
        if units > 0 {
            self.add(quota, units, now);
        }
        // Most charges are whole, and a division is expensive.
        if units == asked {
            cost
        } else {
            divide(units, quota.price)
        }
    }

    /// Credits at most the debt that is there only because of the charge.
    ///
    /// The *gap* is the difference between the debt and the debt had the charge never been made. It
    /// begins as the charge and shrinks only while the debt without the charge is zero, by the
    /// amount that the clock pays off. So it is at least
    ///
    /// - the charge less everything that the clock has paid off since, and
    /// - the charge or the lowest debt since, whichever is less: while the other debt is zero, the
    ///   gap is this debt itself.
    ///
    /// The debt falls by the clock and by credits and never otherwise. The charge left a debt that
    /// the clock would have paid off at [`Receipt::until`]. So it has never since been lower than
    /// the debt due from now until then, less all credits since.
    ///
    /// This holds for several charges that are refunded, in any order. Let the debt be no lower
    /// than it would be without those refunded so far. A credit of a charge made before this one
    /// lowered the debt under it, in both worlds, and is in the count. A credit of a charge made
    /// after it was no more than that charge, which is on top of the low and not in it. So a holder
    /// that knows of it may leave it out of the count ([`Receipt::behind`]), and counting it is
    /// safe. Either way the rest of the debt covers all that was charged since and not refunded,
    /// and no debt without this charge is more than that once the clock has paid off the rest.
    ///
    /// Charges from before the count began have been paid off: the count began at a charge that
    /// found no debt. So they have no gap, regardless of the present debt of others. If the state
    /// was lost in between, the result is unknown.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) -> u64 {
        self.refund_above(quota, receipt, 0, now).1
    }

    #[inline]
    fn is_beyond_reach(&self, quota: &Quota, now: Timestamp) -> bool {
        self.at.saturating_sub(tick_of(quota, now)) > quota.ahead_max
    }

    /// Leaves the bucket empty.
    fn clamp_to_now(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_beyond_reach(quota, now) {
            let now = tick_of(quota, now);
            let units = quota.brim;
            let before = self.at;
            self.set(quota, Debt { now, units });
            let _ = self.count(quota, before.saturating_sub(self.at).saturating_add(1));
        }
    }

    #[inline]
    fn take(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> Outcome {
        match self.take_usual(quota, cost, now) {
            Some((next, outcome)) => {
                *self = next;
                outcome
            }
            None => decide_by_questions(quota, self, Op::Take(cost), now).outcome,
        }
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> BucketReading {
        let debt = self.debt(quota, tick_of(quota, now));
        let paid_off = debt.now.saturating_add(divide_up(debt.units, quota.drain));
        BucketReading {
            remaining: divide(quota.brim.saturating_sub(debt.units), quota.price),
            overdrawn: overdrawn(quota, debt.units),
            reset_us: if debt.units == 0 {
                0
            } else {
                micros_until(quota, paid_off, now)
            },
            mark: if debt.units == 0 {
                0
            } else {
                self.credits.ticks
            },
        }
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        let ticks = self.at.saturating_add(u64::from(self.fraction > 0));
        Timestamp::from_micros(ticks.saturating_mul(quota.tick_us.get()))
    }
}

/// Returns the whole units of a debt beyond that of an empty bucket, rounded up.
#[inline]
fn overdrawn(quota: &Quota, debt: u64) -> u64 {
    match debt.checked_sub(quota.brim) {
        None | Some(0) => 0,
        Some(excess) => divide_up(excess, quota.price),
    }
}

/// `n / d`. Most quotas have a drain and a tick of 1, and a division is the dearest instruction of a
/// decision, so it is worth a branch.
#[inline]
fn divide(n: u64, d: NonZeroU64) -> u64 {
    if d.get() == 1 { n } else { n / d }
}

/// Divides and rounds up.
#[inline]
pub(super) fn divide_up(n: u64, d: NonZeroU64) -> u64 {
    divide(n.saturating_add(d.get().saturating_sub(1)), d)
}

/// Returns the tick that `now` falls into.
#[inline]
fn tick_of(quota: &Quota, now: Timestamp) -> u64 {
    divide(now.as_micros(), quota.tick_us)
}

/// Returns the first tick that does not begin before `now`.
#[inline]
pub(super) fn tick_after(quota: &Quota, now: Timestamp) -> u64 {
    divide_up(now.as_micros(), quota.tick_us)
}

/// Returns the microseconds from `now` to the beginning of `tick`.
#[inline]
fn micros_until(quota: &Quota, tick: u64, now: Timestamp) -> u64 {
    tick.saturating_mul(quota.tick_us.get())
        .saturating_sub(now.as_micros())
}
