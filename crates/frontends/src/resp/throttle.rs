//! `CL.THROTTLE key max_burst count_per_period period [quantity]`: the replies and the error messages of
//! redis-cell.

use super::parse::RespCommand;
use super::quotas::{Parameters, Quotas};
use super::reply::Replies;
use std::fmt::{self, Display};
use tidegate::ThrottleOutcome;
use tidegate_core::{Quota, QuotaError};

const USAGE: &str = "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";

/// The parameters of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThrottleCall<'a> {
    pub(super) key: &'a [u8],
    pub(super) quota: &'a Quota,
    pub(super) quantity: u64,
}

/// The error of a call.
#[derive(Debug)]
pub(super) enum ThrottleError<'a> {
    Usage,
    NotAnInteger(&'a [u8]),
    Negative(&'static str),
    Zero,
    /// An invalid quota. redis-cell accepts it, and would wrap around or lose fractions.
    Quota(QuotaError),
}

impl<'a> ThrottleCall<'a> {
    #[inline]
    pub(super) fn read(
        command: RespCommand<'a>,
        quotas: &'a mut Quotas,
    ) -> Result<Self, ThrottleError<'a>> {
        if !matches!(command.len(), 5 | 6) {
            return Err(ThrottleError::Usage);
        }
        let max_burst = integer(command.word(2))?;
        let count = integer(command.word(3))?;
        let period_s = integer(command.word(4))?;
        let quantity = match command.len() {
            6 => integer(command.word(5))?,
            _ => 1,
        };
        if count == 0 || period_s == 0 {
            return Err(ThrottleError::Zero);
        }
        let natural =
            |number: i64, name| u64::try_from(number).map_err(|_| ThrottleError::Negative(name));
        let parameters: Parameters = (
            natural(max_burst, "max_burst")?.saturating_add(1),
            natural(count, "count per period")?,
            natural(period_s, "period")?,
        );
        Ok(Self {
            key: command.word(1),
            quantity: natural(quantity, "quantity")?,
            quota: quotas.of(parameters).map_err(ThrottleError::Quota)?,
        })
    }
}

/// Parses a number like Rust, and so like redis-cell: a sign and leading zeros are accepted.
#[inline]
fn integer(word: &[u8]) -> Result<i64, ThrottleError<'_>> {
    // This many digits always fit.
    if matches!(word.len(), 1..=18) {
        let mut number = 0;
        let mut digits = word.iter().map(|byte| byte.wrapping_sub(b'0'));
        let are_digits = digits.all(|digit| {
            number = number * 10 + i64::from(digit);
            digit <= 9
        });
        if are_digits {
            return Ok(number);
        }
    }
    odd_integer(word)
}

#[cold]
fn odd_integer(word: &[u8]) -> Result<i64, ThrottleError<'_>> {
    let text = std::str::from_utf8(word).ok();
    let number = text.and_then(|text| text.parse().ok());
    number.ok_or(ThrottleError::NotAnInteger(word))
}

/// Writes redis-cell's five integers.
#[inline]
pub(super) fn write(throttled: &ThrottleOutcome, capacity: u64, replies: &mut Replies) {
    let outcome = &throttled.outcome;
    let is_allowed = throttled.is_allowed();
    let retry_after = match outcome.wait.as_micros() {
        Some(wait_us) if !is_allowed => seconds(wait_us),
        _ => -1,
    };
    replies.integers([
        i64::from(!is_allowed),
        i64::try_from(capacity).unwrap_or(i64::MAX),
        i64::try_from(outcome.remaining).unwrap_or(i64::MAX),
        retry_after,
        seconds(outcome.reset_us),
    ]);
}

/// Returns whole seconds, rounded up, so that no client retries too early.
#[inline]
fn seconds(micros: u64) -> i64 {
    i64::try_from(micros.div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

impl Display for ThrottleError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cell = "Cell error: Store error:";
        match self {
            Self::Usage => write!(f, "{cell} {USAGE}"),
            Self::NotAnInteger(word) => {
                let word = word.get(..128).unwrap_or(word);
                let word = String::from_utf8_lossy(word);
                write!(f, "{cell} Couldn't parse as integer: {word}")
            }
            Self::Negative(name) => write!(f, "{cell} {name} must not be negative"),
            Self::Zero => write!(f, "{cell} Zero rates are not supported"),
            Self::Quota(error) => write!(f, "ERR cl.throttle: {error}"),
        }
    }
}
