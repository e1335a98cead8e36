//! The syntax of values in envoyproxy/ratelimit's environment.

use tidegate_config::Environment;

/// The environment, and all its errors.
pub(super) struct Variables<'a> {
    environment: &'a dyn Environment,
    pub(super) errors: Vec<String>,
}

impl<'a> Variables<'a> {
    pub(super) fn new(environment: &'a dyn Environment) -> Self {
        Self {
            environment,
            errors: Vec::new(),
        }
    }

    /// Returns the value of a variable; `None` if it is not set or empty.
    pub(super) fn get(&self, name: &str) -> Option<String> {
        let value = self.environment.variable(name)?;
        let value = value.trim();
        (!value.is_empty()).then(|| value.to_owned())
    }

    /// Records that a variable has an invalid value. The value itself may be a secret.
    pub(super) fn refuse(&mut self, name: &str, why: &str, help: &str) {
        let error = format!("environment variable {name}: {why}\n   help: {help}");
        self.errors.push(error);
    }

    /// Returns true if a variable is true; false if it is not set.
    pub(super) fn is_true(&mut self, name: &str) -> bool {
        let Some(value) = self.get(name) else {
            return false;
        };
        // The words of Go's `strconv.ParseBool`.
        match value.as_str() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => true,
            "0" | "f" | "F" | "false" | "FALSE" | "False" => false,
            _ => {
                self.refuse(name, "is neither true nor false", "write true or false");
                false
            }
        }
    }

    /// Returns a duration in microseconds.
    pub(super) fn micros(&mut self, name: &str) -> Option<u64> {
        let micros = micros(&self.get(name)?);
        if micros.is_none() {
            let why = "is not a length of time";
            self.refuse(name, why, "write for example 10ms, 30s or 1h30m");
        }
        micros
    }

    /// Returns the pairs of a list such as `name:value,name:value`.
    pub(super) fn pairs(&mut self, name: &str, between: char) -> Vec<(String, String)> {
        let list = self.get(name).unwrap_or_default();
        let items = list.split(',').map(str::trim).filter(|it| !it.is_empty());
        let pairs: Option<Vec<_>> = items
            .map(|item| {
                let (key, value) = item.split_once(between)?;
                Some((key.trim().to_owned(), value.trim().to_owned()))
            })
            .collect();
        pairs.unwrap_or_else(|| {
            let help = format!("write NAME{between}VALUE,NAME{between}VALUE");
            self.refuse(name, "is not a list of pairs", &help);
            Vec::new()
        })
    }

    /// Returns a share from 0 to 1 as a percentage.
    pub(super) fn percentage(&mut self, name: &str) -> Option<String> {
        let percentage = percentage(&self.get(name)?);
        if percentage.is_none() {
            let help = "write a number from 0 to 1 with up to six decimals, for example 0.01";
            self.refuse(name, "is not a share", help);
        }
        percentage
    }
}

/// Parses a duration in Go's syntax, `1h30m` or `1.5h`, into whole microseconds.
fn micros(text: &str) -> Option<u64> {
    if text == "0" {
        return Some(0);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.');
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let unit: u128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        nanos = nanos.checked_add(billionths(number)?.checked_mul(unit)?)?;
        rest = after;
    }
    u64::try_from(nanos / 1_000_000_000 / 1_000).ok()
}

/// Parses a number that may have decimals, in billionths.
fn billionths(text: &str) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if whole.len() + fraction.len() == 0 || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction: String = fraction.chars().take(9).collect();
    let digits = format!("{whole}{fraction:0<9}");
    // No representable duration needs more.
    (digits.len() <= 30).then(|| digits.parse().ok()).flatten()
}

/// Decodes percent-encoding, as OpenTelemetry does for the values of headers; `+` stays.
pub(super) fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push(match byte {
            b'%' => u8::try_from(digit()? * 16 + digit()?).ok()?,
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

/// Writes a share from 0 to 1 as a percentage.
fn percentage(text: &str) -> Option<String> {
    let billionths = billionths(text).filter(|it| *it <= 1_000_000_000 && it % 1_000 == 0)?;
    let millionths = billionths / 1_000;
    Some(format!(
        "{}.{:04}%",
        millionths / 10_000,
        millionths % 10_000
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_in_go_notation_are_parsed() {
        for (text, read) in [
            ("0", Some(0)),
            ("24h", Some(86_400_000_000)),
            ("1h0m0s", Some(3_600_000_000)),
            ("1.5s", Some(1_500_000)),
            ("150us", Some(150)),
            ("150µs", Some(150)),
            ("+2ms", Some(2_000)),
            ("1500ns", Some(1)),
            (".5s", Some(500_000)),
            ("", Some(0)),
            ("1", None),
            ("1d", None),
            ("-1s", None),
            ("1h30", None),
            ("1..5s", None),
            ("s", None),
            (".s", None),
            ("99999999999999999999999999999999h", None),
        ] {
            assert_eq!(micros(text), read, "{text}");
        }
    }

    #[test]
    fn escapes_in_headers_were_sent_as_they_are() {
        for (text, read) in [
            ("Basic%20YTpi%3D", Some("Basic YTpi=")),
            ("a+b", Some("a+b")),
            ("%c3%A9", Some("é")),
            ("%", None),
            ("%2", None),
            ("%+1", None),
            ("%ff", None),
        ] {
            assert_eq!(unescaped(text).as_deref(), read, "{text}");
        }
    }

    #[test]
    fn shares_are_percentages() {
        for (text, read) in [
            ("1", Some("100.0000%")),
            ("0", Some("0.0000%")),
            ("0.25", Some("25.0000%")),
            ("0.000001", Some("0.0001%")),
            ("1.1", None),
            ("0.0000001", None),
            ("-1", None),
            ("1e-3", None),
        ] {
            assert_eq!(percentage(text).as_deref(), read, "{text}");
        }
    }
}
