//! The endpoint of a source.

use super::rules;
use super::shelf::{self, sound, tls};
use super::table::{ETCD, HTTP, KEEPER, REDIS};
use crate::config::fault::ConfigFault;
use crate::config::plans::{http_url, not_empty, within};
use crate::config::reader::{ConfigReader, ConfigValue};
use crate::config::scalar;
use crate::config::secret_setting::secret;
use crate::config::store::StoreSettings;
use crate::config::table::FieldReader;
use crate::config::words::FORMAT;
use crate::source::{DocumentFormat, Keeper, PolicyOrigin, PolicySource};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The range of intervals between two reads of a source.
const REFRESHES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24);

/// The range of timeouts of a read.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_mins(10);

/// The origin of a source, its refresh interval and its timeout.
pub(super) struct SourceEndpoint {
    pub(super) origin: PolicyOrigin,
    pub(super) refresh: Duration,
    pub(super) timeout: Duration,
}

/// Reads the endpoint of a source. `store` is the Redis of sources that set no URL.
pub(super) fn read(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    store: &StoreSettings,
) -> Option<SourceEndpoint> {
    if let Some(value) = fields.get("keeper") {
        return keeper(reader, &value);
    }
    if let Some(value) = fields.get("http") {
        return http(reader, &value);
    }
    if let Some(value) = fields.get("redis") {
        return redis(reader, &value, store);
    }
    if let Some(value) = fields.get("mongodb") {
        return rules::mongodb(reader, &value);
    }
    let value = fields.get("etcd")?;
    etcd(reader, &value)
}

/// Reads `refresh` and `timeout`, with the given defaults.
pub(super) fn asked(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    (refresh, timeout): (Duration, Duration),
    origin: Option<PolicyOrigin>,
) -> Option<SourceEndpoint> {
    let told = reader.setting(fields, "refresh", |text| within(text, &REFRESHES));
    let refresh = told.unwrap_or(refresh);
    let told = reader.setting(fields, "timeout", |text| within(text, &TIMEOUTS));
    let timeout = told.unwrap_or(timeout);
    Some(SourceEndpoint {
        origin: origin?,
        refresh,
        timeout,
    })
}

fn keeper(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &KEEPER)?;
    let url = reader.setting(&fields, "url", http_url);
    let key = reader.setting(&fields, "key", |text| sound(text, "`ratelimits`"));
    let endpoint = reader.setting(&fields, "endpoint", |text| sound(text, "`admin/get`"));
    let user = reader.setting(&fields, "user", |text| not_empty(text, "a name"));
    let password = secret(reader, &fields, "password", "password_file");
    let policy = reader.setting(&fields, "policy", scalar::name);
    let format = reader.setting(&fields, "format", |word| FORMAT.parse(word));
    let fallback = fallback(reader, &fields);
    let tls = tls(reader, &fields, url.as_slice());
    let or = |told: Option<String>, usual: &str| told.unwrap_or_else(|| usual.to_owned());
    let keeper = url.zip(key).map(|(url, key)| Keeper {
        url: url.trim_end_matches('/').to_owned(),
        endpoint: or(endpoint, "admin/get").trim_matches('/').to_owned(),
        key,
        user: or(user, "admin"),
        password,
        policy: or(policy, "traefik"),
        fallback,
        format: format.unwrap_or(DocumentFormat::TraefikPlugin),
        tls,
    });
    let usual = (PolicySource::REFRESH, PolicySource::KEEPER_TIMEOUT);
    let origin = keeper.map(|keeper| PolicyOrigin::Keeper(Box::new(keeper)));
    asked(reader, &fields, usual, origin)
}

fn fallback(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<String> {
    if let Some(value) = fields.get("fallback") {
        if let Some(file) = fields.get("fallback_file") {
            let fault = ConfigFault::new("`fallback` and `fallback_file` are both there");
            reader.error(file.key_spot(), fault.help("write one of the two"));
        }
        return reader.parse(&value, |text| not_empty(text, "a document"));
    }
    let value = fields.get("fallback_file")?;
    let path = reader.text(&value)?;
    let read = reader.environment_at(value.node.place).file(&path);
    let read = read.map_err(|why| {
        ConfigFault::new(format!(
            "{} cannot be read: {why}",
            ConfigFault::quote(&path)
        ))
    });
    reader.accept(&value, read)
}

fn http(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &HTTP)?;
    let url = reader.setting(&fields, "url", http_url);
    let token = secret(reader, &fields, "token", "token_file");
    let format = reader.setting(&fields, "format", |word| FORMAT.parse(word));
    let tls = tls(reader, &fields, url.as_slice());
    let origin = url.map(|url| PolicyOrigin::Http {
        url,
        token,
        format: format.unwrap_or_default(),
        tls,
    });
    let usual = (PolicySource::REFRESH, PolicySource::TIMEOUT);
    asked(reader, &fields, usual, origin)
}

fn redis(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &REDIS)?;
    if let Some(said) = fields.get(rules::RULESETS.name) {
        let target = shelf::target(reader, &fields, store);
        return rules::rule_sets(reader, &fields, &said, target.as_ref());
    }
    rules::no_rule_sets(reader, &fields);
    let shelf = shelf::redis(reader, &fields, store, "tidegate:policies");
    let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
    asked(reader, &fields, usual, shelf.map(PolicyOrigin::Shelf))
}

fn etcd(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &ETCD)?;
    let shelf = shelf::etcd(reader, &fields, "/tidegate/");
    let usual = (PolicySource::REFRESH, PolicySource::TIMEOUT);
    asked(reader, &fields, usual, shelf.map(PolicyOrigin::Shelf))
}
