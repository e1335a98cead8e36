//! Durations in readable form: `20ms`, `5s`, `1h30m`, `10 minutes`.

use crate::text::ConfigFault;

/// Units, with their length in microseconds and all their spellings.
const UNITS: [(u64, &[&str]); 7] = [
    (1, &["us", "µs", "microsecond", "microseconds"]),
    (1_000, &["ms", "millisecond", "milliseconds"]),
    (1_000_000, &["s", "sec", "secs", "second", "seconds"]),
    (60_000_000, &["m", "min", "mins", "minute", "minutes"]),
    (3_600_000_000, &["h", "hr", "hrs", "hour", "hours"]),
    (86_400_000_000, &["d", "day", "days"]),
    (604_800_000_000, &["w", "week", "weeks"]),
];

/// Reads a duration such as `20ms`, `5s` or `1h30m`.
///
/// ```
/// use std::time::Duration;
/// use tidegate_policy::text::duration;
///
/// assert_eq!(duration("1h30m"), Ok(Duration::from_mins(90)));
/// assert!(duration("5").is_err());
/// ```
///
/// # Errors
///
/// Returns a message with the mistake and the correct form. A number without a unit is an error.
pub fn read(text: &str) -> Result<std::time::Duration, String> {
    let micros = parse(text).map_err(ConfigFault::into_sentence)?;
    Ok(std::time::Duration::from_micros(micros))
}

/// Reads a duration and returns it in microseconds.
pub fn parse(text: &str) -> Result<u64, ConfigFault> {
    let mut rest = text.trim();
    if let Ok(number) = rest.parse::<u64>() {
        return Err(ConfigFault::new(format!("`{number}` has no unit"))
            .help(format!("write {number}ms or {number}s")));
    }
    if rest.is_empty() {
        return Err(refused(text));
    }
    let mut total: u64 = 0;
    let mut last_unit_us = u64::MAX;
    while !rest.is_empty() {
        let (digits, after) = split(rest, |c| c.is_ascii_digit() || c == '_');
        let (unit, after) = split(after.trim_start(), char::is_alphabetic);
        let count = number(digits).ok_or_else(|| refused(text))?;
        let unit_us = unit_us(unit).ok_or_else(|| unknown_unit(text, unit))?;
        if unit_us >= last_unit_us {
            return Err(ConfigFault::new(format!(
                "the units of {} are out of order",
                ConfigFault::quote(text)
            ))
            .help("write the larger unit first, each once, for example `1h30m`"));
        }
        last_unit_us = unit_us;
        total = count
            .checked_mul(unit_us)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| ConfigFault::new(format!("{} is too long", ConfigFault::quote(text))))?;
        rest = after.trim_start();
    }
    Ok(total)
}

/// Returns the length of a unit in microseconds.
pub fn unit_us(name: &str) -> Option<u64> {
    let found = UNITS.iter().find(|(_, names)| names.contains(&name))?;
    Some(found.0)
}

/// Reads a whole number. Single `_` may separate its digits.
pub fn number(text: &str) -> Option<u64> {
    let starts_well = text.starts_with(|first: char| first.is_ascii_digit());
    let well_formed = starts_well && !text.ends_with('_') && !text.contains("__");
    let digits: String = text.chars().filter(|c| *c != '_').collect();
    digits.parse().ok().filter(|_| well_formed)
}

/// Returns the longest prefix whose characters all satisfy `belongs`, and the rest.
pub fn split(text: &str, belongs: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

/// Explains why `unit` is not a unit.
fn unknown_unit(text: &str, unit: &str) -> ConfigFault {
    match unit {
        "" => refused(text),
        "month" | "months" | "mo" | "M" | "year" | "years" | "y" => {
            ConfigFault::new(format!("{} has no fixed length", ConfigFault::quote(unit)))
                .help("write 30d or 365d")
        }
        _ => ConfigFault::new(format!(
            "{} is not a unit of time",
            ConfigFault::quote(unit)
        ))
        .help("expected us, ms, s, min, h, d or w, for example `1h30m`"),
    }
}

fn refused(text: &str) -> ConfigFault {
    ConfigFault::new(format!("{} is not a duration", ConfigFault::quote(text)))
        .help("expected a whole number and a unit, for example `20ms`, `5s` or `1h30m`")
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn durations_are_parsed_in_common_notation() {
        for (text, micros) in [
            ("20ms", 20_000),
            ("5s", 5_000_000),
            ("1h30m", 5_400_000_000),
            ("1h 30m", 5_400_000_000),
            ("10 minutes", 600_000_000),
            ("1 minute", 60_000_000),
            ("1d", 86_400_000_000),
            ("1w", 604_800_000_000),
            ("1_000ms", 1_000_000),
            ("250us", 250),
            ("250µs", 250),
            (" 5s ", 5_000_000),
            ("0s", 0),
        ] {
            assert_eq!(parse(text), Ok(micros), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_reports_the_reason() {
        for (text, help) in [
            ("20", "write 20ms or 20s"),
            ("", "for example `20ms`"),
            ("s", "for example `20ms`"),
            ("-5s", "for example `20ms`"),
            ("1.5s", "for example `20ms`"),
            ("5 parsecs", "expected us, ms, s"),
            ("1month", "30d"),
            ("30m1h", "larger unit first"),
            ("5s5s", "larger unit first"),
            ("1__0s", "for example `20ms`"),
        ] {
            let help_given = parse(text).unwrap_err().help.unwrap();
            assert!(help_given.contains(help), "{text}: {help_given}");
        }
        assert!(parse("99999999999999999999s").is_err());
        assert!(parse("18446744073709551615w").is_err());
    }
}
