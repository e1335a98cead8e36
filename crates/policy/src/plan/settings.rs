//! The settings of one level, and the merge of levels.

use crate::band::{Band, BandDefaults, build};
use crate::calendar::{CalendarLevel, CalendarPeriod};
use crate::text::rate::RateText;
use crate::text::rate::parse_calendar;
use crate::text::{ConfigFault, parse_amount, parse_duration_us};
use std::fmt;

/// A rate: an amount per period.
///
/// ```
/// use tidegate_policy::plan::PlanRate;
///
/// assert_eq!(PlanRate::parse("1000/month")?.to_string(), "1000/month");
/// assert!(PlanRate::parse("1000").is_err());
/// # Ok::<(), tidegate_policy::text::ConfigFault>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PlanRate {
    /// The amount per period.
    pub amount: u64,
    /// The period, in microseconds.
    pub period_us: u64,
    /// The burst of a token bucket; the amount where absent.
    pub burst: Option<u64>,
    /// The length of the block after a refusal, in microseconds, for a limit that blocks. 0 means no block;
    /// the limit's own length applies where absent.
    pub block_us: Option<u64>,
    /// The period of the calendar that is written, such as a month or a day.
    pub calendar: Option<CalendarPeriod>,
    /// The calendar of its windows, as far as the plan, the group and the subject set it. Nothing is set if the
    /// rate has no period of the calendar.
    pub level: CalendarLevel,
}

/// The settings of one level. Unset fields come from the more general level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelSettings {
    pub(super) amount: Option<u64>,
    pub(super) period_us: Option<u64>,
    /// The period of the calendar that is written. Belongs to the period.
    pub(super) calendar: Option<CalendarPeriod>,
    /// Belongs to the amount: a level that sets another amount also replaces the burst.
    pub(super) burst: Option<u64>,
    pub(super) block_us: Option<u64>,
    pub(super) unlimited: bool,
}

/// The result of merging all levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MergedLevels {
    Rate(PlanRate),
    Unlimited,
    /// No level sets an amount, or none sets a period.
    Unset,
}

const AMOUNT: &str = "amount";
const PERIOD: &str = "period";
const BLOCK: &str = "block";
const RATE: &str = "rate";
const UNLIMITED: &str = "unlimited";

/// All fields that set a rate or a block.
pub(super) const FIELDS: [&str; 5] = [RATE, AMOUNT, PERIOD, UNLIMITED, BLOCK];

// === impl LevelSettings ===

impl LevelSettings {
    /// Reads one field. Returns `Ok(false)` if it is not one of [`FIELDS`].
    pub(super) fn take(&mut self, name: &str, text: &str) -> Result<bool, String> {
        let text = text.trim();
        let mut settings = Self::default();
        if name == AMOUNT {
            settings.amount = amount(text)?;
        } else if name == PERIOD {
            settings.calendar = CalendarPeriod::parse(text);
            settings.period_us = match settings.calendar {
                Some(word) => Some(word.longest_us()),
                None => period(text)?,
            };
        } else if name == BLOCK {
            settings.block_us = Some(block(text)?);
        } else if name == RATE {
            settings = Self::from_rate(text)?;
        } else if name == UNLIMITED {
            settings.unlimited = flag(text)?;
        } else {
            return Ok(false);
        }
        let is_twice = (self.amount.is_some() && settings.amount.is_some())
            || (self.period_us.is_some() && settings.period_us.is_some())
            || (self.block_us.is_some() && settings.block_us.is_some());
        if is_twice {
            return Err(format!("`{name}` duplicates another field"));
        }
        self.amount = self.amount.or(settings.amount);
        self.period_us = self.period_us.or(settings.period_us);
        self.calendar = self.calendar.or(settings.calendar);
        self.burst = self.burst.or(settings.burst);
        self.block_us = self.block_us.or(settings.block_us);
        self.unlimited |= settings.unlimited;
        Ok(true)
    }

    /// Parses a rate: `100/min`, or `unlimited`.
    pub(super) fn from_rate(text: &str) -> Result<Self, String> {
        if text == UNLIMITED {
            return Ok(Self {
                unlimited: true,
                ..Self::default()
            });
        }
        let rate = parse_calendar(text).map_err(ConfigFault::into_sentence)?;
        Ok(Self {
            amount: Some(rate.amount).filter(|amount| *amount > 0),
            period_us: Some(rate.period_us).filter(|period| *period > 0),
            calendar: rate.calendar,
            burst: rate.burst,
            ..Self::default()
        })
    }

    /// Checks that the fields do not contradict each other.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.unlimited && (self.amount.is_some() || self.period_us.is_some()) {
            return Err("it is unlimited, but also has a rate".to_owned());
        }
        Ok(())
    }

    /// Merges this level with a more specific one, which takes precedence.
    pub(super) fn under(self, above: Self) -> Self {
        if above.unlimited {
            return above;
        }
        let (has_amount, has_period) = (above.amount.is_some(), above.period_us.is_some());
        Self {
            amount: above.amount.or(self.amount),
            period_us: above.period_us.or(self.period_us),
            calendar: if has_period {
                above.calendar
            } else {
                self.calendar
            },
            burst: if has_amount { above.burst } else { self.burst },
            block_us: above.block_us.or(self.block_us),
            unlimited: self.unlimited,
        }
    }

    /// Returns the result of the merge. A subject that is unlimited stays so until a complete rate overrides
    /// it.
    pub(super) fn sum(self, level: CalendarLevel) -> MergedLevels {
        match (self.amount, self.period_us) {
            (Some(amount), Some(period_us)) => MergedLevels::Rate(PlanRate {
                amount,
                period_us,
                burst: self.burst,
                block_us: self.block_us,
                calendar: self.calendar,
                level: PlanRate::level_of(self.calendar, level),
            }),
            _ if self.unlimited => MergedLevels::Unlimited,
            _ => MergedLevels::Unset,
        }
    }
}

