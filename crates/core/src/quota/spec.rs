//! A quota as written, and whether it can be represented.
//!
//! Arithmetic is exact as long as every product stays below 2^53. A quota that is too large for that
//! in microseconds counts in milliseconds, then in seconds; what still does not fit is refused, with
//! the nearest that does.

use super::{
    Algorithm, BandId, CalendarCode, EXACT_MAX, LOG_UNITS_MAX, OnChange, Quota, QuotaError,
    TICKS_US,
};
use std::num::NonZeroU64;

/// The tick of most quotas: one microsecond.
const MICRO: NonZeroU64 = NonZeroU64::MIN;

/// The period in the place of that which permits do not have. It is a part of their identity.
pub(super) const NO_PERIOD_US: u64 = 1_000_000;

/// No bucket takes as long as this to refill, so that a wait, in microseconds, is always a number:
/// 146,000 years.
pub(super) const LIFETIME_US_END: u64 = 1 << 62;

/// A quota as written; [`build`](QuotaSpec::build) finds out whether it can be represented.
#[derive(Clone, Copy, Debug)]
pub struct QuotaSpec<'a> {
    /// Algorithm. Default: token bucket.
    algorithm: Algorithm,
    /// Units per period.
    amount: u64,
    /// Period in microseconds.
    period_us: u64,
    /// Burst of a token bucket. Default: the amount.
    burst: Option<u64>,
    /// Units below empty that a forced charge may go. Default: 0.
    overdraft: u64,
    /// True if charges may be refunded.
    refundable: bool,
    /// Treatment of buckets when the numbers change.
    on_change: OnChange,
    /// True if the overdraft is a queue.
    queues: bool,
    /// Label of the band, if it has one.
    label: Option<&'a str>,
    /// Calendar of the windows, if they follow one.
    calendar: Option<CalendarCode>,
}

impl QuotaSpec<'_> {
    /// Starts a token bucket with the defaults.
    pub(super) fn new(amount: u64, period_us: u64) -> Self {
        Self {
            algorithm: Algorithm::TokenBucket,
            amount,
            period_us,
            burst: None,
            overdraft: 0,
            refundable: false,
            on_change: OnChange::Keep,
            queues: false,
            label: None,
            calendar: None,
        }
    }
}

impl<'a> QuotaSpec<'a> {
    /// Counts by `algorithm`.
    #[must_use]
    pub fn algorithm(self, algorithm: Algorithm) -> Self {
        Self { algorithm, ..self }
    }

    /// Lets a token bucket hold `burst` units.
    #[must_use]
    pub fn burst(self, burst: u64) -> Self {
        Self {
            burst: Some(burst),
            ..self
        }
    }

    /// Lets a forced charge go `overdraft` units below empty.
    #[must_use]
    pub fn overdraft(self, overdraft: u64) -> Self {
        Self { overdraft, ..self }
    }

    /// Allows `units` that do not fit any more to wait for their turn, up to the time in which that
    /// many refill. [`Quota::queueing`] is the quota by which they take their places; unused places
    /// can be released.
    ///
    /// It sets [`overdraft`](Self::overdraft) and [`refundable`](Self::refundable). Only a token
    /// bucket has places.
    #[must_use]
    pub fn queue(self, units: u64) -> Self {
        Self {
            queues: true,
            ..self.overdraft(units).refundable(true)
        }
    }

    /// Sets the treatment of its buckets when the numbers change. A sliding log and a bucketed
    /// window cannot be scaled. Default: [`OnChange::Keep`].
    ///
    /// ```
    /// use tidegate_core::{OnChange, Quota};
    ///
    /// let (ten, twenty) = (Quota::new(10, 1_000_000), Quota::new(20, 1_000_000));
    /// assert_eq!(ten.build()?.id(), twenty.build()?.id());
    /// let (ten, twenty) = (ten.on_change(OnChange::Reset), twenty.on_change(OnChange::Reset));
    /// assert_ne!(ten.build()?.id(), twenty.build()?.id());
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    #[must_use]
    pub fn on_change(self, on_change: OnChange) -> Self {
        Self { on_change, ..self }
    }

