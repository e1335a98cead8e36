//! `traces` and `logs`: spans and log lines of single requests.

use super::condition::pairs;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar;
use crate::language::table::FieldTable;
use crate::language::table::Shape::{Pairs, Text};
use crate::language::table::{optional, required};
use crate::traces::{Logs, Sample, Traces};
use std::time::Duration;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;
use tidegate_policy::text::duration;

/// The maximum number of headers of an export request, and the longest value of one in bytes.
const HEADERS_MAX: usize = 16;
const VALUE_MAX: usize = 8 << 10;

/// The longest name of a service, in bytes.
const SERVICE_MAX: usize = 128;

/// The fields of `traces`.
pub(crate) static TRACES: FieldTable = FieldTable {
    what: "`traces`",
    fields: &[
        required(
            "url",
            Text("http://127.0.0.1:4318"),
            "URL of an OpenTelemetry collector that accepts OTLP over HTTP, `http://` or `https://`; \
             `/v1/traces` is appended if missing.",
        ),
        optional(
            "sample",
            Text("1%"),
            "Share of requests with spans, if no trusted caller has decided by `traceparent`: 0% to \
             100%, up to four decimals. Default: 1%.",
        ),
        optional(
            "headers",
            Pairs,
            "Headers of every export, up to 16; the values are secrets. Default: none.",
        ),
        optional(
            "service",
            Text("tidegate"),
            "Service name. Default: `tidegate`.",
        ),
        optional(
            "timeout",
            Text("10s"),
            "Timeout of one export, 100ms to 1min. Default: 10s.",
        ),
    ],
    exactly_one: &[],
};

/// The fields of `logs`.
pub(crate) static LOGS: FieldTable = FieldTable {
    what: "`logs`",
    fields: &[optional(
        "refusals",
        Text("10%"),
        "Share of refusals that are logged, in every API, with the correlation id if the client \
             got one: 0% to 100%. Default: 0%.",
    )],
    exactly_one: &[],
};

/// Reads `traces`.
pub(crate) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Traces> {
    let fields = reader.fields(value, &TRACES)?;
    let url = reader.setting(&fields, "url", url);
    let sample = reader.setting(&fields, "sample", sample);
    let service = reader.setting(&fields, "service", service);
    let timeout = reader.setting(&fields, "timeout", timeout);
    let headers = pairs(reader, &fields, "headers", scalar::header_name, header);
    if let (true, Some(value)) = (headers.len() > HEADERS_MAX, fields.get("headers")) {
        let fault = ConfigFault::new(format!("there are at most {HEADERS_MAX} headers"));
        reader.error(value.key_spot(), fault);
    }
    let headers = headers.into_iter();
    Some(Traces {
        url: url?,
        headers: headers
            .map(|(name, text)| (name, Secret::new(text)))
            .collect(),
        sample: sample.unwrap_or(Traces::SAMPLE),
        service: service.unwrap_or_else(|| Traces::SERVICE.to_owned()),
        timeout: timeout.unwrap_or(Traces::TIMEOUT),
    })
}

/// Reads `logs`.
pub(crate) fn read_logs(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Logs> {
    let fields = reader.fields(value, &LOGS)?;
    let refusals = reader.setting(&fields, "refusals", sample);
    Some(Logs {
        refusals: refusals.unwrap_or_default(),
    })
}

/// Reads the address of a collector. Messages do not show parts that may be secret.
fn url(text: &str) -> Result<String, ConfigFault> {
    let wrong = |why: &str, help: &str| Err(ConfigFault::new(format!("`url` {why}")).help(help));
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let Some(rest) = rest.filter(|it| !it.is_empty() && it.bytes().all(|c| c.is_ascii_graphic()))
    else {
        return wrong(
            "is not a URL",
            "expected `http://…` or `https://…`, for example `http://127.0.0.1:4318`; gRPC (port \
             4317) is not supported",
        );
    };
    if rest.contains('@') {
        return wrong(
            "contains a user or password",
            "use `headers` for credentials",
        );
    }
    if rest.contains(['?', '#']) {
        return wrong("has a `?` or `#`", "remove it");
    }
    let base = text.trim_end_matches('/');
    Ok(if base.ends_with(Traces::PATH) {
        base.to_owned()
    } else {
        format!("{base}{}", Traces::PATH)
    })
}

/// Reads a share in percent.
fn sample(text: &str) -> Result<Sample, ConfigFault> {
    let refused = || {
        ConfigFault::new(format!(
            "{} is not a share of all requests",
            ConfigFault::quote(text)
        ))
        .help("expected a percentage from 0% to 100% with up to four decimals, for example `1%`")
    };
    let number = text.strip_suffix('%').ok_or_else(refused)?.trim_end();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_number = digits(whole) && digits(fraction) && !whole.is_empty();
    if !is_number || whole.len() > 3 || fraction.len() > 4 {
        return Err(refused());
    }
    let millionths: u32 = format!("{whole}{fraction:0<4}")
        .parse()
        .map_err(|_| refused())?;
    match millionths {
        0..=1_000_000 => Ok(Sample::millionths(millionths)),
        _ => Err(refused()),
    }
}

fn service(text: &str) -> Result<String, ConfigFault> {
    let is_plain = |c: char| !c.is_control();
    if (1..=SERVICE_MAX).contains(&text.len()) && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err(ConfigFault::new("this is not a valid service name")
        .help("use up to 128 characters, for example `tidegate-eu`"))
}

fn timeout(text: &str) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 100ms to 1min", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `10s`"))
}

/// Reads the value of a header. It may be a secret, so no message shows it.
fn header(name: &str, text: &str) -> Result<String, ConfigFault> {
    let belongs = |byte: u8| byte == b' ' || byte.is_ascii_graphic();
    if text.len() <= VALUE_MAX && text.bytes().all(belongs) && text.trim() == text {
        return Ok(text.to_owned());
    }
    let message = format!("the value of `{name}` is not a valid header value");
    Err(ConfigFault::new(message).help("use up to 8 KiB of visible ASCII characters"))
}

#[cfg(test)]
mod tests {
    use super::{sample, url};
    use crate::traces::Sample;

    #[test]
    fn samples_are_percentages() {
        for (text, millionths) in [
            ("0%", 0),
            ("1%", 10_000),
            ("0.0001%", 1),
            ("12.5 %", 125_000),
            ("100%", 1_000_000),
        ] {
            assert_eq!(sample(text), Ok(Sample::millionths(millionths)), "{text}");
        }
        for text in [
            "", "%", "1", "0.01", "101%", "-1%", ".5%", "1e1%", "0.00001%", "all",
        ] {
            assert!(sample(text).is_err(), "{text}");
        }
    }

    #[test]
    fn samples_are_shown_as_they_are_written() {
        for text in ["0%", "1%", "0.0001%", "12.5%", "100%"] {
            assert_eq!(sample(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_endpoint_is_completed() {
        let whole = "https://otel.example:4318/v1/traces";
        for text in [
            whole,
            "https://otel.example:4318",
            "https://otel.example:4318/",
            "https://otel.example:4318/v1/traces/",
        ] {
            assert_eq!(url(text).as_deref(), Ok(whole), "{text}");
        }
        assert_eq!(
            url("http://a/otlp").as_deref(),
            Ok("http://a/otlp/v1/traces")
        );
        for text in [
            "otel:4318",
            "grpc://a:4317",
            "http://",
            "http://u:p@a",
            "http://a?b",
        ] {
            assert!(url(text).is_err(), "{text}");
        }
    }
}
