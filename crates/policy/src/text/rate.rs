//! Rates in readable form: `100/min`, `10/s burst 50`, `100 per minute`.

use super::duration;
use super::size;
use crate::text::CalendarPeriod;
use crate::text::ConfigFault;
use crate::text::closest;

/// An amount per period, and the burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateText {
    /// The amount per period.
    pub amount: u64,
    /// The period, in microseconds.
    pub period_us: u64,
    /// The burst, if there is one.
    pub burst: Option<u64>,
    /// The period of the calendar that is written, such as a month or a day. The period of a month is the longest.
    pub calendar: Option<CalendarPeriod>,
}

const EXAMPLE: &str = "expected an amount per period, for example `100/min` or `10/s burst 50`";

/// Reads a rate whose period is always as long.
pub fn parse(text: &str) -> Result<RateText, ConfigFault> {
    let rate = parse_calendar(text)?;
    match rate.calendar {
        Some(period) if period.has_months() => Err(only_in_bands(text.trim(), period)),
        _ => Ok(rate),
    }
}

/// Explains that a month is not possible here.
fn only_in_bands(text: &str, period: CalendarPeriod) -> ConfigFault {
    let word = period.word();
    let days = match period {
        CalendarPeriod::Quarter => "90d",
        CalendarPeriod::Year => "365d",
        _ => "30d",
    };
    let message = format!(
        "{} is a calendar window, which only the bands of a limit can be",
        ConfigFault::quote(text)
    );
    let fixed = text.replacen(word, days, 1);
    ConfigFault::new(message).help(format!("write a length, such as `{fixed}`"))
}

/// Reads a rate, which may be per month, quarter or year.
pub fn parse_calendar(text: &str) -> Result<RateText, ConfigFault> {
    let trimmed = text.trim();
    let (amount, rest) = split_amount(trimmed)?;
    let (period, burst) = match rest.split_once("burst") {
        Some((period, burst)) => (period.trim(), Some(burst.trim())),
        None => (rest.trim(), None),
    };
    let amount = read_amount(amount.trim(), rest)?;
    let (period_us, calendar) = read_period(period, trimmed)?;
    Ok(RateText {
        amount,
        period_us,
        burst: burst.map(read_burst).transpose()?,
        calendar,
    })
}

/// Reads a rate of bytes: `10MiB/s`, `10MiB/s burst 100MiB`.
pub fn parse_bytes(text: &str) -> Result<RateText, ConfigFault> {
    let trimmed = text.trim();
    let Some((amount, rest)) = trimmed.split_once('/') else {
        let fault = ConfigFault::new(format!(
            "{} is not a rate of bytes",
            ConfigFault::quote(trimmed)
        ));
        return Err(fault.help("for example `10MiB/s` or `10MiB/s burst 100MiB`"));
    };
    let (period, burst) = match rest.split_once("burst") {
        Some((period, burst)) => (period.trim(), Some(burst.trim())),
        None => (rest.trim(), None),
    };
    let amount = size::parse(amount.trim())?;
    let (period_us, calendar) = read_period(period, trimmed)?;
    if let Some(period) = calendar.filter(|period| period.has_months()) {
        return Err(only_in_bands(trimmed, period));
    }
    Ok(RateText {
        amount,
        period_us,
        burst: burst.map(size::parse).transpose()?,
        calendar,
    })
}

/// Splits `100/min` or `100 per minute` after the amount.
fn split_amount(text: &str) -> Result<(&str, &str), ConfigFault> {
    if let Some(split) = text.split_once('/').or_else(|| text.split_once(" per ")) {
        return Ok(split);
    }
    let quoted = ConfigFault::quote(text);
    Err(if text == "unlimited" {
        ConfigFault::new("`unlimited` cannot be a band").help("write `rate: unlimited` alone")
    } else if let Some(name) = text.strip_prefix("plan:") {
        plan_is_a_map(name)
    } else if duration::number(text).is_some() {
        ConfigFault::new(format!("{quoted} has no period"))
            .help(format!("write {text}/s, {text}/min or {text}/h"))
    } else {
        let is_near = closest(text, ["unlimited"]).is_some();
        let help = if is_near {
            "did you mean `unlimited`?"
        } else {
            EXAMPLE
        };
        ConfigFault::new(format!("{quoted} is not a rate")).help(help)
    })
}

/// Returns the error for a plan that is not written as a map.
fn plan_is_a_map(name: &str) -> ConfigFault {
    let name = Some(name.trim()).filter(|name| !name.is_empty());
    let example = format!(
        "`{{ plan: {}, subject: attr:project, default: unlimited }}`",
        name.unwrap_or("NAME")
    );
    ConfigFault::new("a rate from a plan is a map").help(format!("write {example}"))
}

