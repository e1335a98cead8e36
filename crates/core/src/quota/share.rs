//! A part of a quota: the share that one instance may grant while it cannot reach the others.

use super::spec::{LIFETIME_US_END, SizeBounds};
use super::{Algorithm, EXACT_MAX, NARROW_END, Quota};
use std::num::{NonZeroU32, NonZeroU64, NonZeroU128};

/// Largest drain of a bucket whose rate has to be rounded: a quarter of the range, so that most is
/// left for the price.
const DRAIN_MAX: u64 = EXACT_MAX >> 2;

/// Units per tick.
#[derive(Clone, Copy)]
struct TickRate {
    /// Debt that a tick pays off.
    drain: u128,
    /// Debt that a unit of cost incurs.
    price: u128,
}

impl Quota {
    /// Returns `numerator / denominator` of this quota, at most the whole. It is the same band, so
    /// that a state outlives a change of the share.
    ///
    /// The rate of a token bucket is exact; if exact arithmetic has no room for that, it is the
    /// nearest rate below that fits. Its burst, and the amount of a window, are rounded down, but
    /// at least 1. A quota of amount 0 does not change. Charges are not refundable.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tidegate_core::Quota;
    ///
    /// let quota = Quota::new(10, 1_000_000).burst(5).build()?;
    /// let three = NonZeroU32::new(3).unwrap();
    /// let third = quota.at_share(NonZeroU32::MIN, three);
    /// assert_eq!(third.capacity(), 1);
    /// assert_eq!(third.drain_and_price(), (1, 300_000));
    /// assert_eq!(third.id(), quota.id());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn at_share(self, numerator: NonZeroU32, denominator: NonZeroU32) -> Self {
        let whole = self.with_refundable(false);
        if self.amount == 0 {
            return whole;
        }
        let numerator = u64::from(numerator.min(denominator).get());
        let denominator = NonZeroU128::from(denominator);
        let part = |units: u64| {
            let units = u128::from(units).saturating_mul(numerator.into());
            u64::try_from(units / denominator).unwrap_or(u64::MAX)
        };
        let reduced = Self {
            amount: part(self.amount).max(1),
            capacity: part(self.capacity).max(1),
            overdraft: part(self.overdraft),
            ..whole
        };
        if self.algorithm != Algorithm::TokenBucket {
            return reduced.derive();
        }
        let rate = TickRate {
            drain: u128::from(self.drain.get()).saturating_mul(numerator.into()),
            price: u128::from(self.price.get()).saturating_mul(denominator.get()),
        };
        let rate = rate.reduced();
        let exact = reduced.at_rate(rate);
        let rounded = || reduced.at_rate(rate.below(&reduced, whole.narrow));
        let part = exact.or_else(rounded).unwrap_or_else(|| {
            // A unit takes years to refill; one at a time is what still fits.
            let one = Self {
                capacity: 1,
                overdraft: 0,
                ..reduced
            };
            one.filled(NonZeroU64::MIN, rate.slowest(self.tick_us))
        });
        // A debt from a larger share may take a little longer to pay off than this burst, which was
        // rounded down, could owe. It is owed nevertheless.
        Self {
            ahead_max: part.ahead_max.max(self.ahead_max),
            ..part
        }
        .derive()
    }

    /// Returns the same at another rate, if every product stays exact.
    fn at_rate(self, rate: TickRate) -> Option<Self> {
        let drain = NonZeroU64::new(u64::try_from(rate.drain).ok()?)?;
        let price = NonZeroU64::new(u64::try_from(rate.price).ok()?)?;
        let most = SizeBounds::of(self.tick_us, drain, price).overdraft(self.capacity)?;
        let fits = drain.get() < EXACT_MAX && self.overdraft <= most;
        fits.then(|| self.filled(drain, price))
    }

    /// Fills in what follows from a rate that fits.
    pub(super) fn filled(self, drain: NonZeroU64, price: NonZeroU64) -> Self {
        let brim = self.capacity.saturating_mul(price.get());
        let floor = brim.saturating_add(self.overdraft.saturating_mul(price.get()));
        Self {
            drain,
            price,
            brim,
            floor,
            ahead_max: (floor / drain).saturating_add(1),
            ..self
        }
        .derive()
    }
}

impl TickRate {
    /// Divides both by their greatest common divisor.
    fn reduced(self) -> Self {
        let (mut a, mut b) = (self.drain, self.price);
        while let Some(rest) = a.checked_rem(b) {
            (a, b) = (b, rest);
        }
        // `a` divides both, and is 0 only if both are.
        Self {
            drain: self.drain.checked_div(a).unwrap_or(self.drain),
            price: self.price.checked_div(a).unwrap_or(self.price),
        }
    }

    /// Returns the ticks that one unit takes, or as many as fit if that is not enough.
    fn slowest(self, tick_us: NonZeroU64) -> NonZeroU64 {
        let most = (EXACT_MAX >> 2).min((LIFETIME_US_END / tick_us).saturating_sub(2));
        let ticks = self.price.div_ceil(self.drain.max(1)).min(most.into());
        let ticks = u64::try_from(ticks).ok().and_then(NonZeroU64::new);
        ticks.unwrap_or(NonZeroU64::MIN)
    }

    /// Returns the nearest rate below for which `quota` has room. A narrow state stays narrow,
    /// because it would be lost otherwise.
    fn below(self, quota: &Quota, narrow: bool) -> Self {
        let drain_max = u128::from(if narrow {
            NARROW_END.saturating_sub(1)
        } else {
            DRAIN_MAX
        });
        let weight = u128::from(quota.capacity)
            .saturating_mul(2)
            .saturating_add(quota.overdraft.into());
        let room =
            u128::from(EXACT_MAX.saturating_sub(1)).saturating_sub(drain_max.saturating_mul(2));
        let price_max = room.checked_div(weight).unwrap_or(room);
        let drain = price_max
            .saturating_mul(self.drain)
            .checked_div(self.price)
            .unwrap_or(0)
            .min(drain_max);
        Self {
            drain,
            price: drain.saturating_mul(self.price).div_ceil(self.drain.max(1)),
        }
    }
}
