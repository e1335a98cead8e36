//! Tests of calendar windows: their rules one by one, the vectors, and random cases against an
//! [`oracle`] that shares no code with them.

mod civil;
mod oracle;
mod properties;
mod rules;
mod texts;
mod vectors;

use super::{CalendarAnchor, CalendarPeriod, CalendarWindows, CalendarZone, Weekday};
use jiff::Timestamp;

/// Returns the windows of a period in a bundled zone, with an anchor as written.
fn windows(period: CalendarPeriod, zone: &str, anchor: Option<&str>) -> CalendarWindows {
    let zone = CalendarZone::bundled(zone).expect("a zone");
    let anchor = anchor.map(|text| CalendarAnchor::parse(text).expect("an anchor"));
    CalendarWindows::new(period, zone, Weekday::Monday, anchor)
}

/// Returns the Unix milliseconds of an instant such as `2026-03-29T01:00Z`.
fn at(text: &str) -> u64 {
    let instant: Timestamp = text.parse().expect("an instant");
    u64::try_from(instant.as_millisecond()).expect("an instant after 1969")
}

/// Returns Unix milliseconds as text, in UTC.
fn text(at_ms: i64) -> String {
    let instant = Timestamp::from_millisecond(at_ms).expect("an instant that jiff has");
    instant.to_string()
}
