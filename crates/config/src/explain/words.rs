//! Formats lists, periods and plurals.

use std::time::Duration;
use tidegate_policy::text::counted;

/// Units of time, longest first, with their length in microseconds.
const UNITS: [(u64, &str); 7] = [
    (604_800_000_000, "week"),
    (86_400_000_000, "day"),
    (3_600_000_000, "hour"),
    (60_000_000, "minute"),
    (1_000_000, "second"),
    (1_000, "millisecond"),
    (1, "microsecond"),
];

/// Joins items: "a", "a and b", "a, b and c".
pub(super) fn list(items: &[impl AsRef<str>], and: &str) -> String {
    let items: Vec<&str> = items.iter().map(AsRef::as_ref).collect();
    match items.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} {and} {last}", first.join(", ")),
    }
}

/// Formats a period: "1 second", "10 seconds", "1 hour and 30 minutes".
pub(super) fn period(micros: u64) -> String {
    let mut parts = Vec::new();
    let mut rest = micros;
    for (length, name) in UNITS {
        let count = rest / length;
        rest %= length;
        if count > 0 {
            parts.push(counted(count, name, &format!("{name}s")));
        }
    }
    list(&parts, "and")
}

/// Formats a duration as [`period`] does.
pub(super) fn time(time: Duration) -> String {
    period(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
}

/// Formats a period as "a second" or "every 10 seconds".
pub(super) fn per(micros: u64) -> String {
    match single(micros) {
        Some("hour") => "an hour".to_owned(),
        Some(name) => format!("a {name}"),
        None => format!("every {}", period(micros)),
    }
}

/// Formats a period as "any second" or "any 10 seconds".
pub(super) fn any(micros: u64) -> String {
    match single(micros) {
        Some(name) => format!("any {name}"),
        None => format!("any {}", period(micros)),
    }
}

/// Returns the name of the unit, if the period is exactly one unit.
fn single(micros: u64) -> Option<&'static str> {
    let found = UNITS.iter().find(|(length, _)| *length == micros)?;
    Some(found.1)
}

#[cfg(test)]
mod tests {
    use super::{any, list, per, period};

    #[test]
    fn periods_read_well() {
        assert_eq!(period(5_400_000_000), "1 hour and 30 minutes");
        assert_eq!(
            period(90_061_000_000),
            "1 day, 1 hour, 1 minute and 1 second"
        );
        assert_eq!(per(3_600_000_000), "an hour");
        assert_eq!(per(10_000_000), "every 10 seconds");
        assert_eq!(any(1_000_000), "any second");
        assert_eq!(any(500_000), "any 500 milliseconds");
    }

    #[test]
    fn lists_read_well() {
        assert_eq!(list(&["a"], "or"), "a");
        assert_eq!(list(&["a", "b", "c"], "or"), "a, b or c");
    }
}
