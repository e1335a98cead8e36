//! Why a quota cannot be represented.

use std::fmt;

/// Why a quota cannot be represented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuotaError {
    /// The period is zero.
    NoPeriod,
    /// The period is longer than 285 years.
    PeriodTooLong,
    /// The burst is zero although the rate is not.
    NoBurst,
    /// There is a burst but the rate is zero, so that it would never refill.
    BurstWithoutRate,
    /// Windows have no burst.
    BurstOnWindow,
    /// Too many units for exact arithmetic in any tick; `nearest` is the most that fits.
    TooLarge {
        /// The largest burst (token bucket) or amount (windows) that fits.
        nearest: u64,
    },
    /// A sliding log remembers every unit; `nearest` is the most it may hold.
    LogTooLong {
        /// The largest amount that fits.
        nearest: u64,
    },
    /// The amount or burst fits, but not with this overdraft; `nearest` is the most that does.
    OverdraftTooLarge {
        /// The largest overdraft that fits.
        nearest: u64,
    },
    /// The rate is so fine against its period that no tick represents it.
    TooFine,
    /// A sliding log and a bucketed window remember when each unit was taken, and permits are held by someone.
    /// They cannot be scaled.
    ScaledLog,
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPeriod => f.write_str("the period is zero"),
            Self::PeriodTooLong => f.write_str("the period is longer than 285 years"),
            Self::NoBurst => f.write_str("a burst of 0 refuses everything; remove the burst, or \
                use a rate of 0"),
            Self::BurstWithoutRate => f.write_str("a rate of 0 never refills, so a burst makes no sense"),
            Self::BurstOnWindow => f.write_str("a window has no burst; only token-bucket has"),
            Self::TooLarge { nearest } => write!(f, "too large for exact arithmetic; the largest that fits is {nearest}"),
            Self::LogTooLong { nearest } => write!(f, "a sliding log records every unit and \
                holds at most {nearest}; use bucketed-window for larger amounts"),
            Self::OverdraftTooLarge { nearest } => write!(f, "the overdraft is too large; the largest that fits is {nearest}"),
            Self::TooFine => f.write_str("the rate cannot be represented exactly in microseconds, milliseconds or seconds; use a rounder amount or period"),
            Self::ScaledLog => f.write_str("a log of single units, or a number of permits, cannot be scaled; only token-bucket, fixed-window and sliding-window can"),
        }
    }
}

impl std::error::Error for QuotaError {}
