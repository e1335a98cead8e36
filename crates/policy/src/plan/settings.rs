//! The settings of one level, and the merge of levels.

use crate::band::{Band, BandDefaults, build};
use crate::text::rate::RateText;
use crate::text::{ConfigFault, parse_amount, parse_duration_us, parse_rate};
use std::fmt;

/// A rate: an amount per period.
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
}

/// The settings of one level. Unset fields come from the more general level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelSettings {
    pub(super) amount: Option<u64>,
    pub(super) period_us: Option<u64>,
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
            settings.period_us = period(text)?;
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
        let (amount, period_us, burst) = parse_rate(text).map_err(ConfigFault::into_sentence)?;
        Ok(Self {
            amount: Some(amount).filter(|amount| *amount > 0),
            period_us: Some(period_us).filter(|period| *period > 0),
            burst,
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
        let has_amount = above.amount.is_some();
        Self {
            amount: above.amount.or(self.amount),
            period_us: above.period_us.or(self.period_us),
            burst: if has_amount { above.burst } else { self.burst },
            block_us: above.block_us.or(self.block_us),
            unlimited: self.unlimited,
        }
    }

    /// Returns the result of the merge. A subject that is unlimited stays so until a complete rate overrides
    /// it.
    pub(super) fn sum(self) -> MergedLevels {
        match (self.amount, self.period_us) {
            (Some(amount), Some(period_us)) => MergedLevels::Rate(PlanRate {
                amount,
                period_us,
                burst: self.burst,
                block_us: self.block_us,
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
            calendar: None,
        };
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
        match self.period_us.checked_div(length) {
            Some(1) => f.write_str(unit)?,
            count => write!(f, "{}{unit}", count.unwrap_or(0))?,
        }
        match self.burst {
            Some(burst) => write!(f, " burst {burst}"),
            None => Ok(()),
        }
    }
}
