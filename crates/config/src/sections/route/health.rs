//! `health`, `eject`, `timeouts` and `connections`: health checks, ejection, timeouts and connection
//! limits of upstreams.

use super::number;
use crate::language::reader::ConfigReader;
use crate::language::table::FieldReader;
use crate::language::words::EJECT;
use crate::syntax::NodeKind;
use crate::tables::route::{
    ANSWERS_MAX, CONNECTIONS, CONNECTIONS_MAX, EJECTION, FAILURES_MAX, HEALTH, TIMEOUTS,
};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_policy::route::{Connections, EjectionRules, HealthCheck, Timeouts};
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// A range of durations, in microseconds and in words.
struct DurationRange {
    micros: RangeInclusive<u64>,
    words: &'static str,
}

const MINUTE: u64 = 60_000_000;

const CONNECT: DurationRange = within(1_000, MINUTE, "from 1ms to 1min");
const HOUR: DurationRange = within(1_000, 60 * MINUTE, "from 1ms to 1h");
const DAY: DurationRange = within(1_000, 24 * 60 * MINUTE, "from 1ms to 1d");
const INTERVAL: DurationRange = within(100_000, 60 * MINUTE, "from 100ms to 1h");

const fn within(from: u64, to: u64, words: &'static str) -> DurationRange {
    DurationRange {
        micros: from..=to,
        words,
    }
}

impl DurationRange {
    fn read(
        &self,
        reader: &mut ConfigReader<'_>,
        fields: &FieldReader<'_>,
        name: &str,
    ) -> Option<Duration> {
        reader.setting(fields, name, |text| {
            let micros = duration::parse(text)?;
            if self.micros.contains(&micros) {
                return Ok(Duration::from_micros(micros));
            }
            Err(ConfigFault::new(format!(
                "{} is not {}",
                ConfigFault::quote(text),
                self.words
            )))
        })
    }
}

/// Reads `timeouts`.
pub(super) fn timeouts(reader: &mut ConfigReader<'_>, route: &FieldReader<'_>) -> Timeouts {
    let default = Timeouts::default();
    let value = route.get("timeouts");
    let Some(fields) = value.and_then(|value| reader.fields(&value, &TIMEOUTS)) else {
        return default;
    };
    let connect = CONNECT.read(reader, &fields, "connect");
    let response = DAY.read(reader, &fields, "response");
    let idle = DAY.read(reader, &fields, "idle");
    let upload_grace = HOUR.read(reader, &fields, "upload_grace");
    Timeouts {
        connect: connect.unwrap_or(default.connect),
        response: response.unwrap_or(default.response),
        idle: idle.unwrap_or(default.idle),
        upload_grace: upload_grace.unwrap_or(default.upload_grace),
    }
}

/// Reads `connections`.
pub(super) fn connections(reader: &mut ConfigReader<'_>, route: &FieldReader<'_>) -> Connections {
    let default = Connections::default();
    let value = route.get("connections");
    let Some(fields) = value.and_then(|value| reader.fields(&value, &CONNECTIONS)) else {
        return default;
    };
    let max = number(reader, &fields, "max", 1..=CONNECTIONS_MAX);
    let max_waiting = number(reader, &fields, "max_waiting", 0..=CONNECTIONS_MAX);
    Connections {
        max: max.unwrap_or(default.max),
        max_waiting: max_waiting.unwrap_or(default.max_waiting),
    }
}

/// Reads `health`.
pub(super) fn health(
    reader: &mut ConfigReader<'_>,
    route: &FieldReader<'_>,
) -> Option<HealthCheck> {
    let fields = reader.fields(&route.get("health")?, &HEALTH)?;
    let path = reader.setting(&fields, "path", path);
    let interval = INTERVAL.read(reader, &fields, "interval");
    let timeout = HOUR.read(reader, &fields, "timeout");
    let healthy = number(reader, &fields, "healthy", 1..=ANSWERS_MAX);
    let unhealthy = number(reader, &fields, "unhealthy", 1..=ANSWERS_MAX);
    let default = HealthCheck::new(path?);
    let interval = interval.unwrap_or(default.interval);
    // An interval shorter than the default timeout shortens the timeout too.
    let timeout = timeout.unwrap_or(default.timeout.min(interval));
    if let (Some(value), true) = (fields.get("timeout"), timeout > interval) {
        let fault = ConfigFault::new("`timeout` is longer than `interval`");
        let help = "lower `timeout`, or raise `interval`";
        reader.error(value.spot(), fault.help(help));
    }
    Some(HealthCheck {
        interval,
        timeout,
        healthy: healthy.unwrap_or(default.healthy),
        unhealthy: unhealthy.unwrap_or(default.unhealthy),
        ..default
    })
}

fn path(text: &str) -> Result<String, ConfigFault> {
    let belongs = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    if text.starts_with('/') && text.bytes().all(belongs) && text.len() <= 1_024 {
        return Ok(text.to_owned());
    }
    let message = format!("{} is not a path", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `/healthz`, with an optional query"))
}

/// Reads `eject`.
pub(super) fn eject(
    reader: &mut ConfigReader<'_>,
    route: &FieldReader<'_>,
) -> Option<EjectionRules> {
    let default = EjectionRules::default();
    let Some(value) = route.get("eject") else {
        return Some(default);
    };
    if let NodeKind::Text(_) = value.node.kind {
        reader.parse(&value, |word| EJECT.parse(word));
        return None;
    }
    let fields = reader.fields(&value, &EJECTION)?;
    let failures = number(reader, &fields, "failures", 1..=FAILURES_MAX);
    let lasts = HOUR.read(reader, &fields, "for");
    Some(EjectionRules {
        failures: failures.unwrap_or(default.failures),
        lasts: lasts.unwrap_or(default.lasts),
    })
}
