//! The settings next to the URL of Redis.
//!
//! The URL may contain user, password and database as well. A setting that occurs in both places is an
//! error, even if the values are equal: the next change would be made in only one of them.

use super::duration_within;
use super::url::is_master;
use crate::language::reader::ConfigReader;
use crate::language::scalar::whole;
use crate::language::secret_setting::secret;
use crate::language::table::FieldReader;
use crate::language::words::{FLAG, LAYOUT, TAG, TOPOLOGY, TopologyWord};
use crate::sections::template;
use crate::sections::tls::client_tls;
use crate::syntax::NodeKind;
use crate::tables::store::{CONNECTIONS_MAX, DENY_CACHE_MAX, RETRIES_MAX};
use std::time::Duration;
use tidegate_policy::slot_group::SlotTag;
use tidegate_policy::store::LayoutWord;
use tidegate_policy::template::Template;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::Secret;
use tidegate_policy::tls::ClientTls;

/// The longest prefix, in bytes.
const PREFIX_MAX: usize = 64;

/// The settings that are set and valid.
#[derive(Debug)]
pub(super) struct StoreOptions {
    pub(super) topology: TopologyWord,
    pub(super) master: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<Secret>,
    pub(super) sentinel_user: Option<String>,
    pub(super) sentinel_password: Option<Secret>,
    pub(super) tls: Option<ClientTls>,
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
        let topology = reader.setting(fields, "topology", |word| TOPOLOGY.parse(word));
        let master = reader.setting(fields, "master", master);
        let user = reader.setting(fields, "user", |text| not_empty("user", text));
        let sentinel_user = reader.setting(fields, "sentinel_user", |text| {
            not_empty("sentinel_user", text)
        });
        let tls = fields.get("tls").map(|value| client_tls(reader, &value));
        let connections = number(reader, fields, "connections", 1..=CONNECTIONS_MAX);
        let connect_timeout = reader.setting(fields, "connect_timeout", connect_timeout);
        let retries = number(reader, fields, "retries", 0..=RETRIES_MAX);
        let required = reader.setting(fields, "required", |word| FLAG.parse(word));
        let prefix = reader.setting(fields, "prefix", prefix);
        let tag = reader.setting(fields, "tag", |word| TAG.parse(word));
        let layout = reader.setting(fields, "layout", |word| LAYOUT.parse(word));
        let template = fields.get("template");
        let deny_cache = number(reader, fields, "deny_cache", 0..=DENY_CACHE_MAX);
        Self {
            topology: topology.unwrap_or_default(),
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

/// Warns if `redis` has fields: they have no effect, because the store is in memory.
pub(super) fn warn_beside_memory(reader: &mut ConfigReader<'_>, store: &FieldReader<'_>) {
    let Some(redis) = store.get("redis") else {
        return;
    };
    if matches!(&redis.node.kind, NodeKind::Map(fields) if !fields.is_empty()) {
        let fault = ConfigFault::new("`redis` has no effect: the store is `memory`");
        let help = "set a server, for example `url: redis://127.0.0.1:6379`";
        reader.warn(redis.key_spot(), fault.help(help));
    }
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
        "" => Err(ConfigFault::new(format!("`{name}` is empty")).help("remove it")),
        text => Ok(text.to_owned()),
    }
}

fn master(text: &str) -> Result<String, ConfigFault> {
    if is_master(text) {
        return Ok(text.to_owned());
    }
    let message = format!("{} is not a valid master name", ConfigFault::quote(text));
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
