//! A rate written in code.

use std::fmt;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

/// The units that a period is written in, longest first.
const UNITS: [(Duration, &str); 7] = [
    (DAY, "d"),
    (HOUR, "h"),
    (MINUTE, "min"),
    (SECOND, "s"),
    (Duration::from_millis(1), "ms"),
    (Duration::from_micros(1), "us"),
    (Duration::from_nanos(1), "ns"),
];

/// A rate in numbers: an amount per period, and the units that may be used at once.
///
/// A rate is accepted wherever one is written as text, and is the same as its text: `Rate::per_second(10)
/// .burst(50)` is `10/s burst 50`. All constructors are `const`, and none fails. A rate that cannot be
/// represented exactly, such as a period of zero or of nanoseconds, is reported when the limiter is built.
///
/// | rate | text |
/// |---|---|
/// | `Rate::per_minute(100)` | `100/min` |
/// | `Rate::per_second(10).burst(50)` | `10/s burst 50` |
/// | `Rate::with_period(Duration::from_millis(250))` | `1/250ms` |
/// | `Rate::new(40, Duration::from_secs(10))` | `40/10s` |
///
/// ```
/// use tidegate::{KeyPart, LimitSpec, Limiter, Rate, Request};
///
/// const SEARCHES: Rate = Rate::per_minute(30).burst(5);
///
/// let limiter = Limiter::builder()
///     .limit(LimitSpec::new("search").key(KeyPart::User).band(SEARCHES))
///     .build()?;
/// let decision = limiter.check_now(&Request::new().user("ann"))?;
/// assert_eq!(decision.binding().map(|band| (band.capacity(), band.remaining())), Some((5, 4)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Rate {
    amount: u64,
    period: Duration,
    burst: Option<u64>,
}

impl Rate {
    /// Returns a rate of `amount` units per `period`, all of which may be used at once. An amount of 0
    /// refuses every request.
    ///
    /// The period is a whole number of microseconds.
    pub const fn new(amount: u64, period: Duration) -> Self {
        Self {
            amount,
            period,
            burst: None,
        }
    }

    /// Returns a rate of `amount` units per second.
    pub const fn per_second(amount: u64) -> Self {
        Self::new(amount, SECOND)
    }

    /// Returns a rate of `amount` units per minute.
    pub const fn per_minute(amount: u64) -> Self {
        Self::new(amount, MINUTE)
    }

    /// Returns a rate of `amount` units per hour.
    pub const fn per_hour(amount: u64) -> Self {
        Self::new(amount, HOUR)
    }

    /// Returns a rate of `amount` units per day.
    pub const fn per_day(amount: u64) -> Self {
        Self::new(amount, DAY)
    }

    /// Returns a rate of one unit per `period`.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Rate};
    ///
    /// let rate = Rate::with_period(Duration::from_millis(250)).burst(8);
    /// assert_eq!(rate.to_string(), "1/250ms burst 8");
    ///
    /// // Periods that cannot be represented exactly are an error of the limit, with its name.
    /// let never = LimitSpec::new("api").band(Rate::with_period(Duration::ZERO));
    /// let error = Limiter::builder().limit(never).build().unwrap_err();
    /// assert_eq!(error.to_string(), "limit `api`: `1/0s`: the period is zero; for example `10/s`");
    /// ```
    pub const fn with_period(period: Duration) -> Self {
        Self::new(1, period)
    }

    /// Allows `units` to be used at once, after a time without requests. Default: the amount.
    ///
    /// Only token buckets have a burst. A burst of 0 is an error of the limit.
    pub const fn burst(self, units: u64) -> Self {
        Self {
            burst: Some(units),
            ..self
        }
    }
}

/// Writes the text of the rate, such as `10/s burst 50`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.period.as_nanos();
        let mut units = UNITS.iter().map(|(unit, name)| (unit.as_nanos(), name));
        let unit = units.find(|(unit, _)| nanos >= *unit && nanos.is_multiple_of(*unit));
        write!(f, "{}/", self.amount)?;
        match unit {
            Some((unit, name)) if unit == nanos => f.write_str(name)?,
            Some((unit, name)) => write!(f, "{}{name}", nanos.div_euclid(unit))?,
            None => f.write_str("0s")?,
        }
        match self.burst {
            Some(burst) => write!(f, " burst {burst}"),
            None => Ok(()),
        }
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}
