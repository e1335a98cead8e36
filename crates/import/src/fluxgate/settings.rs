//! `fluxgate.*`: the settings of a program that uses `FluxGate`.

use crate::document::{ImportedFile, line};
use crate::draft::WaitDraft;
use crate::map::plain;
use crate::properties::{Properties, by_default, placed};
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::{ConfigFault, NodeKind, duration};

/// Variables that replace URLs with passwords.
const REDIS_URI: &str = "FLUXGATE_REDIS_URI";
const MONGODB_URI: &str = "FLUXGATE_MONGO_URI";

/// The longest timeout of the store, in milliseconds.
const TIMEOUT_MAX: u64 = 60_000;

/// The longest wait in milliseconds, and the maximum number of waiting requests.
const WAIT_MAX: u64 = 3_600_000;
const WAITING_MAX: u64 = 1_000_000;

/// The settings; all fields are empty by default.
#[derive(Debug, Default)]
pub(super) struct FluxgateSettings {
    pub(super) redis: Option<Redis>,
    /// The location of the rules.
    pub(super) mongodb: Option<MongoDb>,
    pub(super) waiting: WaitSetting,
    /// The default rule set, with its position.
    pub(super) default_set: Option<(String, (String, usize))>,
    /// The behavior without Redis, if it is set.
    pub(super) on_failure: Option<&'static str>,
}

/// The waiting of requests whose rules allow it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum WaitSetting {
    /// Not set.
    #[default]
    Unknown,
    Never,
    So(WaitDraft),
}

/// The Redis that stores the buckets.
#[derive(Debug)]
pub(super) struct Redis {
    /// The URL, with variables in Tidegate's syntax.
    pub(super) url: String,
    pub(super) mode: Option<&'static str>,
    /// The timeout, in milliseconds.
    pub(super) timeout: Option<u64>,
}

/// The database that stores the rules.
#[derive(Debug)]
pub(super) struct MongoDb {
    /// The URL, with variables in Tidegate's syntax.
    pub(super) url: String,
    pub(super) database: String,
    pub(super) collection: Option<String>,
    /// The file and the line.
    pub(super) place: (String, usize),
}

/// Settings without a counterpart: the prefix of their names, and the reason.
const LEFT_OUT: [(&str, &str); 16] = [
    ("fluxgate.redis.", "it is an unknown setting"),
    (
        "fluxgate.mongo.event-collection",
        "decisions are counted, not stored",
    ),
    ("fluxgate.mongo.", "Tidegate does not write there"),
    (
        "fluxgate.ratelimit.enabled",
        "use `mode: off` of each limit",
    ),
    ("fluxgate.ratelimit.filter", "`listen` sets the listeners"),
    (
        "fluxgate.ratelimit.include-patterns",
        "use `match` of a limit, or `routes`, to select paths",
    ),
    (
        "fluxgate.ratelimit.exclude-patterns",
        "use `match` of a limit, or `routes`, to select paths",
    ),
    (
        "fluxgate.ratelimit.client-ip-header",
        "`client.address` lists the headers, which are trusted only from trusted proxies",
    ),
    (
        "fluxgate.ratelimit.trust-client-ip-header",
        "headers are trusted only from `client.trusted_proxies`",
    ),
    (
        "fluxgate.ratelimit.include-headers",
        "`respond.headers` selects the headers",
    ),
    (
        "fluxgate.ratelimit.missing-rule-behavior",
        "a check request for an unknown policy is an error",
    ),
    (
        "fluxgate.metrics",
        "`/metrics` is always there, on `listen.admin`",
    ),
    (
        "fluxgate.actuator",
        "`/livez` and `/readyz` are always there, on `listen.admin`",
    ),
    (
        "fluxgate.reload",
        "`sources` sets the location of rules and their refresh interval",
    ),
    (
        "fluxgate.resilience",
        "`store.redis.retries` and `store.on_failure` apply if Redis is unavailable",
    ),
    ("fluxgate.", "Tidegate has no equivalent"),
];

impl FluxgateSettings {
    /// The default waiting rules.
    pub(super) const USUAL_WAITING: WaitDraft = WaitDraft {
        max_wait: 5_000,
        max_waiting: 100,
    };
}

