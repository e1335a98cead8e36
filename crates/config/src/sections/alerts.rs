//! `alerts`: the webhook that receives alerts, and the events that raise one.

use crate::alerts::{AlertKind, Alerts};
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::secret_setting::secret;
use crate::language::table::FieldTable;
use crate::language::table::Shape::{Text, Word};
use crate::language::table::{TEXTS, optional};
use crate::language::words::{ALERT, ALERT_FORMAT};
use std::time::Duration;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;

/// The fields of `alerts`.
pub(crate) static ALERTS: FieldTable = FieldTable {
    what: "`alerts`",
    fields: &[
        optional(
            "webhook",
            Text("https://example.com/hooks/1"),
            "URL for alerts, `http://` or `https://`; a secret. Prefer `webhook_file` or a variable.",
        ),
        optional(
            "webhook_file",
            Text("/run/secrets/webhook"),
            "File that holds the webhook URL.",
        ),
        optional(
            "format",
            Word(&ALERT_FORMAT),
            "`json`: an object with `kind`, `subject`, `message` and `at_ms`. `form`: `message` and \
             `parse_mode=Markdown`, for chat bots. Default: `json`.",
        ),
        optional(
            "on",
            TEXTS,
            "Kinds of alerts: `ban`, `threshold`, `store`, `stale`, `config`. Default: all.",
        ),
        optional(
            "timeout",
            Text("5s"),
            "Timeout of one delivery, 100ms to 1min. Default: 5s.",
        ),
        optional(
            "repeat",
            Text("10min"),
            "Time for which the same alert is not sent again; at most until the window of its limit ends. \
             Default: 10min.",
        ),
    ],
    exactly_one: &["webhook", "webhook_file"],
};

/// Reads `alerts`.
pub(crate) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Alerts> {
    let fields = reader.fields(value, &ALERTS)?;
    // If both are set, the error is already reported.
    let is_twice = fields.get("webhook").is_some() && fields.get("webhook_file").is_some();
    let webhook = if is_twice {
        None
    } else {
        secret(reader, &fields, "webhook", "webhook_file")
    };
    let format = reader.setting(&fields, "format", |word| ALERT_FORMAT.parse(word));
    let on = fields.get("on").map(|value| {
        let items = reader.one_or_many(&value);
        let kinds = items
            .iter()
            .filter_map(|item| reader.parse(item, |word| ALERT.parse(word)));
        kinds.collect::<Vec<_>>()
    });
    let timeout = reader.setting(&fields, "timeout", timeout);
    let repeat = reader.setting(&fields, "repeat", |text| {
        duration::parse(text).map(Duration::from_micros)
    });
    let webhook = webhook?;
    if !is_url(webhook.expose()) {
        // The message does not quote the value: it may carry a token.
        let fault = ConfigFault::new("`webhook` is not a URL");
        let named = fields.get("webhook").or_else(|| fields.get("webhook_file"));
        let spot = named.map_or_else(|| value.key_spot(), |value| value.spot());
        reader.error(spot, fault.help("expected `http://…` or `https://…`"));
    }
    Some(Alerts {
        webhook,
        format: format.unwrap_or_default(),
        on: on.unwrap_or_else(|| AlertKind::ALL.map(|(_, kind)| kind).to_vec()),
        timeout: timeout.unwrap_or(Alerts::TIMEOUT),
        repeat: repeat.unwrap_or(Alerts::REPEAT),
    })
}

fn is_url(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    rest.is_some_and(|rest| !rest.is_empty() && text.chars().all(|c| c.is_ascii_graphic()))
}

fn timeout(text: &str) -> Result<Duration, ConfigFault> {
    let length = Duration::from_micros(duration::parse(text)?);
    if (Duration::from_millis(100)..=Duration::from_secs(60)).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 100ms to 1min", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `5s`"))
}
