//! A band: an amount per period, and how its text becomes a quota.

use crate::calendar::{CalendarPeriod, CalendarSettings};
use crate::text::ConfigFault;
use crate::text::rate::{self, RateText};
use std::time::Duration;
use tidegate_core::{Algorithm, OnChange, Quota, QuotaError, QuotaSpec};

/// The shortest block, because clients get no time below a millisecond.
const SHORTEST_BLOCK: Duration = Duration::from_millis(1);

/// An hour: shorter periods are in no calendar.
const HOUR_US: u64 = 3_600_000_000;

/// The longest block. Longer exclusions need other means, such as a guard.
const LONGEST_BLOCK: Duration = Duration::from_secs(31_536_000);

/// An amount per period.
#[derive(Clone, Debug)]
pub struct Band {
    /// The text of the configuration, such as `10/s burst 50`.
    pub text: String,
    /// Its label, if it has one.
    pub label: Option<String>,
    /// The quota that computes decisions.
    pub quota: Quota,
}

impl Band {
    /// Returns the band of a [block](crate::Limit::block) of this length. `text` is the length as written. Fails for
    /// lengths outside 1 ms to 365 days.
    pub fn block(text: &str, length_us: u64) -> Result<Self, String> {
        let length = Duration::from_micros(length_us);
        let quota = Quota::block(length_us).ok();
        let quota = quota.filter(|_| (SHORTEST_BLOCK..=LONGEST_BLOCK).contains(&length));
        Ok(Self {
            text: text.to_owned(),
            label: Some("block".to_owned()),
            quota: quota.ok_or_else(|| format!("`{text}` is not from 1ms to 365d"))?,
        })
    }

    /// Returns the band of a block of this length. Fails like `Band::block`.
    pub fn blocking(length: Duration) -> Result<Self, String> {
        let length_us = u64::try_from(length.as_micros()).unwrap_or(u64::MAX);
        Self::block(&format!("{length:?}"), length_us)
    }

    /// Returns the band of a limit of this many requests in flight, with a text such as `20 at once`.
    ///
    /// ```
    /// use tidegate_policy::Band;
    ///
    /// let band = Band::concurrent(20)?;
    /// assert_eq!((band.text.as_str(), band.quota.capacity()), ("20 at once", 20));
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The number is too large.
    pub fn concurrent(permits: u64) -> Result<Self, String> {
        let quota = Quota::concurrent(permits).build();
        Ok(Self {
            text: format!("{permits} at once"),
            label: None,
            quota: quota.map_err(|error| format!("`{permits}`: {error}"))?,
        })
    }

    /// Parses a band from text such as `10/s burst 50`, without a label. The error describes the mistake and
    /// its fix.
    ///
    /// ```
    /// use tidegate_core::Algorithm;
    /// use tidegate_policy::Band;
    ///
    /// let band = Band::parse("10/s burst 50", Algorithm::TokenBucket)?;
    /// assert_eq!((band.quota.capacity(), band.quota.period_us()), (50, 1_000_000));
    /// assert!(Band::parse("10/s burst 50", Algorithm::SlidingWindow).is_err(), "windows have no burst");
    /// # Ok::<(), String>(())
    /// ```
    pub fn parse(text: &str, algorithm: Algorithm) -> Result<Self, String> {
        Self::parse_changing(text, algorithm, None, OnChange::Keep)
    }

    /// Like [`parse`](Self::parse), for a limit whose requests wait up to `max_wait`: a token bucket then has
    /// room for as many places as become free in that time.
    pub fn parse_waiting(
        text: &str,
        algorithm: Algorithm,
        max_wait: Duration,
    ) -> Result<Self, String> {
        Self::parse_changing(text, algorithm, Some(max_wait), OnChange::Keep)
    }

    /// Like [`parse`](Self::parse), for a limit with its own `on_change`. Requests wait up to `max_wait` if
    /// there is one.
    pub fn parse_changing(
        text: &str,
        algorithm: Algorithm,
        max_wait: Option<Duration>,
        on_change: OnChange,
    ) -> Result<Self, String> {
        let counting = BandDefaults {
            algorithm,
            overdraft: Some(0),
            refundable: false,
            on_change,
            max_wait,
            calendar: BandCalendar::default(),
        };
        let band = rate::parse_calendar(text)
            .and_then(|rate| build(text.to_owned(), rate, None, counting));
        band.map_err(ConfigFault::into_sentence)
    }
}

/// Settings that all bands of a limit share.
#[derive(Clone, Copy, Debug)]
pub struct BandDefaults {
    /// The algorithm.
    pub algorithm: Algorithm,
    /// The overdraft: how far below empty charges may go. `None` is the amount of each band, or as much
    /// of it as fits.
    pub overdraft: Option<u64>,
    /// True if charges may be refunded.
    pub refundable: bool,
    /// The effect of changed numbers on buckets.
    pub on_change: OnChange,
    /// The longest wait of a queued request; `None` if requests do not wait.
    pub max_wait: Option<Duration>,
    /// The calendar of its windows, if they follow one.
    pub calendar: BandCalendar,
}

/// The calendar of a limit's bands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BandCalendar {
    /// True if windows of hours, days and weeks follow the calendar too (`align: calendar`). Those of months,
    /// quarters and years always do.
    pub is_aligned: bool,
    /// Time zone, first day of the week, and anchor.
    pub settings: CalendarSettings,
}

impl BandCalendar {
    /// Returns the period of the calendar in whose windows a rate counts; `None` for a rate that does not.
    pub fn period(self, rate: &RateText) -> Option<CalendarPeriod> {
        let written = rate.calendar;
        written.filter(|period| self.is_aligned || period.has_months())
    }

