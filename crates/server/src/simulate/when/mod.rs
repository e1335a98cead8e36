//! Timestamps of access logs, parsed exactly: in integers, to the microsecond.

mod civil;
mod common_log;
mod digits;
mod epoch;
mod rfc3339;

pub use civil::show;
pub use common_log::common_log;
pub use epoch::epoch;
pub use rfc3339::rfc3339;

use tidegate::Timestamp;

/// The latest accepted timestamp: 2^53 microseconds, in the year 2255. Every store counts exactly up to
/// there.
pub const LATEST: Timestamp = Timestamp::from_micros(1 << 53);

/// Parses a timestamp in any of the formats above.
///
/// ```
/// use tidegate_server::simulate::when;
///
/// let at = when::any("2023-11-14T23:13:20.5+01:00");
/// assert_eq!(at, when::any("1700000000.5"));
/// assert_eq!(at, when::any("1700000000500"));
/// assert_eq!(at.map(when::show).as_deref(), Some("2023-11-14T22:13:20.500Z"));
/// assert_eq!(when::any("yesterday"), None);
/// ```
pub fn any(text: &str) -> Option<Timestamp> {
    rfc3339(text)
        .or_else(|| common_log(text))
        .or_else(|| epoch(text))
}