/// Reads settings. Settings of earlier files stay unless this file overrides them.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    mut properties: Properties<'_>,
    settings: &mut FluxgateSettings,
) {
    let says = |name: &str| properties.has(&format!("fluxgate.{name}"));
    let [says_redis, says_mongodb] = ["redis.enabled", "mongo.enabled"].map(says);
    let says_waiting = says("ratelimit.wait-for-refill.");
    let redis = redis(document, &mut properties);
    if says_redis {
        settings.redis = redis;
    }
    let mongodb = mongodb(document, &mut properties);
    if says_mongodb {
        settings.mongodb = mongodb;
    }
    let waiting = waiting(document, &mut properties);
    if says_waiting || settings.waiting == WaitSetting::Unknown {
        settings.waiting = waiting;
    }
    if let Some(value) = properties.take("fluxgate.ratelimit.default-rule-set-id")
        && let Some(name) = document.text(&value)
    {
        let place = (document.file().to_owned(), line(value.node.place));
        settings.default_set = Some((name.to_owned(), place));
    }
    let on_failure = on_failure(document, &mut properties);
    settings.on_failure = on_failure.or(settings.on_failure);
    for property in properties.left("fluxgate.") {
        let reason = LEFT_OUT.iter().find(|(prefix, _)| property.is_of(prefix));
        let why = reason.map_or("Tidegate has no equivalent", |(_, why)| *why);
        let text = format!("`{}` is skipped: {why}", property.written);
        document.note(property.value.node.place, text);
    }
}

fn redis(document: &mut ImportedFile<'_>, properties: &mut Properties<'_>) -> Option<Redis> {
    let enabled = properties.take("fluxgate.redis.enabled");
    let enabled_at = enabled.as_ref().map(|value| value.node.place);
    let enabled = enabled.map(|value| flag(document, &value));
    let uri = properties.take("fluxgate.redis.uri");
    let mode = properties.take("fluxgate.redis.mode");
    let timeout = properties.take("fluxgate.redis.timeout");
    let timeout = timeout.or_else(|| properties.take("fluxgate.redis.timeout-ms"));
    let place = uri.as_ref().map(|value| value.node.place);
    let url = match uri {
        Some(value) => url(document, &value),
        None => Some("redis://localhost:6379".to_owned()),
    };
    let mode = mode.and_then(|value| mode_of(document, &value));
    let timeout = timeout.and_then(|value| milliseconds(document, &value));
    if enabled != Some(true) {
        if let Some(place) = enabled_at.or(place) {
            let text = "`fluxgate.redis` is not enabled: buckets are in memory, as in FluxGate";
            document.note(place, text);
        }
        return None;
    }
    if let Some((timeout, place)) = timeout
        && timeout > 100
    {
        let text = format!(
            "the store timeout is {timeout} ms, as in FluxGate; the default of Tidegate is 20 ms"
        );
        document.note(place, text);
    }
    Some(Redis {
        url: url?,
        mode,
        timeout: timeout.map(|(timeout, _)| timeout),
    })
}

/// Reads the location of the rules, if it is enabled.
fn mongodb(document: &mut ImportedFile<'_>, properties: &mut Properties<'_>) -> Option<MongoDb> {
    let mut take = |name: &str| properties.take(&format!("fluxgate.mongo.{name}"));
    let enabled = take("enabled")?;
    let uri = take("uri");
    let (database, collection) = (take("database"), take("rule-collection"));
    let mut text = |value: Option<ConfigValue<'_>>| placed(document, &value?);
    let (url, database, collection) = (text(uri.clone()), text(database), text(collection));
    let place = (document.file().to_owned(), line(enabled.node.place));
    if !flag(document, &enabled) {
        return None;
    }
    let mut url = url.unwrap_or_else(|| "mongodb://localhost:27017".to_owned());
    if let Some(value) = uri.filter(|_| url.contains('@')) {
        let text = format!(
            "`fluxgate.mongo.uri` contains a password and is not copied: set the variable \
             {MONGODB_URI}"
        );
        document.note(value.node.place, text);
        url = format!("${{{MONGODB_URI}}}");
    }
    Some(MongoDb {
        url,
        database: database.unwrap_or_else(|| "fluxgate".to_owned()),
        collection,
        place,
    })
}