/// Reads a single rate. Returns the amount, the period in microseconds, and the burst.
pub fn numbers(text: &str) -> Result<(u64, u64, Option<u64>), ConfigFault> {
    let rate = parse(text)?;
    Ok((rate.amount, rate.period_us, rate.burst))
}

/// Reads a single amount.
pub fn amount(text: &str) -> Result<u64, ConfigFault> {
    read_amount(text, "s")
}

/// Reads an amount: `100`, `1_000`, `10k`, `2M`.
pub fn read_amount(text: &str, per: &str) -> Result<u64, ConfigFault> {
    let (digits, suffix) = duration::split(text, |c| c.is_ascii_digit() || c == '_');
    let scale = match suffix {
        "" => Some(1),
        "k" | "K" => Some(1_000),
        "M" => Some(1_000_000),
        _ => None,
    };
    let amount = duration::number(digits)
        .zip(scale)
        .and_then(|(number, scale)| number.checked_mul(scale));
    amount.ok_or_else(|| refuse_amount(text, digits, suffix.trim(), per))
}

fn refuse_amount(text: &str, digits: &str, suffix: &str, per: &str) -> ConfigFault {
    let quoted = ConfigFault::quote(text);
    let fault = ConfigFault::new(format!("{quoted} is not a whole number"));
    match suffix {
        "m" => fault.help(format!("write {digits}M if you mean millions")),
        "r" | "req" | "reqs" | "request" | "requests" => {
            fault.help(format!("write {digits}/{}", per.trim()))
        }
        _ if suffix.starts_with(',') => {
            let without = text.replace(',', "_");
            fault.help(format!("write {without}/{}", per.trim()))
        }
        _ if suffix.starts_with('.') => {
            fault.help("use a longer period; for example, `0.5/s` is `1/2s`")
        }
        "" if duration::number(digits).is_none() && !digits.is_empty() => {
            ConfigFault::new(format!("{quoted} is too large"))
        }
        _ => fault.help(EXAMPLE),
    }
}

/// Reads a period: a unit alone, a period of the calendar, or a duration.
fn read_period(text: &str, rate: &str) -> Result<(u64, Option<CalendarPeriod>), ConfigFault> {
    if let Some(unit_us) = duration::unit_us(text) {
        let mut periods = CalendarPeriod::ALL.into_iter();
        return Ok((unit_us, periods.find(|it| it.longest_us() == unit_us)));
    }
    if let Some(period) = CalendarPeriod::parse(text) {
        return Ok((period.longest_us(), Some(period)));
    }
    let (count, word) = duration::split(text, |c| c.is_ascii_digit() || c == '_');
    if let (Some(count), Some(period)) =
        (duration::number(count), CalendarPeriod::parse(word.trim()))
        && period.has_months()
    {
        return several(text, rate, (count, period));
    }
    if text.is_empty() {
        return Err(
            ConfigFault::new(format!("{} has no period", ConfigFault::quote(rate))).help(EXAMPLE),
        );
    }
    let numbered = if text.starts_with(|first: char| first.is_ascii_digit()) {
        text.to_owned()
    } else {
        // Add a number so that `10/month` and `10/fortnight` get the same errors as durations.
        format!("1 {text}")
    };
    let period_us = duration::parse(&numbered).map_err(|fault| match duration::number(text) {
        Some(_) => ConfigFault::new(format!(
            "the period {} has no unit",
            ConfigFault::quote(text)
        ))
        .help(format!("write {text}s, {text}min or {text}h")),
        None => fault,
    })?;
    Ok((period_us, None))
}

/// Reads several months. One is a window of the calendar, and more are not.
fn several(
    text: &str,
    rate: &str,
    (count, period): (u64, CalendarPeriod),
) -> Result<(u64, Option<CalendarPeriod>), ConfigFault> {
    if count == 1 {
        return Ok((period.longest_us(), Some(period)));
    }
    let same = match (period, count) {
        (CalendarPeriod::Month, 3) => Some("quarter"),
        (CalendarPeriod::Month, 12) | (CalendarPeriod::Quarter, 4) => Some("year"),
        _ => None,
    };
    let message = format!(
        "{} is not a window of the calendar: it has one month, quarter or year",
        ConfigFault::quote(text)
    );
    let amount = rate.split(['/', ' ']).next().unwrap_or("100");
    Err(ConfigFault::new(message).help(match same {
        Some(same) => format!("write `{amount}/{same}`"),
        None => format!(
            "write `{amount}/month`, `{amount}/quarter` or `{amount}/year`, or a length in days"
        ),
    }))
}