    /// Keeps the state that refunds of charges need. Default: false.
    #[must_use]
    pub fn refundable(self, refundable: bool) -> Self {
        Self { refundable, ..self }
    }

    /// Identifies the band by `label` instead of by its period.
    #[must_use]
    pub fn label<'b>(self, label: &'b str) -> QuotaSpec<'b>
    where
        'a: 'b,
    {
        QuotaSpec {
            label: Some(label),
            ..self
        }
    }

    /// Counts in the windows of a calendar. The quota then knows no window until it
    /// [has starts](Quota::with_starts). No effect on algorithms but [`Algorithm::CalendarWindow`].
    #[must_use]
    pub fn calendar(self, calendar: CalendarCode) -> Self {
        Self {
            calendar: Some(calendar),
            ..self
        }
    }

    /// Builds the quota.
    ///
    /// A token bucket or sliding window too large for microseconds counts in milliseconds, then in
    /// seconds, if its period is a whole number of them; an amount of 0 refuses everything, and
    /// nothing is ever charged to it.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] if the period is 0 or too long, if a window has a burst, if a log or bucketed
    /// window is to be scaled, or if the numbers are too large for exact arithmetic. The error then
    /// has the nearest number that fits.
    ///
    /// ```
    /// use tidegate_core::{Quota, QuotaError};
    ///
    /// assert_eq!(Quota::new(10, 0).build(), Err(QuotaError::NoPeriod));
    /// assert_eq!(Quota::new(10, 1_000_000).burst(0).build(), Err(QuotaError::NoBurst));
    /// ```
    pub fn build(self) -> Result<Quota, QuotaError> {
        let period_us = NonZeroU64::new(self.period_us).ok_or(QuotaError::NoPeriod)?;
        if self.period_us >= EXACT_MAX {
            return Err(QuotaError::PeriodTooLong);
        }
        let quota = match self.algorithm {
            Algorithm::SlidingLog | Algorithm::BucketedWindow | Algorithm::Concurrent
                if self.on_change == OnChange::Scale =>
            {
                Err(QuotaError::ScaledLog)
            }
            Algorithm::TokenBucket => self.build_bucket(period_us),
            _ if self.burst.is_some() => Err(QuotaError::BurstOnWindow),
            _ if self.amount == 0 => Ok(self.refuse_all(period_us)),
            Algorithm::SlidingWindow => self.build_sliding_window(),
            Algorithm::SlidingLog => {
                self.fits_window(LOG_UNITS_MAX, |nearest| QuotaError::LogTooLong { nearest })?;
                Ok(self.window(MICRO, period_us))
            }
            Algorithm::FixedWindow(_)
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => {
                let most = EXACT_MAX.saturating_sub(1);
                self.fits_window(most, |nearest| QuotaError::TooLarge { nearest })?;
                Ok(self.window(MICRO, period_us))
            }
        };
        quota.map(Quota::derive)
    }

    /// Checks that amount and overdraft of a window are at most `most` together.
    ///
    /// # Errors
    ///
    /// [`QuotaError::OverdraftTooLarge`] if the amount alone fits, else `error` with the nearest
    /// amount.
    fn fits_window(
        self,
        most: u64,
        error: impl FnOnce(u64) -> QuotaError,
    ) -> Result<(), QuotaError> {
        let together = self.amount.saturating_add(self.overdraft);
        match most.checked_sub(self.amount) {
            _ if together <= most => Ok(()),
            Some(nearest) => Err(QuotaError::OverdraftTooLarge { nearest }),
            None => Err(error(most.saturating_sub(self.overdraft))),
        }
    }

    /// Returns the quota of amount 0, which has no state for any algorithm.
    fn refuse_all(self, period: NonZeroU64) -> Quota {
        self.overdraft(0).window(MICRO, period)
    }

    /// Builds a token bucket, in the finest tick in which every product stays exact.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] with the nearest number that fits, if no tick is coarse enough.
    fn build_bucket(self, period_us: NonZeroU64) -> Result<Quota, QuotaError> {
        let capacity = self.burst.unwrap_or(self.amount);
        if capacity == 0 && self.amount > 0 {
            return Err(QuotaError::NoBurst);
        }
        let Some(amount) = NonZeroU64::new(self.amount) else {
            return match self.burst {
                None | Some(0) => Ok(self.refuse_all(period_us)),
                Some(_) => Err(QuotaError::BurstWithoutRate),
            };
        };
        let (mut capacity_most, mut overdraft_most) = (0, None);
        for tick in TICKS_US.into_iter().filter_map(NonZeroU64::new) {
            let Ok(period) = self.whole_ticks(tick) else {
                continue;
            };
            let common = gcd(amount, period);
            let drain = divide(amount, common);
            let price = divide(period, common);
            if let Some(quota) = self.bucket(tick, period, drain, price) {
                return Ok(quota);
            }
            let most = SizeBounds::of(tick, drain, price);
            capacity_most = capacity_most.max(most.capacity(self.overdraft));
            overdraft_most = overdraft_most.max(most.overdraft(capacity));
        }
        Err(match (overdraft_most, capacity_most) {
            (Some(nearest), _) => QuotaError::OverdraftTooLarge { nearest },
            (None, 0) => QuotaError::TooFine,
            (None, nearest) => QuotaError::TooLarge { nearest },
        })
    }

    /// Returns the token bucket in this tick, if every product stays exact.
    fn bucket(
        self,
        tick_us: NonZeroU64,
        period: NonZeroU64,
        drain: NonZeroU64,
        price: NonZeroU64,
    ) -> Option<Quota> {
        let capacity = self.burst.unwrap_or(self.amount);
        if self.overdraft > SizeBounds::of(tick_us, drain, price).overdraft(capacity)? {
            return None;
        }
        let quota = Quota {
            capacity,
            ..self.window(tick_us, period)
        };
        Some(quota.filled(drain, price))
    }

    /// Builds a sliding window, in the finest tick in which every product stays exact.
    ///
    /// # Errors
    ///
    /// [`QuotaError`] with the nearest number that fits, if no tick is coarse enough.
    fn build_sliding_window(self) -> Result<Quota, QuotaError> {
        let mut nearest = Err(0);
        for tick in TICKS_US.into_iter().filter_map(NonZeroU64::new) {
            let Ok(period) = self.whole_ticks(tick) else {
                continue;
            };
            // 2 × (amount + overdraft) × period < 2^53.
            let most = EXACT_MAX.saturating_sub(1) / 2 / period;
            if self.amount.saturating_add(self.overdraft) <= most {
                return Ok(self.window(tick, period));
            }
            // The largest tick that divides the period leaves the most room.
            nearest = most
                .checked_sub(self.amount)
                .ok_or(most.saturating_sub(self.overdraft));
        }
        Err(match nearest {
            Ok(nearest) => QuotaError::OverdraftTooLarge { nearest },
            Err(nearest) => QuotaError::TooLarge { nearest },
        })
    }

    /// Returns the period in ticks, if it is a whole number of them.
    fn whole_ticks(self, tick: NonZeroU64) -> Result<NonZeroU64, QuotaError> {
        if self.period_us % tick == 0 {
            NonZeroU64::new(self.period_us / tick).ok_or(QuotaError::NoPeriod)
        } else {
            Err(QuotaError::TooFine)
        }
    }

    /// Returns the quota of a window, or the common part of a token bucket.
    fn window(self, tick_us: NonZeroU64, period: NonZeroU64) -> Quota {
        Quota {
            algorithm: self.algorithm,
            refundable: self.refundable,
            lends: false,
            id: self.id(),
            family: self.family(),
            on_change: self.on_change,
            amount: self.amount,
            capacity: self.amount,
            overdraft: self.overdraft,
            tick_us,
            period,
            drain: NonZeroU64::MIN,
            price: NonZeroU64::MIN,
            brim: 0,
            floor: 0,
            ahead_max: 1,
            narrow: false,
            lifetime_us_max: 0,
            calendar: self
                .calendar
                .filter(|_| self.algorithm == Algorithm::CalendarWindow),
            starts: [0; 4],
        }
    }

    /// Hashes the algorithm and the label or period by FNV-1a. It need not resist an attacker,
    /// because clients do not choose labels. It must be the same everywhere and never change.
    fn family(self) -> BandId {
        let algorithm = self.algorithm.code().saturating_add(1);
        let hash = fnv1a(0xcbf2_9ce4_8422_2325, &[algorithm]);
        BandId(match self.label {
            Some(label) => fnv1a(fnv1a(hash, b"l"), label.as_bytes()),
            None => fnv1a(fnv1a(hash, b"p"), &self.period_us.to_be_bytes()),
        })
    }

    /// Returns the same over the numbers as well, where others are to begin with new buckets. How
    /// many may wait is none of them.
    fn id(self) -> BandId {
        let BandId(family) = self.family();
        if self.on_change != OnChange::Reset {
            return BandId(family);
        }
        let numbers = [
            self.amount,
            self.period_us,
            self.burst.unwrap_or(self.amount),
            if self.queues { 0 } else { self.overdraft },
        ];
        let hash = numbers.iter().fold(fnv1a(family, b"n"), |hash, number| {
            fnv1a(hash, &number.to_be_bytes())
        });
        BandId(hash)
    }
}

