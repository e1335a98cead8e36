//! A quota as numbers, to be carried elsewhere and to be the same there.

use super::spec::{LIFETIME_US_END, SizeBounds};
use super::{
    Algorithm, BandId, CalendarCode, EXACT_MAX, LOG_UNITS_MAX, OnChange, Quota, QuotaError,
    TICKS_US,
};
use std::num::NonZeroU64;

/// A [`Quota`] in numbers, for storing it and reading it again when the policy may have changed.
/// Reading checks the same bounds as building.
///
/// ```
/// use tidegate_core::{Quota, quota::QuotaNumbers};
///
/// let quota = Quota::new(7, 1_000_000).burst(20).label("burst").build()?.with_lending(true);
/// let numbers: QuotaNumbers = quota.into();
/// assert_eq!(Quota::try_from(numbers)?, quota);
/// # Ok::<(), tidegate_core::QuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaNumbers {
    /// Algorithm.
    pub algorithm: Algorithm,
    /// [`BandId::as_u64`]: the label or period, and the algorithm.
    pub id: u64,
    /// Identity regardless of the numbers; see [`Quota::family`](super::Quota::family).
    pub family: u64,
    /// Treatment of its buckets when its numbers change.
    pub on_change: OnChange,
    /// Units per period.
    pub amount: u64,
    /// Microseconds per tick: 1, 1,000 or 1,000,000.
    pub tick_us: u64,
    /// Ticks per period.
    pub period: u64,
    /// The burst of a token bucket, the amount of a window.
    pub capacity: u64,
    /// Units below empty that a forced charge may go.
    pub overdraft: u64,
    /// Units beyond the capacity for which there are places, if it is
    /// [queueing](super::Quota::queueing).
    pub queue: u64,
    /// Token bucket: how much debt a tick pays off.
    pub drain: u64,
    /// Token bucket: the debt that a unit of cost incurs.
    pub price: u64,
    /// Token bucket: no debt takes more ticks than this to pay off.
    pub ahead_max: u64,
    /// True if charges may be refunded.
    pub refundable: bool,
    /// True if it [lends](super::Quota::lends).
    pub lends: bool,
    /// The calendar of its windows, if they follow one.
    pub calendar: Option<CalendarCode>,
    /// The [starts](super::Quota::with_starts) of its windows; zeros where it has none.
    pub starts: [u64; 4],
}

impl From<Quota> for QuotaNumbers {
    fn from(quota: Quota) -> Self {
        let units = quota.floor / quota.price;
        let queue = units.saturating_sub(quota.capacity.saturating_add(quota.overdraft));
        Self {
            algorithm: quota.algorithm,
            id: quota.id.0,
            family: quota.family.0,
            on_change: quota.on_change,
            amount: quota.amount,
            tick_us: quota.tick_us.get(),
            period: quota.period.get(),
            capacity: quota.capacity,
            overdraft: quota.overdraft,
            queue,
            drain: quota.drain.get(),
            price: quota.price.get(),
            ahead_max: quota.ahead_max,
            refundable: quota.refundable,
            lends: quota.lends,
            calendar: quota.calendar,
            starts: quota.starts,
        }
    }
}

impl TryFrom<QuotaNumbers> for Quota {
    type Error = QuotaError;

    fn try_from(numbers: QuotaNumbers) -> Result<Self, QuotaError> {
        let period = NonZeroU64::new(numbers.period).ok_or(QuotaError::NoPeriod)?;
        let tick_us = NonZeroU64::new(numbers.tick_us).ok_or(QuotaError::TooFine)?;
        if !TICKS_US.contains(&tick_us.get()) {
            return Err(QuotaError::TooFine);
        }
        if period.get().saturating_mul(tick_us.get()) >= EXACT_MAX {
            return Err(QuotaError::PeriodTooLong);
        }
        let quota = Self {
            algorithm: numbers.algorithm,
            refundable: numbers.refundable,
            lends: false,
            id: BandId(numbers.id),
            family: BandId(numbers.family),
            on_change: numbers.on_change,
            amount: numbers.amount,
            capacity: numbers.capacity,
            overdraft: numbers.overdraft.saturating_add(numbers.queue),
            tick_us,
            period,
            drain: NonZeroU64::MIN,
            price: NonZeroU64::MIN,
            brim: 0,
            floor: 0,
            ahead_max: 1,
            narrow: false,
            lifetime_us_max: 0,
            calendar: numbers.calendar,
            starts: numbers.starts,
        };
        let most = EXACT_MAX.saturating_sub(1);
        let quota = match numbers.algorithm {
            Algorithm::SlidingLog | Algorithm::BucketedWindow | Algorithm::Concurrent
                if quota.scales() =>
            {
                return Err(QuotaError::ScaledLog);
            }
            _ if numbers.amount == 0 && numbers.capacity == 0 => quota.refusing(),
            Algorithm::TokenBucket => quota.with_numbers(&numbers)?,
            Algorithm::SlidingLog => quota.as_window(LOG_UNITS_MAX)?,
            Algorithm::SlidingWindow => quota.as_window(most / 2 / quota.period)?,
            Algorithm::FixedWindow(_)
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => quota.as_window(most)?,
        };
        let quota = quota.derive();
        Ok(match (numbers.lends, numbers.queue) {
            (false, 0) => quota,
            (true, 0) => quota.with_lending(true),
            (lends, _) => quota.queueing().with_lending(lends),
        })
    }
}

impl Quota {
    /// One that lets nothing through, and has no state.
    fn refusing(self) -> Self {
        Self {
            overdraft: 0,
            ..self
        }
    }

    /// Returns a window of at most `most` units.
    fn as_window(self, most: u64) -> Result<Self, QuotaError> {
        if self.amount.saturating_add(self.overdraft) > most {
            let nearest = most.saturating_sub(self.overdraft);
            return Err(QuotaError::TooLarge { nearest });
        }
        if self.capacity != self.amount {
            return Err(QuotaError::BurstOnWindow);
        }
        Ok(self)
    }

    /// Sets drain and price of a token bucket, and checks that all products stay exact.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the numbers are zero or too large.
    fn with_numbers(self, numbers: &QuotaNumbers) -> Result<Self, QuotaError> {
        let drain = NonZeroU64::new(numbers.drain).ok_or(QuotaError::BurstWithoutRate)?;
        let price = NonZeroU64::new(numbers.price).ok_or(QuotaError::TooFine)?;
        if self.capacity == 0 {
            return Err(QuotaError::NoBurst);
        }
        let nearest = SizeBounds::of(self.tick_us, drain, price).overdraft(self.capacity);
        match nearest {
            Some(nearest) if self.overdraft > nearest => {
                return Err(QuotaError::OverdraftTooLarge { nearest });
            }
            Some(_) if drain.get() < EXACT_MAX => {}
            _ => return Err(QuotaError::TooLarge { nearest: 0 }),
        }
        let filled = self.filled(drain, price);
        // A part of a quota may owe what a larger one did.
        let longest = (LIFETIME_US_END / self.tick_us).min(EXACT_MAX);
        Ok(Self {
            ahead_max: numbers.ahead_max.min(longest).max(filled.ahead_max),
            ..filled
        })
    }
}
