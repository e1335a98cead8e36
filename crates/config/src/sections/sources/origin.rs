//! The endpoint of a source.

use super::rules;
use super::shelf::{self, sound, tls};
use super::xds;
use crate::language::reader::{ConfigReader, ConfigValue};
use crate::language::scalar;
use crate::language::secret_setting::secret;
use crate::language::table::FieldReader;
use crate::language::words::FORMAT;
use crate::sections::plans::{http_url, not_empty, within};
use crate::source::{DocumentFormat, Keeper, PolicyOrigin, PolicySource};
use crate::tables::sources::{ETCD, HTTP, KEEPER, REDIS, RULESETS};
use std::ops::RangeInclusive;
use std::time::Duration;
use tidegate_policy::store::StoreSettings;
use tidegate_policy::text::ConfigFault;

/// The range of intervals between two reads of a source.
const REFRESHES: RangeInclusive<Duration> =
    Duration::from_millis(100)..=Duration::from_secs(86_400);

/// The range of timeouts of a read.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

/// The origin of a source, with the default refresh interval and timeout of its kind.
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
    if let Some(value) = fields.get("xds") {
        return xds::read(reader, &value);
    }
    let value = fields.get("etcd")?;
    etcd(reader, &value)
}

/// Returns an endpoint with the default refresh interval and timeout of its kind.
pub(super) fn timed(
    origin: Option<PolicyOrigin>,
    (refresh, timeout): (Duration, Duration),
) -> Option<SourceEndpoint> {
    Some(SourceEndpoint {
        origin: origin?,
        refresh,
        timeout,
    })
}

/// Reads `refresh` and `timeout` of a source.
pub(super) fn timing(
    reader: &mut ConfigReader<'_>,
    source: &FieldReader<'_>,
) -> (Option<Duration>, Option<Duration>) {
    let refresh = reader.setting(source, "refresh", |text| within(text, &REFRESHES));
    let timeout = reader.setting(source, "timeout", |text| within(text, &TIMEOUTS));
    (refresh, timeout)
}

fn keeper(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &KEEPER)?;
    let url = reader.setting(&fields, "url", http_url);
    let key = reader.setting(&fields, "key", |text| sound(text, "`ratelimits`"));
    let path = reader.setting(&fields, "path", |text| sound(text, "`admin/get`"));
    let user = reader.setting(&fields, "user", |text| not_empty(text, "a name"));
    let password = secret(reader, &fields, "password", "password_file");
    let policy = reader.setting(&fields, "policy", scalar::name);
    let format = reader.setting(&fields, "format", |word| FORMAT.parse(word));
    let fallback = fallback(reader, &fields);
    let tls = tls(reader, &fields, url.as_slice());
    let or = |told: Option<String>, usual: &str| told.unwrap_or_else(|| usual.to_owned());
    let keeper = url.zip(key).map(|(url, key)| Keeper {
        url: url.trim_end_matches('/').to_owned(),
        path: or(path, "admin/get").trim_matches('/').to_owned(),
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
    timed(origin, usual)
}

fn fallback(reader: &mut ConfigReader<'_>, fields: &FieldReader<'_>) -> Option<String> {
    if let Some(value) = fields.get("fallback") {
        if let Some(file) = fields.get("fallback_file") {
            let fault = ConfigFault::new("`fallback` and `fallback_file` are both set");
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
    timed(origin, usual)
}

fn redis(
    reader: &mut ConfigReader<'_>,
    value: &ConfigValue<'_>,
    store: &StoreSettings,
) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &REDIS)?;
    if let Some(said) = fields.get(RULESETS.name) {
        let target = shelf::target(reader, &fields, store);
        return rules::rule_sets(reader, &fields, &said, target.as_ref());
    }
    rules::no_rule_sets(reader, &fields);
    let shelf = shelf::redis(reader, &fields, store, "tidegate:policies");
    let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
    timed(shelf.map(PolicyOrigin::Shelf), usual)
}

fn etcd(reader: &mut ConfigReader<'_>, value: &ConfigValue<'_>) -> Option<SourceEndpoint> {
    let fields = reader.fields(value, &ETCD)?;
    let shelf = shelf::etcd(reader, &fields, "/tidegate/");
    let usual = (PolicySource::REFRESH, PolicySource::TIMEOUT);
    timed(shelf.map(PolicyOrigin::Shelf), usual)
}
