//! Calendar windows: hours, days, weeks, months, quarters and years in a time zone.
//!
//! | module | contents |
//! |---|---|
//! | `weekday` | the days of the week |
//! | `anchor` | the day or the local time from which windows are counted |
//! | `zone` | a time zone: its offsets from UTC, and their changes |
//! | `zone_data` | the time zones of this process: the bundled ones, or the system's |
//! | `civil` | dates as numbers of days |
//! | `recurrence` | the local times at which windows begin |
//! | `windows` | the instants at which they begin: [`CalendarWindows`] |
//! | `code` | a calendar as one number, in a quota: [`CalendarSettings`] |
//! | `level` | the settings that one level sets, and the merge of levels |
//! | `book` | the windows that were used last, computed once each |
//!
//! A window begins when the local clock first shows its local start or, because the clock skips it, a later
//! time. That one rule covers all zones:
//!
//! - A start that the clock skips is the first instant after the gap.
//! - A start that the clock shows twice is the first of the two. The clock then goes back behind the start;
//!   the window has begun nevertheless.
//! - Several starts in one gap fall on one instant, and count as one.
//!
//! A window is the half-open interval between two starts. Windows follow each other without gap or overlap,
//! so that each instant is in one of them.
//!
//! Starts are whole seconds, because offsets and anchors are. Comparing the whole seconds of an instant with
//! them is exact.

mod anchor;
mod book;
mod civil;
mod code;
mod level;
mod recurrence;
#[cfg(test)]
mod tests;
mod weekday;
mod windows;
mod zone;
mod zone_data;

pub use crate::text::CalendarPeriod;
pub use anchor::{CalendarAnchor, LocalDateTime};
pub use book::{kept_starts, starts_around, with_starts_around};
pub use code::{CalendarSettings, ZoneNumber};
pub use level::CalendarLevel;
pub use weekday::Weekday;
pub use windows::{CalendarStarts, CalendarWindows, InstantTooLate};
pub use zone::CalendarZone;
pub use zone_data::ZoneData;