    /// Checks that a rate with `align: calendar` has a period of the calendar, or one too short for it.
    fn check(self, text: &str, rate: &RateText) -> Result<(), ConfigFault> {
        if !self.is_aligned || rate.calendar.is_some() || rate.period_us < HOUR_US {
            return Ok(());
        }
        let quoted = ConfigFault::quote(text);
        let fault = ConfigFault::new(format!("{quoted} has no period of the calendar"));
        let amount = rate.amount;
        let mut periods = CalendarPeriod::ALL.into_iter();
        Err(
            match periods.find(|it| it.longest_us() == rate.period_us && !it.has_months()) {
                Some(period) => fault.help(format!("write `{amount}/{}`", period.word())),
                None => fault.help(
                    "calendar windows are an hour, a day, a week, a month, a quarter or a year long; or \
                     remove `align: calendar`",
                ),
            },
        )
    }
}

/// Builds a band from its numbers. `text` is the rate as written.
pub fn build(
    text: String,
    rate: RateText,
    label: Option<String>,
    counting: BandDefaults,
) -> Result<Band, ConfigFault> {
    counting.calendar.check(&text, &rate)?;
    let calendar = counting.calendar.period(&rate);
    let algorithm = match calendar {
        Some(_) => Algorithm::CalendarWindow,
        None => counting.algorithm,
    };
    let counting = BandDefaults {
        algorithm,
        ..counting
    };
    let mut spec = Quota::new(rate.amount, rate.period_us)
        .algorithm(algorithm)
        .overdraft(counting.overdraft.unwrap_or(0))
        .refundable(counting.refundable)
        .on_change(counting.on_change);
    if let Some(burst) = rate.burst {
        spec = spec.burst(burst);
    }
    if let Some(period) = calendar {
        spec = spec.calendar(counting.calendar.settings.code(period));
    }
    if let Some(label) = &label {
        spec = spec.label(label);
    }
    if let (Algorithm::TokenBucket, Some(max_wait)) = (counting.algorithm, counting.max_wait) {
        spec = spec.queue(places(rate, max_wait)).refundable(true);
    }
    let quota = match counting.overdraft {
        Some(_) => spec.build(),
        None => overdraft_of_amount(spec, rate.amount),
    };
    match quota {
        Ok(quota) => Ok(Band { text, label, quota }),
        Err(error) => Err(unrepresentable(&text, rate, counting, error)),
    }
}

/// Builds the quota of `spec` with an overdraft of `amount`, or with the largest that fits.
pub fn overdraft_of_amount(spec: QuotaSpec<'_>, amount: u64) -> Result<Quota, QuotaError> {
    match spec.overdraft(amount).build() {
        Err(QuotaError::OverdraftTooLarge { nearest }) => spec.overdraft(nearest).build(),
        built => built,
    }
}

/// Returns the number of units that come free within `max_wait`, rounded down so that no request gets a
/// place with a longer wait.
fn places(rate: RateText, max_wait: Duration) -> u64 {
    let product = max_wait.as_micros().saturating_mul(rate.amount.into());
    let units = product.checked_div(rate.period_us.into()).unwrap_or(0);
    u64::try_from(units).unwrap_or(u64::MAX)
}

/// Reports that `max_wait` allows more waiting units than can be counted in addition to the burst.
fn too_many_places(text: &str, rate: RateText, nearest: u64) -> ConfigFault {
    let product = u128::from(nearest).saturating_mul(rate.period_us.into());
    let micros = product.checked_div(rate.amount.into()).unwrap_or(0);
    let message = "more units are refilled during `max_wait` than can be counted";
    let fault = ConfigFault::new(format!("{}: {message}", ConfigFault::quote(text)));
    fault.help(format!("`max_wait: {}ms` fits", micros / 1_000))
}

/// Explains why a rate cannot be represented, and suggests the nearest one that can.
fn unrepresentable(
    text: &str,
    rate: RateText,
    counting: BandDefaults,
    error: QuotaError,
) -> ConfigFault {
    if let (QuotaError::OverdraftTooLarge { nearest }, Some(_)) = (error, counting.max_wait) {
        return too_many_places(text, rate, nearest);
    }
    let fault = ConfigFault::new(format!("{}: {error}", ConfigFault::quote(text)));
    let rate_alone = text.split("burst").next().unwrap_or(text).trim();
    let period = rate_alone
        .split_once('/')
        .map_or("s", |(_, period)| period.trim());
    match error {
        QuotaError::TooLarge { nearest } if counting.algorithm == Algorithm::TokenBucket => {
            fault.help(format!("`{rate_alone} burst {nearest}` fits"))
        }
        QuotaError::TooLarge { nearest } if nearest > 0 => {
            fault.help(format!("`{nearest}/{period}` fits"))
        }
        QuotaError::LogTooLong { nearest } => fault.help(format!(
            "`{nearest}/{period}` fits; or use `algorithm: bucketed-window`"
        )),
        QuotaError::BurstOnWindow if counting.algorithm == Algorithm::CalendarWindow => {
            fault.help(format!("write `{rate_alone}`"))
        }
        QuotaError::BurstOnWindow => fault.help(format!(
            "write `{rate_alone}`, or use `algorithm: token-bucket`"
        )),
        QuotaError::NoBurst => fault.help(format!("write `{rate_alone}`")),
        QuotaError::BurstWithoutRate => fault.help(format!("write `{}/{period}`", rate.amount)),
        QuotaError::ScaledLog => fault.help("use `on_change: keep` or `on_change: reset`"),
        QuotaError::PeriodTooLong => fault.help("the longest period that fits is 104249d"),
        QuotaError::NoPeriod => fault.help("for example `10/s`"),
        _ => fault,
    }
}