/// Returns the URL, or a variable in its place if it contains a password: that is never copied.
fn url(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<String> {
    let url = placed(document, value)?;
    if url.contains('@') {
        let text = format!(
            "`fluxgate.redis.uri` contains a password and is not copied: set the variable \
             {REDIS_URI}"
        );
        document.note(value.node.place, text);
        return Some(format!("${{{REDIS_URI}}}"));
    }
    Some(url)
}

fn mode_of(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<&'static str> {
    let text = by_default(document.text(value)?)?;
    let modes = ["auto", "standalone", "cluster"];
    let known = modes.iter().find(|mode| plain(mode) == plain(&text));
    if known.is_none() {
        let fault = ConfigFault::new(format!("{} is not a mode", ConfigFault::quote(&text)));
        document.error(
            value.spot(),
            fault.help("expected auto, standalone or cluster"),
        );
    }
    known.copied()
}

fn waiting(document: &mut ImportedFile<'_>, properties: &mut Properties<'_>) -> WaitSetting {
    let mut take =
        |name: &str| properties.take(&format!("fluxgate.ratelimit.wait-for-refill.{name}"));
    let enabled = take("enabled");
    let (wait, most) = (take("max-wait-time-ms"), take("max-concurrent-waits"));
    let usual = FluxgateSettings::USUAL_WAITING;
    let wait = bounded(document, wait.as_ref(), WAIT_MAX);
    let most = bounded(document, most.as_ref(), WAITING_MAX);
    let enabled = enabled.is_some_and(|value| flag(document, &value));
    if !enabled {
        return WaitSetting::Never;
    }
    WaitSetting::So(WaitDraft {
        max_wait: wait.unwrap_or(usual.max_wait),
        max_waiting: most.unwrap_or(usual.max_waiting),
    })
}

fn bounded(
    document: &mut ImportedFile<'_>,
    value: Option<&ConfigValue<'_>>,
    most: u64,
) -> Option<u64> {
    let number = document.number(value?, most)?;
    if number == 0 {
        let value = value?;
        let message = format!("{} is 0; expected 1 to {most}", value.name());
        document.error(value.spot(), ConfigFault::new(message));
        return None;
    }
    Some(number)
}

fn on_failure(
    document: &mut ImportedFile<'_>,
    properties: &mut Properties<'_>,
) -> Option<&'static str> {
    let value = properties.take("fluxgate.ratelimit.failure-behavior")?;
    let text = document.text(&value)?;
    match plain(text).as_str() {
        "allow" => Some("allow"),
        "deny" => Some("deny"),
        _ => {
            let fault =
                ConfigFault::new(format!("{} is not a behaviour", ConfigFault::quote(text)));
            document.error(value.spot(), fault.help("expected ALLOW or DENY"));
            None
        }
    }
}

/// Reads a flag. For a variable, its default applies.
fn flag(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> bool {
    let default = match &value.node.kind {
        NodeKind::Text(text) if text.contains("${") => by_default(text),
        _ => return document.flag(value),
    };
    let text = format!("{} is a variable: its default is used", value.name());
    document.note(value.node.place, text);
    default.is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// Reads a duration, `5s` or a number of milliseconds, and returns it in milliseconds with its
/// position.
fn milliseconds(
    document: &mut ImportedFile<'_>,
    value: &ConfigValue<'_>,
) -> Option<(u64, tidegate_policy::text::TextSpan)> {
    let text = document.text(value)?;
    let read = match text.parse::<u64>() {
        Ok(number) => Some(number),
        Err(_) => duration(text)
            .ok()
            .and_then(|length| u64::try_from(length.as_millis()).ok()),
    };
    let read = read.filter(|number| (1..=TIMEOUT_MAX).contains(number));
    if read.is_none() {
        let message = format!(
            "{} is {}; expected 1ms to 1min",
            value.name(),
            ConfigFault::quote(text)
        );
        document.error(
            value.spot(),
            ConfigFault::new(message).help("for example `5s`"),
        );
    }
    Some((read?, value.node.place))
}

#[cfg(test)]
mod tests {
    use crate::{SourceFile, fluxgate};

    #[test]
    fn a_second_settings_file_discarded_the_first() {
        let file = |name: &str, text: &str| SourceFile {
            name: name.to_owned(),
            text: text.to_owned(),
        };
        let first = "fluxgate: { redis: { enabled: true, uri: 'redis://cache:6379' }, ratelimit: { failure-behavior: DENY, wait-for-refill: { enabled: true, max-wait-time-ms: 700 } } }";
        let second = "fluxgate.ratelimit.default-rule-set-id: api";
        let rules = r#"[{ "ruleSetId": "api", "id": "a", "scope": "PER_IP", "onLimitExceedPolicy": "WAIT_FOR_REFILL", "bands": [{ "windowSeconds": 1, "capacity": 1 }] }]"#;
        let files = [
            file("application.yml", first),
            file("application-prod.yml", second),
            file("rules.json", rules),
        ];
        let yaml = fluxgate(&files).expect("a valid config").to_yaml();
        for said in ["redis://cache:6379", "on_failure: deny", "max_wait: 700ms"] {
            assert!(yaml.contains(said), "{said}: {yaml}");
        }
        let off = [
            file("a.yml", first),
            file("b.yml", "fluxgate.redis.enabled: false"),
        ];
        let yaml = fluxgate(&off).expect("a valid config").to_yaml();
        assert!(
            !yaml.contains("redis://cache"),
            "what is said later counts: {yaml}"
        );
    }
}
