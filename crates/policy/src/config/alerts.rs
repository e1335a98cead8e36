//! `alerts`: the webhook that receives alerts, and the events that raise one.

use super::duration;
use super::fault::ConfigFault;
use super::fields::{TEXTS, optional};
use super::reader::{ConfigReader, ConfigValue};
use super::secret_setting::secret;
use super::table::FieldTable;
use super::table::Shape::{Text, Word};
use super::words::{ALERT, ALERT_FORMAT};
use crate::alerts::{AlertKind, Alerts};
use std::time::Duration;

/// The fields of `alerts`.
pub(super) static ALERTS: FieldTable = FieldTable {
    what: "`alerts`",
    fields: &[
        optional(
            "webhook",
            Text("https://example.com/hooks/1"),
            "Where alerts are posted; better kept in `webhook_file` or a variable if it carries a token.",
        ),
        optional(
            "webhook_file",
            Text("/run/secrets/webhook"),
            "The file that holds the address.",
        ),
        optional(
            "format",
            Word(&ALERT_FORMAT),
            "`json`, or `form` for bots of chats; `json` unless told.",
        ),
        optional(
            "on",
            TEXTS,
            "Events to tell of: ban, threshold, store, stale, config. Default: all.",
        ),
        optional(
            "timeout",
            Text("5s"),
            "How long one delivery may take, 100ms to 1min; 5s unless told.",
        ),
        optional(
            "repeat",
            Text("10min"),
            "For how long the same is not told again; 10min unless told.",
        ),
    ],
    exactly_one: &["webhook", "webhook_file"],
};

/// Reads `alerts`.
pub(super) fn read(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<Alerts> {
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
        let fault = ConfigFault::new("`webhook` is not an address");
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
    if (Duration::from_millis(100)..=Duration::from_mins(1)).contains(&length) {
        return Ok(length);
    }
    let message = format!("{} is not from 100ms to 1min", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help("for example `5s`"))
}