/// Largest sizes of a token bucket for which every product stays exact, in units of cost.
pub(super) struct SizeBounds {
    /// 2 × capacity + overdraft at most: 2 × capacity × price + overdraft × price + 2 × drain < 2^53.
    twice: u64,
    /// Capacity + overdraft at most, that no bucket takes too long to refill.
    once: u64,
}

impl SizeBounds {
    /// Returns the bounds for this tick, drain and price.
    pub(super) fn of(tick_us: NonZeroU64, drain: NonZeroU64, price: NonZeroU64) -> Self {
        // A state that another quota of this band left may be deeper by up to a tick and its fraction.
        let debt = EXACT_MAX
            .saturating_sub(1)
            .saturating_sub(drain.get().saturating_mul(2));
        let ticks = (LIFETIME_US_END / tick_us).saturating_sub(2);
        Self {
            twice: debt / price,
            once: ticks.saturating_mul(drain.get()) / price,
        }
    }

    /// Returns the largest capacity with this overdraft.
    fn capacity(&self, overdraft: u64) -> u64 {
        let exact = self.twice.saturating_sub(overdraft) / 2;
        exact.min(self.once.saturating_sub(overdraft))
    }

    /// Returns the largest overdraft with this capacity, if the capacity itself fits.
    pub(super) fn overdraft(&self, capacity: u64) -> Option<u64> {
        let exact = self.twice.checked_sub(capacity.checked_mul(2)?)?;
        Some(exact.min(self.once.checked_sub(capacity)?))
    }
}

/// Continues an FNV-1a hash with `bytes`.
fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the greatest common divisor.
fn gcd(a: NonZeroU64, b: NonZeroU64) -> NonZeroU64 {
    let (mut a, mut b) = (a, b.get());
    while let Some(divisor) = NonZeroU64::new(b) {
        b = a.get() % divisor;
        a = divisor;
    }
    a
}

/// `a / b` where `b` is known to divide `a`.
fn divide(a: NonZeroU64, b: NonZeroU64) -> NonZeroU64 {
    NonZeroU64::new(a.get() / b).unwrap_or(NonZeroU64::MIN)
}