/// Parses an amount: a whole number of any width, in any notation. Zero and negative numbers mean unset.
fn amount(text: &str) -> Result<Option<u64>, String> {
    if let Ok(amount) = parse_amount(text) {
        return Ok(Some(amount).filter(|amount| *amount > 0));
    }
    let expected = "expected a whole number, for example `100`";
    let amount = number(text);
    let amount = amount
        .ok_or_else(|| format!("{} is not an amount; {expected}", ConfigFault::quote(text)))?;
    Ok(Some(amount).filter(|amount| *amount > 0))
}

/// Parses a period, in seconds or as a duration, into microseconds. Zero and negative numbers mean unset.
fn period(text: &str) -> Result<Option<u64>, String> {
    let quoted = || ConfigFault::quote(text);
    if let Some(seconds) = number(text) {
        let micros = seconds.checked_mul(1_000_000);
        let micros = micros.ok_or_else(|| format!("{} seconds are too long", quoted()))?;
        return Ok(Some(micros).filter(|micros| *micros > 0));
    }
    match parse_duration_us(text) {
        Ok(micros) => Ok(Some(micros).filter(|micros| *micros > 0)),
        Err(_) => Err(format!(
            "{} is not a period; expected whole seconds, or a duration such as `1min`",
            quoted()
        )),
    }
}

/// Parses the length of a block, in seconds or as a duration, into microseconds. Zero and negative numbers
/// mean no block.
fn block(text: &str) -> Result<u64, String> {
    let seconds = number(text).and_then(|seconds| seconds.checked_mul(1_000_000));
    let length_us = match seconds {
        Some(length_us) => Some(length_us),
        None => parse_duration_us(text).ok(),
    };
    match length_us {
        Some(0) => Ok(0),
        Some(length_us) if Band::block(text, length_us).is_ok() => Ok(length_us),
        _ => Err(format!(
            "{} is not a block time; expected whole seconds, or a duration such as `5m`, from \
             1ms to 365d; 0 for none",
            ConfigFault::quote(text)
        )),
    }
}

/// Parses a whole number in the notations of databases and programs: `100`, `100.0`, `1e2`. Negative numbers
/// become 0.
fn number(text: &str) -> Option<u64> {
    if let Ok(number) = text.parse::<i128>() {
        return match u64::try_from(number) {
            Ok(number) => Some(number),
            Err(_) if number < 0 => Some(0),
            Err(_) => None,
        };
    }
    let begins = text.trim_start_matches(['-', '+']);
    if !begins.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    if number <= 0.0 {
        return Some(0);
    }
    if !number.is_finite() || number.fract() != 0.0 {
        return None;
    }
    format!("{number:.0}").parse().ok()
}

pub(super) fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(format!(
            "{} is neither `true` nor `false`",
            ConfigFault::quote(text)
        )),
    }
}

// === impl PlanRate ===

impl PlanRate {
    /// Reads a rate, such as `100/min burst 20` or `1000/month`.
    ///
    /// # Errors
    ///
    /// If the text is not a rate.
    pub fn parse(text: &str) -> Result<Self, ConfigFault> {
        let rate = parse_calendar(text)?;
        Ok(Self {
            amount: rate.amount,
            period_us: rate.period_us,
            burst: rate.burst,
            block_us: None,
            calendar: rate.calendar,
            level: CalendarLevel::default(),
        })
    }

    /// Returns the rate for subjects with these settings of a calendar.
    pub(super) fn at(self, level: CalendarLevel) -> Self {
        Self {
            level: Self::level_of(self.calendar, level),
            ..self
        }
    }

    /// Leaves out settings that make no difference, so that there are few different rates.
    fn level_of(calendar: Option<CalendarPeriod>, level: CalendarLevel) -> CalendarLevel {
        calendar.map_or_else(CalendarLevel::default, |_| level)
    }

    /// Builds the band of a limit with this rate.
    ///
    /// # Errors
    ///
    /// Returns the reason if the rate cannot be represented.
    pub fn band(self, label: &str, counting: BandDefaults) -> Result<Band, String> {
        let numbers = RateText {
            amount: self.amount,
            period_us: self.period_us,
            burst: self.burst,
            calendar: self.calendar,
        };
        let mut counting = counting;
        counting.calendar.settings = counting.calendar.settings.under(self.level);
        let band = build(self.to_string(), numbers, Some(label.to_owned()), counting);
        band.map_err(ConfigFault::into_sentence)
    }
}

impl fmt::Display for PlanRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] = [
            (86_400_000_000, "d"),
            (3_600_000_000, "h"),
            (60_000_000, "min"),
            (1_000_000, "s"),
            (1_000, "ms"),
        ];
        let fits = |(length, _): &&(u64, &str)| self.period_us.is_multiple_of(*length);
        let (length, unit) = UNITS.iter().find(fits).copied().unwrap_or((1, "us"));
        write!(f, "{}/", self.amount)?;
        match (self.calendar, self.period_us.checked_div(length)) {
            // Words of hours and days are those of durations too.
            (Some(period), _) if period.has_months() || period == CalendarPeriod::Week => {
                f.write_str(period.word())?;
            }
            (_, Some(1)) => f.write_str(unit)?,
            (_, count) => write!(f, "{}{unit}", count.unwrap_or(0))?,
        }
        match self.burst {
            Some(burst) => write!(f, " burst {burst}"),
            None => Ok(()),
        }
    }
}