fn read_burst(text: &str) -> Result<u64, ConfigFault> {
    if text.is_empty() {
        return Err(ConfigFault::new("`burst` has no number").help("for example `10/s burst 50`"));
    }
    read_amount(text, "s").map_err(|_| {
        ConfigFault::new(format!(
            "the burst {} is not a whole number",
            ConfigFault::quote(text)
        ))
        .help("for example `10/s burst 50`")
    })
}

#[cfg(test)]
mod tests {
    use super::{CalendarPeriod, parse, parse_calendar};

    const SECOND: u64 = 1_000_000;

    #[test]
    fn rates_are_parsed_in_common_notation() {
        for (text, amount, period_us, burst) in [
            ("100/min", 100, 60 * SECOND, None),
            ("10/s burst 50", 10, SECOND, Some(50)),
            ("10 / s  burst  50", 10, SECOND, Some(50)),
            ("1000/h", 1_000, 3_600 * SECOND, None),
            ("40/10s", 40, 10 * SECOND, None),
            ("3/h burst 5", 3, 3_600 * SECOND, Some(5)),
            ("100 per minute", 100, 60 * SECOND, None),
            ("100 per 10 minutes", 100, 600 * SECOND, None),
            ("1_000/day", 1_000, 86_400 * SECOND, None),
            ("5/500ms", 5, SECOND / 2, None),
            ("2/1h30m", 2, 5_400 * SECOND, None),
            ("10k/min", 10_000, 60 * SECOND, None),
            ("2M/d burst 10k", 2_000_000, 86_400 * SECOND, Some(10_000)),
            ("1/week", 1, 604_800 * SECOND, None),
            ("0/s", 0, SECOND, None),
        ] {
            let rate = parse(text).expect(text);
            let numbers = (rate.amount, rate.period_us, rate.burst);
            assert_eq!(numbers, (amount, period_us, burst), "{text}");
        }
    }

    #[test]
    fn periods_of_the_calendar_are_recognized() {
        for (text, calendar) in [
            ("5/month", Some(CalendarPeriod::Month)),
            ("5 per quarter", Some(CalendarPeriod::Quarter)),
            ("5/ year", Some(CalendarPeriod::Year)),
            ("5/1 month", Some(CalendarPeriod::Month)),
            ("5/day", Some(CalendarPeriod::Day)),
            ("5/d", Some(CalendarPeriod::Day)),
            ("5/h", Some(CalendarPeriod::Hour)),
            ("5/week", Some(CalendarPeriod::Week)),
            ("5/24h", None),
            ("5/7d", None),
            ("5/min", None),
            ("5/30d", None),
        ] {
            let rate = parse_calendar(text).expect(text);
            assert_eq!(rate.calendar, calendar, "{text}");
        }
        let burst = parse_calendar("5/month burst 9").map(|rate| rate.burst);
        assert_eq!(burst, Ok(Some(9)));
    }

    #[test]
    fn several_months_are_refused() {
        for (text, words) in [
            ("5/2month", "`5/month`, `5/quarter` or `5/year`"),
            ("5/3 months", "write `5/quarter`"),
            ("5 per 12 months", "write `5/year`"),
            ("5/0year", "or a length in days"),
        ] {
            let fault = parse_calendar(text).expect_err(text);
            let message = format!("{} {}", fault.message, fault.help.unwrap_or_default());
            assert!(message.contains(words), "{text}: {message}");
        }
    }

    #[test]
    fn an_invalid_rate_reports_the_reason() {
        for (text, words) in [
            ("100", "write 100/s, 100/min or 100/h"),
            ("fast", "for example `100/min`"),
            ("", "for example `100/min`"),
            ("/s", "for example `100/min`"),
            ("10/", "has no period"),
            ("10/60", "write 60s, 60min or 60h"),
            ("10/month", "30d"),
            ("10/fortnight", "not a unit"),
            ("10r/s", "write 10/s"),
            ("10 requests per second", "write 10/second"),
            ("1,000/h", "write 1_000"),
            ("0.5/s", "longer period"),
            ("5m/s", "5M"),
            ("-5/s", "not a whole number"),
            ("10/s burst", "no number"),
            ("10/s burst lots", "not a whole number"),
            ("10/s bursty 5", "not a whole number"),
            ("10/s 50", "not a duration"),
            ("99999999999999999999/s", "too large"),
            ("unlimited", "`rate: unlimited` alone"),
            ("plan:gold", "{ plan: gold, subject: attr:project"),
        ] {
            let fault = parse(text).unwrap_err();
            let message = format!("{} {}", fault.message, fault.help.unwrap_or_default());
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
