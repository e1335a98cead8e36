//! Token bucket, leaky bucket and GCRA: one state, the moment at which the debt is paid off.
//!
//! A unit of cost incurs a debt of `price`; each tick pays off `drain`. With `L` units per `P`
//! ticks these are `P / gcd` and `L / gcd`, so that both are whole and nothing is ever rounded. The
//! debt is stored as the moment when it will be paid off, `at + fraction / drain` ticks: that
//! moment stands still while nobody asks, so an idle bucket needs no writing, and a refusal none.
//!
//! Where a tick is longer than a microsecond, an instant lies between two ticks. A debt is then read
//! at the tick before it and begun at the tick after it, so that it never seems smaller than it is.

use super::{Meter, Reading};
use crate::{Op, Outcome, Quota, Receipt, Timestamp, Wait, step};
use std::num::NonZeroU64;

/// Two slots of this many microseconds remember how low the debt was, for giving back.
const SLOT_US: u64 = 100_000;

/// The state of a token bucket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    /// The whole tick before the debt is paid off.
    pub at: u64,
    /// What is left to pay off after that tick; less than the quota's drain.
    pub fraction: u64,
    /// How low the debt has been of late. Kept only for refundable quotas.
    pub lows: Lows,
}

/// The lowest debts just before a charge, in the slot of the last charge and in the one before it.
///
/// Between two charges the debt only falls, so it is lowest just before one. The lowest debt since
/// a charge bounds what may be given back of it (see [`TokenBucket::give_back`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lows {
    /// Which slot the last charge fell into.
    pub slot: u64,
    /// The lowest debt before a charge in that slot.
    pub current: u64,
    /// The lowest debt before a charge in the slot before it.
    pub previous: u64,
}

impl Default for Lows {
    fn default() -> Self {
        Self {
            slot: 0,
            current: u64::MAX,
            previous: u64::MAX,
        }
    }
}

/// A debt at a tick: what [`TokenBucket`] means once the time is known.
#[derive(Clone, Copy)]
struct Debt {
    now: u64,
    units: u64,
}

impl TokenBucket {
    /// The debt at the tick `now`.
    #[inline]
    fn debt(&self, quota: &Quota, now: u64) -> Debt {
        let units = match self.at.checked_sub(now) {
            None => 0,
            // A fraction may have been left by a quota with a larger drain.
            Some(ahead) => ahead
                .saturating_mul(quota.drain.get())
                .saturating_add(self.fraction.min(quota.drain.get().saturating_sub(1))),
        };
        Debt { now, units }
    }

    #[inline]
    fn set(&mut self, quota: &Quota, debt: Debt) {
        let ticks = divide(debt.units, quota.drain);
        self.at = debt.now.saturating_add(ticks);
        self.fraction = debt
            .units
            .saturating_sub(ticks.saturating_mul(quota.drain.get()));
    }

    /// Takes `cost` units, at least one, if they fit: the state afterwards and the answer, or `None`
    /// where something is out of the ordinary and [`Meter::take`] has to see to it.
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
            self.fraction.min(drain.wrapping_sub(1))
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
                reset_us: ahead.wrapping_add(u64::from(fraction > 0)),
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
            reset_us: ticks.wrapping_add(u64::from(next.fraction > 0)),
        };
        Some((next, outcome))
    }

    /// Charges without asking whether it fits, and remembers how low the debt was.
    #[inline]
    fn add(&mut self, quota: &Quota, units: u64, now: Timestamp) {
        let debt = self.debt(quota, tick_after(quota, now));
        if quota.refundable {
            self.lows.note(debt.units, now);
        }
        self.set(
            quota,
            Debt {
                units: debt.units.saturating_add(units),
                ..debt
            },
        );
    }
}

impl Meter for TokenBucket {
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

    fn force(&mut self, quota: &Quota, cost: u64, now: Timestamp) {
        let owed = self.debt(quota, tick_after(quota, now)).units;
        let room = quota.floor.saturating_sub(owed);
        let units = cost.saturating_mul(quota.price.get()).min(room);
        if units > 0 {
            self.add(quota, units, now);
        }
    }

