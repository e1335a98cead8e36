//! A calendar as one number, which travels with a quota.

use super::anchor::LocalDateTime;
use super::{CalendarAnchor, CalendarPeriod, CalendarWindows, CalendarZone, Weekday, ZoneData};
use crate::text::ConfigFault;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use tidegate_core::quota::CalendarCode;

/// The settings by which the windows of a band are computed, apart from its period.
///
/// ```
/// use tidegate_policy::calendar::{CalendarPeriod, CalendarSettings, CalendarWindows};
///
/// let monthly = CalendarSettings::default().code(CalendarPeriod::Month);
/// let windows = CalendarWindows::of(monthly).expect("a calendar of this process");
/// assert_eq!((windows.period(), windows.zone().name()), (CalendarPeriod::Month, "UTC"));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CalendarSettings {
    /// The time zone.
    pub zone: ZoneNumber,
    /// The first day of a week.
    pub week_start: Weekday,
    /// The point from which windows are counted; absent for the calendar's own.
    pub anchor: Option<CalendarAnchor>,
}

/// A time zone of [this process](ZoneData::current) by its number, which is the same within one process. The default is UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ZoneNumber(u16);

impl ZoneNumber {
    /// Returns the number of a zone by its IANA name.
    ///
    /// ```
    /// use tidegate_policy::calendar::ZoneNumber;
    ///
    /// assert_eq!(ZoneNumber::parse("Asia/Kathmandu").unwrap().name(), "Asia/Kathmandu");
    /// assert_eq!(ZoneNumber::parse("UTC"), Ok(ZoneNumber::default()));
    /// assert!(ZoneNumber::parse("Asia/Katmando").is_err());
    /// ```
    pub fn parse(name: &str) -> Result<Self, ConfigFault> {
        if name == Self::default().name() {
            return Ok(Self::default());
        }
        let data = ZoneData::current();
        data.zone(name)?;
        let nth = data.names().position(|known| known == name);
        let number = nth.and_then(|nth| u16::try_from(nth + 1).ok());
        Ok(Self(number.unwrap_or_default()))
    }

    /// Returns its IANA name.
    pub fn name(self) -> &'static str {
        let nth = usize::from(self.0).checked_sub(1);
        let name = nth.and_then(|nth| ZoneData::current().nth(nth));
        name.unwrap_or("UTC")
    }

    #[cfg(test)]
    pub(super) fn zone_of_tests(self) -> CalendarZone {
        CalendarZone::bundled(self.name()).expect("a bundled zone")
    }

    /// Returns the zone. Its data is read once.
    fn zone(self) -> CalendarZone {
        static ZONES: OnceLock<Box<[OnceLock<CalendarZone>]>> = OnceLock::new();
        let zones = ZONES.get_or_init(|| {
            let all = 0..=ZoneData::current().count();
            all.map(|_| OnceLock::new()).collect()
        });
        let read = || {
            let zone = ZoneData::current().zone(self.name());
            zone.unwrap_or(CalendarZone::utc())
        };
        match zones.get(usize::from(self.0)) {
            Some(zone) => zone.get_or_init(read).clone(),
            None => CalendarZone::utc(),
        }
    }
}

/// Bits of the parts of a code, lowest first. The anchor follows them.
const PERIOD_BITS: u32 = 3;
const WEEKDAY_BITS: u32 = 3;
const ZONE_BITS: u32 = 12;

/// Bits of the parts of an anchor: its kind, the day, and of a date and time the seconds and the month.
const KIND_BITS: u32 = 2;
const DAY_BITS: u32 = 5;
const TIME_BITS: u32 = 17;
const MONTH_BITS: u32 = 17;

const DAY_OF_MONTH: u64 = 1;
const DATE_TIME: u64 = 2;

impl CalendarSettings {
    /// Returns the calendar of a period with these settings. Equal windows have equal codes.
    pub fn code(self, period: CalendarPeriod) -> CalendarCode {
        // Settings that do not apply to a period are left out, so that they make no difference.
        let week_start = match (period, self.anchor) {
            (CalendarPeriod::Week, None | Some(CalendarAnchor::DayOfMonth(_))) => self.week_start,
            _ => Weekday::default(),
        };
        let mut parts = CodeParts::default();
        parts.push(place(&CalendarPeriod::ALL, &period) + 1, PERIOD_BITS);
        parts.push(place(&Weekday::ALL, &week_start), WEEKDAY_BITS);
        parts.push(self.zone.0.into(), ZONE_BITS);
        match self.anchor {
            Some(CalendarAnchor::DayOfMonth(day)) if period.has_months() => {
                parts.push(DAY_OF_MONTH, KIND_BITS);
                parts.push(day.into(), DAY_BITS);
            }
            Some(CalendarAnchor::DateTime(local)) => {
                parts.push(DATE_TIME, KIND_BITS);
                parts.push(local.day().unsigned_abs(), DAY_BITS);
                parts.push(local.time().unsigned_abs(), TIME_BITS);
                parts.push(local.month().unsigned_abs(), MONTH_BITS);
            }
            Some(CalendarAnchor::DayOfMonth(_)) | None => {}
        }
        CalendarCode::new(NonZeroU64::new(parts.bits).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the period and the settings of a code that this process made; `None` of any other. Settings that do
    /// not apply to the period have their default.
    pub fn of(code: CalendarCode) -> Option<(CalendarPeriod, Self)> {
        let mut parts = CodeParts {
            bits: code.as_u64(),
            used: 0,
        };
        let period = parts.pull(PERIOD_BITS).checked_sub(1)?;
        let period = *CalendarPeriod::ALL.get(usize::try_from(period).ok()?)?;
        let week_start = usize::try_from(parts.pull(WEEKDAY_BITS)).ok()?;
        let week_start = *Weekday::ALL.get(week_start)?;
        let zone = ZoneNumber(u16::try_from(parts.pull(ZONE_BITS)).ok()?);
        let anchor = match parts.pull(KIND_BITS) {
            DAY_OF_MONTH => {
                let day = u8::try_from(parts.pull(DAY_BITS)).ok()?;
                Some(CalendarAnchor::DayOfMonth(day))
            }
            DATE_TIME => {
                let day = parts.pull(DAY_BITS).cast_signed();
                let time = parts.pull(TIME_BITS).cast_signed();
                let month = parts.pull(MONTH_BITS).cast_signed();
                let local = LocalDateTime::from_parts(month, day, time);
                Some(CalendarAnchor::DateTime(local))
            }
            _ => None,
        };
        let settings = Self {
            zone,
            week_start,
            anchor,
        };
        Some((period, settings))
    }
}

impl CalendarWindows {
    /// Returns the windows of a code that [`CalendarSettings::code`] made in this process; `None` of any other.
    pub fn of(code: CalendarCode) -> Option<Self> {
        let (period, settings) = CalendarSettings::of(code)?;
        let zone = settings.zone.zone();
        Some(Self::new(
            period,
            zone,
            settings.week_start,
            settings.anchor,
        ))
    }
}

/// The index of an item in a list that has it.
fn place<T: PartialEq>(all: &[T], item: &T) -> u64 {
    let place = all.iter().position(|known| known == item);
    place.unwrap_or_default() as u64
}

/// Numbers in a row of bits, the first lowest.
#[derive(Default)]
struct CodeParts {
    bits: u64,
    used: u32,
}

impl CodeParts {
    fn push(&mut self, number: u64, bits: u32) {
        self.bits |= number << self.used;
        self.used += bits;
    }

    fn pull(&mut self, bits: u32) -> u64 {
        let number = (self.bits >> self.used) % (1 << bits);
        self.used += bits;
        number
    }
}
