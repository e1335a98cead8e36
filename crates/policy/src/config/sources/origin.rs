//! Where a source is.

use super::rules;
use super::table::{ETCD, HTTP, KEEPER, REDIS, SOURCE_TLS};
use crate::config::fault::Fault;
use crate::config::plans::{http_url, not_empty, within};
use crate::config::reader::{Reader, Value};
use crate::config::route::tls_in;
use crate::config::scalar;
use crate::config::secret_setting::secret;
use crate::config::store::StoreSettings;
use crate::config::table::Fields;
use crate::config::words::{FLAG, FORMAT};
use crate::route::UpstreamTls;
use crate::source::{Etcd, Format, Keeper, PolicyOrigin, PolicySource};
use std::ops::RangeInclusive;
use std::time::Duration;

/// How often a source may be asked.
const REFRESHES: RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_hours(24);

/// How long an answer may take.
const TIMEOUTS: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_mins(10);

/// The longest key, prefix or path.
const KEY_MAX: usize = 512;

/// The most members of etcd.
const ENDPOINTS_MAX: usize = 16;

/// Where a source is, and how it is asked.
pub(super) struct Asked {
    pub(super) origin: PolicyOrigin,
    pub(super) refresh: Duration,
    pub(super) timeout: Duration,
}

/// Reads where a source is. `store` is the Redis of those that name none of their own.
pub(super) fn read(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    store: &StoreSettings,
) -> Option<Asked> {
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

/// How a source is asked that is asked so unless told otherwise.
pub(super) fn asked(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    (refresh, timeout): (Duration, Duration),
    origin: Option<PolicyOrigin>,
) -> Option<Asked> {
    let told = reader.setting(fields, "refresh", |text| within(text, &REFRESHES));
    let refresh = told.unwrap_or(refresh);
    let told = reader.setting(fields, "timeout", |text| within(text, &TIMEOUTS));
    let timeout = told.unwrap_or(timeout);
    Some(Asked {
        origin: origin?,
        refresh,
        timeout,
    })
}

fn keeper(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Asked> {
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
        format: format.unwrap_or(Format::TraefikPlugin),
        tls,
    });
    let usual = (PolicySource::REFRESH, PolicySource::KEEPER_TIMEOUT);
    let origin = keeper.map(|keeper| PolicyOrigin::Keeper(Box::new(keeper)));
    asked(reader, &fields, usual, origin)
}

fn fallback(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<String> {
    if let Some(value) = fields.get("fallback") {
        if let Some(file) = fields.get("fallback_file") {
            let fault = Fault::new("`fallback` and `fallback_file` are both there");
            reader.error(file.key_spot(), fault.help("write one of the two"));
        }
        return reader.parse(&value, |text| not_empty(text, "a document"));
    }
    let value = fields.get("fallback_file")?;
    let path = reader.text(&value)?;
    let read = reader.environment_at(value.node.place).file(&path);
    let read =
        read.map_err(|why| Fault::new(format!("{} cannot be read: {why}", Fault::quote(&path))));
    reader.accept(&value, read)
}

fn http(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Asked> {
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

fn redis(reader: &mut Reader<'_>, value: &Value<'_>, store: &StoreSettings) -> Option<Asked> {
    let fields = reader.fields(value, &REDIS)?;
    let target = target(reader, &fields, store);
    if let Some(said) = fields.get(rules::RULESETS.name) {
        return rules::rule_sets(reader, &fields, &said, target.as_ref());
    }
    rules::no_rule_sets(reader, &fields);
    let hash = reader.setting(&fields, "key", |text| sound(text, "`tidegate:policies`"));
    let writable = reader.setting(&fields, "writable", |word| FLAG.parse(word));
    let origin = target.map(|target| PolicyOrigin::Redis {
        redis: Box::new(target),
        key: hash.unwrap_or_else(|| "tidegate:policies".to_owned()),
        writable: writable.unwrap_or(true),
    });
    let usual = (PolicySource::REFRESH_TOLD, PolicySource::TIMEOUT);
    asked(reader, &fields, usual, origin)
}

/// Which Redis.
fn target(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    store: &StoreSettings,
) -> Option<StoreSettings> {
    let Some(value) = fields.get("url").or_else(|| fields.get("url_file")) else {
        if store.target.redis().is_some() {
            return Some(store.clone());
        }
        let fault = Fault::new("there is no Redis: the store is not one, and no `url` is given");
        let fault = fault.help("for example `url: redis://127.0.0.1:6379`");
        reader.error(fields.map().key_spot(), fault);
        return None;
    };
    let url = secret(reader, fields, "url", "url_file")?;
    // What is wrong with it is told without it: it may hold a password.
    let target = StoreSettings::from_url(url.expose().trim()).ok();
    let target = target.filter(|it| it.target.redis().is_some());
    if target.is_none() {
        let fault = Fault::new("this is not the URL of a Redis");
        let fault = fault.help("as in `store.url`, for example `redis://127.0.0.1:6379`");
        reader.error(value.spot(), fault);
    }
    target
}

fn etcd(reader: &mut Reader<'_>, value: &Value<'_>) -> Option<Asked> {
    let fields = reader.fields(value, &ETCD)?;
    let endpoints = fields.get("endpoints").map_or_else(Vec::new, |value| {
        let items = reader.one_or_many(&value);
        let items = items.iter().take(ENDPOINTS_MAX);
        items.filter_map(|it| reader.parse(it, http_url)).collect()
    });
    let prefix = reader.setting(&fields, "prefix", |text| sound(text, "`/tidegate/`"));
    let user = reader.setting(&fields, "user", |text| not_empty(text, "a name"));
    let password = secret(reader, &fields, "password", "password_file");
    let writable = reader.setting(&fields, "writable", |word| FLAG.parse(word));
    let tls = tls(reader, &fields, &endpoints);
    let usual = (PolicySource::REFRESH, PolicySource::TIMEOUT);
    let origin = (!endpoints.is_empty()).then(|| {
        let trimmed = |it: &String| it.trim_end_matches('/').to_owned();
        PolicyOrigin::Etcd(Box::new(Etcd {
            endpoints: endpoints.iter().map(trimmed).collect(),
            prefix: prefix.unwrap_or_else(|| "/tidegate/".to_owned()),
            user,
            password,
            writable: writable.unwrap_or(true),
            tls,
        }))
    });
    asked(reader, &fields, usual, origin)
}

/// How TLS is spoken to who is at `urls`.
fn tls(reader: &mut Reader<'_>, fields: &Fields<'_>, urls: &[String]) -> UpstreamTls {
    let Some(value) = fields.get("tls") else {
        return UpstreamTls::default();
    };
    if !urls.is_empty() && !urls.iter().any(|url| url.starts_with("https://")) {
        let fault = Fault::new("`tls` has no effect: it is not spoken there");
        let help = "begin the URL with `https://`, or remove `tls`";
        reader.error(value.key_spot(), fault.help(help));
    }
    tls_in(reader, &value, &SOURCE_TLS)
}

/// A key, or a part of one: of no length that nobody means, and nothing that breaks a line.
pub(super) fn sound(text: &str, example: &str) -> Result<String, Fault> {
    let is_sound = (1..=KEY_MAX).contains(&text.len()) && !text.chars().any(char::is_control);
    if is_sound {
        return Ok(text.to_owned());
    }
    let fault = Fault::new(format!("{} cannot be a key", Fault::quote(text)));
    Err(fault.help(format!("up to {KEY_MAX} bytes, for example {example}")))
}
