//! Rates in readable form: `100/min`, `10/s burst 50`, `100 per minute`.

use super::duration;
use super::fault::ConfigFault;
use super::size;
use super::suggest::closest;

/// An amount per period, and the burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RateText {
    pub(super) amount: u64,
    pub(super) period_us: u64,
    pub(super) burst: Option<u64>,
}

const EXAMPLE: &str = "expected an amount per period, for example `100/min` or `10/s burst 50`";

/// Reads a rate.
pub(super) fn parse(text: &str) -> Result<RateText, ConfigFault> {
    let trimmed = text.trim();
    let (amount, rest) = split_amount(trimmed)?;
    let (period, burst) = match rest.split_once("burst") {
        Some((period, burst)) => (period.trim(), Some(burst.trim())),
        None => (rest.trim(), None),
    };
    Ok(RateText {
        amount: read_amount(amount.trim(), rest)?,
        period_us: read_period(period, trimmed)?,
        burst: burst.map(read_burst).transpose()?,
    })
}

/// Reads a rate of bytes: `10MiB/s`, `10MiB/s burst 100MiB`.
pub(super) fn parse_bytes(text: &str) -> Result<RateText, ConfigFault> {
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
    Ok(RateText {
        amount: size::parse(amount.trim())?,
        period_us: read_period(period, trimmed)?,
        burst: burst.map(size::parse).transpose()?,
    })
}

/// Splits `100/min` or `100 per minute` after the amount.
fn split_amount(text: &str) -> Result<(&str, &str), ConfigFault> {
    if let Some(split) = text.split_once('/').or_else(|| text.split_once(" per ")) {
        return Ok(split);
    }
    let quoted = ConfigFault::quote(text);
    Err(if text == "unlimited" {
        ConfigFault::new("`unlimited` is not a band, but a limit without any")
            .help("write `rate: unlimited` alone")
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
    ConfigFault::new("a rate that comes from a plan is a map").help(format!("write {example}"))
}

/// Reads a single rate. Returns the amount, the period in microseconds, and the burst.
pub(crate) fn numbers(text: &str) -> Result<(u64, u64, Option<u64>), ConfigFault> {
    let rate = parse(text)?;
    Ok((rate.amount, rate.period_us, rate.burst))
}

/// Reads a single amount.
pub(crate) fn amount(text: &str) -> Result<u64, ConfigFault> {
    read_amount(text, "s")
}

/// Reads an amount: `100`, `1_000`, `10k`, `2M`.
pub(super) fn read_amount(text: &str, per: &str) -> Result<u64, ConfigFault> {
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

/// Reads a period: a unit alone, or a duration.
fn read_period(text: &str, rate: &str) -> Result<u64, ConfigFault> {
    if let Some(unit_us) = duration::unit_us(text) {
        return Ok(unit_us);
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
    duration::parse(&numbered).map_err(|fault| match duration::number(text) {
        Some(_) => ConfigFault::new(format!(
            "the period {} has no unit",
            ConfigFault::quote(text)
        ))
        .help(format!("write {text}s, {text}min or {text}h")),
        None => fault,
    })
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
    use super::{RateText, parse};

    const SECOND: u64 = 1_000_000;

    #[test]
    fn rates_read_as_people_write_them() {
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
            let expected = RateText {
                amount,
                period_us,
                burst,
            };
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_rate_says_why() {
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
            ("10/s 50", "not a length of time"),
            ("99999999999999999999/s", "too large"),
            ("unlimited", "`rate: unlimited` alone"),
            ("plan:gold", "{ plan: gold, subject: attr:project"),
        ] {
            let fault = parse(text).unwrap_err();
            let said = format!("{} {}", fault.message, fault.help.unwrap_or_default());
            assert!(said.contains(words), "{text}: {said}");
        }
    }
}
