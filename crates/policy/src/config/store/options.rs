//! The settings next to the URL of Redis.

use super::duration_within;
use super::table::{CONNECTIONS_MAX, DENY_CACHE_MAX, RETRIES_MAX, STORE_TLS};
use super::target::{LayoutWord, RedisIdentity, RedisTls};
use super::url::is_master;
use crate::config::fault::ConfigFault;
use crate::config::reader::{ConfigReader, ConfigValue};
use crate::config::scalar::whole;
use crate::config::secret::Secret;
use crate::config::secret_setting::{secret, secret_file};
use crate::config::table::FieldReader;
use crate::config::template;
use crate::config::words::{FLAG, LAYOUT, STORE_MODE, TAG};
use crate::group::SlotTag;
use crate::template::Template;
use std::time::Duration;

/// The values of `store.mode`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::config) enum ModeWord {
    /// Chosen from the form of the URL.
    #[default]
    Auto,
    Standalone,
    Sentinel,
    Cluster,
}

/// Fields that have no effect if the store is in memory.
const ONLY_REDIS: [&str; 19] = [
    "mode",
    "master",
    "user",
    "password",
    "password_file",
    "sentinel_user",
    "sentinel_password",
    "sentinel_password_file",
    "tls",
    "connections",
    "connect_timeout",
    "retries",
    "required_at_start",
    "prefix",
    "tag",
    "layout",
    "template",
    "deny_cache",
    "urls",
];

/// The longest prefix, in bytes.
const PREFIX_MAX: usize = 64;

/// The settings that are set and valid.
#[derive(Debug)]
pub(super) struct StoreOptions {
    pub(super) mode: ModeWord,
    pub(super) master: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) sentinel_user: Option<String>,
    pub(super) sentinel_password: Option<Secret>,
    pub(super) tls: Option<RedisTls>,
    pub(super) connections: u16,
    pub(super) connect_timeout: Duration,
    pub(super) retries: u8,
    pub(super) required_at_start: bool,
    pub(super) prefix: String,
    pub(super) tag: SlotTag,
    pub(super) layout: LayoutWord,
    pub(super) template: Option<Template>,
    pub(super) deny_cache: usize,
}

impl StoreOptions {
    /// Reads all settings, whichever the store: an error is reported in any case.
    pub(super) fn read(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Self {
        let mode = reader.setting(fields, "mode", |word| STORE_MODE.parse(word));
        let master = reader.setting(fields, "master", master);
        let user = reader.setting(fields, "user", |text| not_empty("user", text));
        let sentinel_user = reader.setting(fields, "sentinel_user", |text| {
            not_empty("sentinel_user", text)
        });
        let tls = fields.get("tls").and_then(|value| tls(reader, &value));
        let connections = number(reader, fields, "connections", 1..=CONNECTIONS_MAX);
        let connect_timeout = reader.setting(fields, "connect_timeout", connect_timeout);
        let retries = number(reader, fields, "retries", 0..=RETRIES_MAX);
        let required = reader.setting(fields, "required_at_start", |word| FLAG.parse(word));
        let prefix = reader.setting(fields, "prefix", prefix);
        let tag = reader.setting(fields, "tag", |word| TAG.parse(word));
        let layout = reader.setting(fields, "layout", |word| LAYOUT.parse(word));
        let template = fields.get("template");
        let deny_cache = number(reader, fields, "deny_cache", 0..=DENY_CACHE_MAX);
        Self {
            mode: mode.unwrap_or_default(),
            master,
            user,
            password: secret(reader, fields, "password", "password_file"),
            sentinel_user,
            sentinel_password: secret(
                reader,
                fields,
                "sentinel_password",
                "sentinel_password_file",
            ),
            tls,
            connections: connections.unwrap_or(2),
            connect_timeout: connect_timeout.unwrap_or(Duration::from_secs(1)),
            retries: retries.unwrap_or(1),
            required_at_start: required.unwrap_or(false),
            prefix: prefix.unwrap_or_else(|| "tg:".to_owned()),
            tag: tag.unwrap_or_default(),
            layout: layout.unwrap_or_default(),
            template: template.and_then(|value| template::read(reader, &value)),
            deny_cache: deny_cache.unwrap_or(100_000),
        }
    }
}

/// Warns about settings that have no effect because the store is in memory.
pub(super) fn warn_beside_memory(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) {
    let written = ONLY_REDIS.iter().filter_map(|name| fields.get(name));
    let mut written: Vec<ConfigValue<'_>> = written.collect();
    written.sort_by_key(|value| value.key_spot().0);
    let Some(first) = written.first() else {
        return;
    };
    let names: Vec<String> = written.iter().map(ConfigValue::name).collect();
    let (names, have) = match names.as_slice() {
        [only] => (only.clone(), "has"),
        [before @ .., last] => (format!("{} and {last}", before.join(", ")), "have"),
        [] => return,
    };
    let message = format!("{names} {have} no effect: buckets live in this process");
    let fault =
        ConfigFault::new(message).help("name a server, for example `url: redis://127.0.0.1:6379`");
    reader.warn(first.key_spot(), fault);
}

fn number<T: TryFrom<u64>>(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Option<T> {
    let number = reader.setting(fields, name, |text| whole(text, &range))?;
    T::try_from(number).ok()
}

fn not_empty(name: &str, text: &str) -> Result<String, ConfigFault> {
    match text {
        "" => Err(ConfigFault::new(format!("`{name}` is empty")).help("leave it out")),
        text => Ok(text.to_owned()),
    }
}

fn master(text: &str) -> Result<String, ConfigFault> {
    if is_master(text) {
        return Ok(text.to_owned());
    }
    let message = format!(
        "{} cannot be the name of a master",
        ConfigFault::quote(text)
    );
    Err(ConfigFault::new(message)
        .help("use letters, digits, `-`, `_` and `.`, for example `mymaster`"))
}

fn connect_timeout(text: &str) -> Result<Duration, ConfigFault> {
    duration_within(
        text,
        1_000,
        "1ms",
        "a connection in the same network takes a few milliseconds; `1s` leaves room",
    )
}

fn prefix(text: &str) -> Result<String, ConfigFault> {
    let belongs = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}');
    if !text.is_empty() && text.len() <= PREFIX_MAX && text.chars().all(belongs) {
        return Ok(text.to_owned());
    }
    let message = format!("{} cannot be a prefix", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help(format!(
        "use up to {PREFIX_MAX} visible ASCII characters without braces, for example `tg:`"
    )))
}

fn tls(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<RedisTls> {
    let fields = reader.fields(value, &STORE_TLS)?;
    let mut pem = |name| secret_file(reader, &fields.get(name)?);
    let (ca, cert, key) = (pem("ca_file"), pem("cert_file"), pem("key_file"));
    for (name, other) in [("cert_file", "key_file"), ("key_file", "cert_file")] {
        if let (Some(value), None) = (fields.get(name), fields.get(other)) {
            let fault = ConfigFault::new(format!("`{name}` needs `{other}`"));
            let help = "a certificate and its private key come together";
            reader.error(value.key_spot(), fault.help(help));
        }
    }
    let identity = cert.zip(key);
    Some(RedisTls {
        ca,
        identity: identity.map(|(cert, key)| RedisIdentity { cert, key }),
    })
}
