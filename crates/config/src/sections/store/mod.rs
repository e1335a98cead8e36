//! `store`: the store of the buckets.
//!
//! | module | contents |
//! |---|---|
//! | `url` | the URLs of Redis |
//! | `options` | the settings next to the URL |
//! | `redis` | URL and settings combined |
//! | `snapshot` | the snapshot of a store in memory |

mod options;
mod redis;
mod snapshot;
#[cfg(test)]
mod tests;
mod url;

use crate::environment::NoEnvironment;
use crate::language::local_share;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar::whole;
use crate::language::secret_setting::secret;
use crate::language::words::{KEY_NAMES, ON_FAILURE};
use crate::problem::ConfigErrors;
use crate::syntax::{NodeKind, TextSpan, YamlNode, spell_out};
use crate::tables::store::{MAX_KEYS, REDIS, STORE};
use std::time::Duration;
use tidegate_policy::store::{KeyNameStyle, LayoutWord, RedisSettings, StoreSettings};
use tidegate_policy::template::Template;
use tidegate_policy::text::ConfigFault;
use tidegate_policy::text::duration;
pub(crate) use url::has_password;

/// Reads `store`, and the default template for the names of keys.
pub(crate) fn read(
    reader: &mut ConfigReader<'_>,
    value: Option<&ConfigValue<'_>>,
) -> (StoreSettings, Option<Template>) {
    let default = StoreSettings::default();
    let Some(fields) = value.and_then(|value| reader.fields(value, &STORE)) else {
        return (default, None);
    };
    let redis = fields
        .get("redis")
        .and_then(|value| reader.fields(&value, &REDIS));
    let redis = redis.unwrap_or_else(|| fields.absent(&REDIS));
    let (target, template) = redis::read(reader, &fields, &redis);
    let timeout = reader.setting(&fields, "timeout", timeout);
    let on_failure = reader.setting(&fields, "on_failure", |word| ON_FAILURE.parse(word));
    let local_share = reader.setting(&fields, "local_share", local_share::parse);
    let max_keys = reader.setting(&fields, "max_keys", |text| whole(text, &(1..=MAX_KEYS)));
    let key_names = reader.setting(&redis, "key_names", |word| KEY_NAMES.parse(word));
    let is_open = |redis: &RedisSettings| redis.layout == LayoutWord::Open;
    if let (Some(KeyNameStyle::Literal), Some(value), false) = (
        key_names,
        redis.get("key_names"),
        target.redis().is_some_and(is_open),
    ) {
        let fault = ConfigFault::new("`key_names` has no effect without `layout: open`");
        let help = "add `layout: open`, or remove it";
        reader.warn(value.key_spot(), fault.help(help));
    }
    let snapshot = snapshot::read(reader, fields.get("snapshot").as_ref(), &target);
    let settings = StoreSettings {
        target,
        timeout: timeout.unwrap_or(default.timeout),
        on_failure: on_failure.unwrap_or(default.on_failure),
        local_share: local_share.unwrap_or(default.local_share),
        key_secret: secret(reader, &fields, "key_secret", "key_secret_file"),
        key_names,
        max_keys: max_keys.unwrap_or(default.max_keys),
        snapshot,
    };
    (settings, template)
}

/// Returns the settings of the store at `url`. All other settings have their defaults.
pub(crate) fn from_url(url: &str) -> Result<StoreSettings, ConfigErrors> {
    let mut reader = ConfigReader::new("url", url, &NoEnvironment);
    let place = TextSpan::at(1, 1, url.chars().count().max(1));
    let kind = NodeKind::Text(url.to_owned());
    let mut tree = YamlNode { place, kind };
    spell_out(&mut tree);
    let (settings, _) = read(&mut reader, Some(&ConfigValue::root(&tree)));
    reader.finish()?;
    Ok(settings)
}

fn timeout(text: &str) -> Result<Duration, ConfigFault> {
    duration_within(
        text,
        1,
        "1us",
        "a store in the same network usually responds within `20ms`",
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
