//! Units of time: the numbers and names that requests and responses share.

/// A unit: its number, its name, and its length in seconds. A month has 30 days and a year 365, as in Envoy's
/// own service.
pub(super) struct TimeUnit {
    pub(super) number: u32,
    name: &'static str,
    pub(super) seconds: u64,
}

const fn unit(number: u32, name: &'static str, seconds: u64) -> TimeUnit {
    TimeUnit {
        number,
        name,
        seconds,
    }
}

const DAY: u64 = 24 * 60 * 60;

static UNITS: [TimeUnit; 7] = [
    unit(1, "SECOND", 1),
    unit(2, "MINUTE", 60),
    unit(3, "HOUR", 60 * 60),
    unit(4, "DAY", DAY),
    unit(5, "MONTH", 30 * DAY),
    unit(6, "YEAR", 365 * DAY),
    unit(7, "WEEK", 7 * DAY),
];

const MICROS: u64 = 1_000_000;

/// Returns the length of the unit `number` in microseconds.
pub(super) fn period_us(number: u32) -> Option<u64> {
    let unit = UNITS.iter().find(|unit| unit.number == number)?;
    Some(unit.seconds.saturating_mul(MICROS))
}

/// Returns the unit of this length, if there is one.
pub(super) fn of_period(period_us: u64) -> Option<&'static TimeUnit> {
    let is_it = |unit: &&TimeUnit| unit.seconds.saturating_mul(MICROS) == period_us;
    UNITS.iter().find(is_it)
}

/// Returns the name of the unit of this length, if there is one.
pub fn name_of_period(period_us: u64) -> Option<&'static str> {
    of_period(period_us).map(|unit| unit.name)
}