    /// Credits at most the debt that is there only because of the charge.
    ///
    /// Had the charge never been made, the debt would be lower by `min(charge, lowest debt since)`:
    /// the gap between the two shrinks only while the other debt is zero, which is while the gap is
    /// this debt itself. So crediting that much admits nothing that the quota would not have
    /// admitted. The time since the charge bounds the gap from below as well. Whoever is still to
    /// give back saw this charge in the lows, so they fall with it.
    fn give_back(&mut self, quota: &Quota, receipt: Receipt, now: Timestamp) {
        let debt = self.debt(quota, tick_after(quota, now));
        let charge = receipt.cost.saturating_mul(quota.price.get());
        let elapsed = debt.now.saturating_sub(tick_of(quota, receipt.at));
        let paid = elapsed.saturating_mul(quota.drain.get());
        let low = if quota.refundable {
            self.lows.since(receipt.at).unwrap_or(0)
        } else {
            0
        };
        let credit = charge
            .min(low)
            .max(charge.saturating_sub(paid))
            .min(debt.units);
        let units = debt.units.saturating_sub(credit);
        if quota.refundable {
            self.lows.lower(charge, units);
        }
        if credit > 0 {
            self.set(quota, Debt { units, ..debt });
        }
    }

    #[inline]
    fn is_ahead(&self, quota: &Quota, now: Timestamp) -> bool {
        self.at.saturating_sub(tick_of(quota, now)) > quota.ahead_max
    }

    /// Leaves the bucket empty.
    fn settle(&mut self, quota: &Quota, now: Timestamp) {
        if self.is_ahead(quota, now) {
            let now = tick_of(quota, now);
            let units = quota.brim;
            self.set(quota, Debt { now, units });
        }
    }

    #[inline]
    fn take(&mut self, quota: &Quota, cost: u64, now: Timestamp) -> Outcome {
        match self.take_usual(quota, cost, now) {
            Some((next, outcome)) => {
                *self = next;
                outcome
            }
            None => step::decide_plainly(quota, self, Op::Take(cost), now),
        }
    }

    #[inline]
    fn reading(&self, quota: &Quota, now: Timestamp) -> Reading {
        let debt = self.debt(quota, tick_of(quota, now));
        let paid_off = debt.now.saturating_add(divide_up(debt.units, quota.drain));
        Reading {
            remaining: divide(quota.brim.saturating_sub(debt.units), quota.price),
            reset_us: if debt.units == 0 {
                0
            } else {
                micros_until(quota, paid_off, now)
            },
        }
    }

    #[inline]
    fn fresh_at(&self, quota: &Quota) -> Timestamp {
        let ticks = self.at.saturating_add(u64::from(self.fraction > 0));
        Timestamp::from_micros(ticks.saturating_mul(quota.tick_us.get()))
    }
}

impl Lows {
    /// Remembers that the debt was `debt` just before a charge at `now`.
    fn note(&mut self, debt: u64, now: Timestamp) {
        let slot = now.as_micros() / SLOT_US;
        match slot.saturating_sub(self.slot) {
            0 => self.current = self.current.min(debt),
            1 => {
                self.previous = self.current;
                self.current = debt;
            }
            _ => {
                self.previous = u64::MAX;
                self.current = debt;
            }
        }
        self.slot = self.slot.max(slot);
    }

    /// The lowest debt since `since`, if that is still remembered.
    fn since(&self, since: Timestamp) -> Option<u64> {
        let slot = since.as_micros() / SLOT_US;
        match self.slot.saturating_sub(slot) {
            0 => Some(self.current),
            1 => Some(self.current.min(self.previous)),
            _ => None,
        }
    }

    /// After a credit for `charge`, which left a debt of `debt`.
    fn lower(&mut self, charge: u64, debt: u64) {
        self.current = self.current.saturating_sub(charge).min(debt);
        self.previous = self.previous.saturating_sub(charge).min(debt);
    }
}

/// `n / d`. Most quotas have a drain and a tick of 1, and a division is the dearest instruction of a
/// decision, so it is worth a branch.
#[inline]
fn divide(n: u64, d: NonZeroU64) -> u64 {
    if d.get() == 1 { n } else { n / d }
}

#[inline]
fn divide_up(n: u64, d: NonZeroU64) -> u64 {
    divide(n.saturating_add(d.get().saturating_sub(1)), d)
}

/// The tick that `now` falls into.
#[inline]
fn tick_of(quota: &Quota, now: Timestamp) -> u64 {
    divide(now.as_micros(), quota.tick_us)
}

/// The first tick that does not begin before `now`.
#[inline]
fn tick_after(quota: &Quota, now: Timestamp) -> u64 {
    divide_up(now.as_micros(), quota.tick_us)
}

/// Microseconds from `now` to the beginning of `tick`.
#[inline]
fn micros_until(quota: &Quota, tick: u64, now: Timestamp) -> u64 {
    tick.saturating_mul(quota.tick_us.get())
        .saturating_sub(now.as_micros())
}
