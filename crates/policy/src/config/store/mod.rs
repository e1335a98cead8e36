//! `store`: the store of the buckets.
//!
//! | module | contents |
//! |---|---|
//! | `target` | the store, as plain data |
//! | `url` | the URLs of Redis |
//! | `options` | the settings next to the URL |
//! | `redis` | URL and settings combined |

mod options;
mod redis;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod url;

pub(super) use options::ModeWord;
pub use target::{
    KeyNameStyle, LayoutWord, RedisAddress, RedisIdentity, RedisMode, RedisSettings, RedisTls,
    StoreTarget,
};

use super::duration;
use super::fault::ConfigFault;
use super::local_share::{self, LocalShare};
use super::reader::{ConfigReader, ConfigValue};
use super::scalar::whole;
use super::secret::Secret;
use super::secret_setting::secret;
use super::syntax::{MapEntry, MapKey, NodeKind, YamlNode};
use super::words::{KEY_NAMES, ON_FAILURE};
use crate::limit::OnFailure;
use crate::template::Template;
use std::time::Duration;
use table::MAX_KEYS;
pub(super) use table::STORE;
pub(super) use url::has_password;

/// The store of the buckets, and the behavior without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The store itself.
    pub target: StoreTarget,
    /// The longest wait for a response of the store.
    pub timeout: Duration,
    /// The default `on_failure` of limits: their behavior if the store does not respond in time.
    pub on_failure: OnFailure,
    /// The share of a policy that this instance may grant while the store is unavailable.
    pub local_share: LocalShare,
    /// The secret that keys the hashes of identities; it must be the same on all instances.
    pub key_secret: Option<Secret>,
    /// The form of secrets in the names of keys, if it is set; see
    /// [`Config::has_literal_keys`](crate::Config::has_literal_keys).
    pub key_names: Option<KeyNameStyle>,
    /// The maximum number of buckets of a store in memory.
    pub max_keys: u64,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            target: StoreTarget::Memory,
            timeout: Duration::from_millis(20),
            on_failure: OnFailure::Local,
            local_share: LocalShare::default(),
            key_secret: None,
            key_names: None,
            max_keys: 1_000_000,
        }
    }
}

/// Replaces a store that is written as a URL by a map with this `url`.
pub(super) fn spell_out(store: &mut YamlNode) {
    let place = store.place;
    if !matches!(store.kind, NodeKind::Text(_)) {
        return;
    }
    let key = MapKey {
        text: "url".to_owned(),
        place,
    };
    let kind = std::mem::replace(&mut store.kind, NodeKind::Null);
    let value = YamlNode { place, kind };
    store.kind = NodeKind::Map(vec![MapEntry { key, value }]);
}

/// Reads `store`, and the default template for the names of keys.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
) -> (StoreSettings, Option<Template>) {
    let default = StoreSettings::default();
    let Some(fields) = value.and_then(|value| reader.fields(value, &STORE)) else {
        return (default, None);
    };
    let (target, template) = redis::read(reader, &fields);
    let timeout = reader.setting(&fields, "timeout", timeout);
    let on_failure = reader.setting(&fields, "on_failure", |word| ON_FAILURE.parse(word));
    let local_share = reader.setting(&fields, "local_share", local_share::parse);
    let max_keys = reader.setting(&fields, "max_keys", |text| whole(text, &(1..=MAX_KEYS)));
    let key_names = reader.setting(&fields, "key_names", |word| KEY_NAMES.parse(word));
    let is_open = |redis: &RedisSettings| redis.layout == LayoutWord::Open;
    if let (Some(KeyNameStyle::Literal), Some(value), false) = (
        key_names,
        fields.get("key_names"),
        target.redis().is_some_and(is_open),
    ) {
        let fault =
            ConfigFault::new("`key_names` has no effect: only the open layout has such names");
        let help = "add `layout: open`, or remove it";
        reader.warn(value.key_spot(), fault.help(help));
    }
    let settings = StoreSettings {
        target,
        timeout: timeout.unwrap_or(default.timeout),
        on_failure: on_failure.unwrap_or(default.on_failure),
        local_share: local_share.unwrap_or(default.local_share),
        key_secret: secret(reader, &fields, "key_secret", "key_secret_file"),
        key_names,
        max_keys: max_keys.unwrap_or(default.max_keys),
    };
    (settings, template)
}

fn timeout(text: &str) -> Result<Duration, ConfigFault> {
    duration_within(
        text,
        1,
        "1us",
        "a store in the same network answers within `20ms`",
    )
}

/// Reads a duration of at most a minute. Clients give up before a longer one ends.
fn duration_within(
    text: &str,
    least_us: u64,
    least: &str,
    help: &str,
) -> Result<Duration, ConfigFault> {
    const LONGEST_US: u64 = 60_000_000;
    let micros = duration::parse(text)?;
    if (least_us..=LONGEST_US).contains(&micros) {
        return Ok(Duration::from_micros(micros));
    }
    let message = format!("{} is not from {least} to 1min", ConfigFault::quote(text));
    Err(ConfigFault::new(message).help(help))
}
