//! `gateway.*`, and the location of Redis.

use crate::document::ImportedFile;
use crate::properties::{Properties, by_default, placed};
use tidegate_config::reading::ConfigValue;
use tidegate_policy::text::ConfigFault;

/// Variables that the translation refers to, each with a sample value.
pub(super) const ASKED_FOR: [(&str, &str); 2] =
    [(PASSWORD, "secret"), (URL, "redis://localhost:6379")];

const PASSWORD: &str = "SPRING_DATA_REDIS_PASSWORD";
const URL: &str = "SPRING_DATA_REDIS_URL";

/// The default of `fallback-enabled`: the gateway continues without Redis.
const FALLBACK: bool = true;

/// Settings without a counterpart: the prefix of their names, and the reason.
const LEFT_OUT: [(&str, &str); 4] = [
    (
        "gateway.ratelimit.local-cache-ttl-seconds",
        "a local bucket exists until it is full, so that a flapping store \
         does not refill it",
    ),
    (
        "gateway.cache",
        "policies are not cached: all are loaded and replaced together",
    ),
    (
        "gateway.ratelimit.trusted-proxies",
        "use `client.trusted_proxies`",
    ),
    ("gateway.", "Tidegate has no equivalent"),
];

/// The settings of one or several files.
#[derive(Debug, Default)]
pub(super) struct GatewaySettings {
    url: Option<String>,
    pub(super) has_password: bool,
    /// True if the gateway continues without Redis.
    fallback: Option<bool>,
    local_share: Option<String>,
    prefix: Option<String>,
    /// The port of the gateway.
    pub(super) port: Option<u16>,
}

// === impl GatewaySettings ===

impl GatewaySettings {
    /// Returns these settings, with `earlier` for the ones not set.
    pub(super) fn or(self, earlier: Self) -> Self {
        Self {
            url: self.url.or(earlier.url),
            has_password: self.has_password || earlier.has_password,
            fallback: self.fallback.or(earlier.fallback),
            local_share: self.local_share.or(earlier.local_share),
            prefix: self.prefix.or(earlier.prefix),
            port: self.port.or(earlier.port),
        }
    }

    /// Returns the URL of Redis, with variables in Tidegate's syntax.
    pub(super) fn url(&self) -> &str {
        self.url.as_deref().unwrap_or("redis://localhost:6379")
    }

    pub(super) fn on_failure(&self) -> &'static str {
        let falls_back = self.fallback.unwrap_or(FALLBACK);
        if falls_back { "local" } else { "allow" }
    }

    /// Returns the local share in the syntax of the configuration.
    pub(super) fn local_share(&self) -> &str {
        self.local_share.as_deref().unwrap_or("0.5")
    }

    /// Returns the prefix of key names.
    pub(super) fn prefix(&self) -> &str {
        self.prefix.as_deref().unwrap_or("ratelimit")
    }
}

/// Reads settings.
pub(super) fn read(
    document: &mut ImportedFile<'_>,
    properties: &mut Properties<'_>,
) -> GatewaySettings {
    let fallback = properties.take("gateway.ratelimit.fallback-enabled");
    let fallback = fallback.map(|value| flag(document, &value, FALLBACK));
    let local_share = properties.take("gateway.ratelimit.fallback-reduction");
    let local_share = local_share.and_then(|value| share(document, &value));
    let prefix = properties.take("gateway.ratelimit.redis-key-prefix");
    let prefix = prefix.and_then(|value| prefix_of(document, &value));
    let (url, has_password) = redis(document, properties);
    let port = properties.take("server.port");
    let port = port.and_then(|value| by_default(document.text(&value)?)?.parse().ok());
    for property in properties.left("gateway.") {
        let reason = LEFT_OUT.iter().find(|(prefix, _)| property.is_of(prefix));
        let why = reason.map_or("Tidegate has no equivalent", |(_, why)| *why);
        let text = format!("`{}` is skipped: {why}", property.written);
        document.note(property.value.node.place, text);
    }
    GatewaySettings {
        url,
        has_password,
        fallback,
        local_share,
        prefix,
        port,
    }
}

/// Returns the URL of Redis, if it is set, and true if there is a password. A password is never copied.
fn redis(
    document: &mut ImportedFile<'_>,
    properties: &mut Properties<'_>,
) -> (Option<String>, bool) {
    let mut take = |name: &str| {
        let found = properties.take(&format!("spring.data.redis.{name}"));
        found.or_else(|| properties.take(&format!("spring.redis.{name}")))
    };
    let (url, host, port) = (take("url"), take("host"), take("port"));
    let (database, password) = (take("database"), take("password"));
    if let Some(value) = &password {
        let text = format!(
            "the Redis password is not copied: set the variable {PASSWORD}, or use \
             `store.redis.password_file`"
        );
        document.note(value.node.place, text);
    }
    if let Some(value) = url {
        let url = placed(document, &value).unwrap_or_default();
        if url.contains('@') {
            let text = format!(
                "the Redis URL contains a password and is not copied: set the variable {URL}"
            );
            document.note(value.node.place, text);
            return (Some(format!("${{{URL}}}")), false);
        }
        return (Some(url), password.is_some());
    }
    if host.is_none() && port.is_none() && database.is_none() {
        return (None, password.is_some());
    }
    let mut text = |value: Option<ConfigValue<'_>>, usual: &str| {
        let written = value.and_then(|value| placed(document, &value));
        written.unwrap_or_else(|| usual.to_owned())
    };
    let (host, port) = (text(host, "localhost"), text(port, "6379"));
    let database = text(database, "0");
    let path = if database == "0" {
        String::new()
    } else {
        format!("/{database}")
    };
    let url = format!("redis://{host}:{port}{path}");
    (Some(url), password.is_some())
}

/// Reads a share of the policy: above 0, and up to 1.
fn share(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<String> {
    let text = document.text(value)?;
    let plain = by_default(text).unwrap_or_default();
    let number = plain.parse::<f64>().ok();
    let is_decimal = plain.bytes().all(|it| it.is_ascii_digit() || it == b'.');
    let is_sound = number.is_some_and(|number| number > 0.0 && number <= 1.0);
    if is_decimal && is_sound && plain.len() <= 16 {
        return placed(document, value);
    }
    let found = ConfigFault::quote(text);
    let fault = ConfigFault::new(format!(
        "{} is {found}; expected a decimal above 0 and up to 1",
        value.name()
    ));
    document.error(value.spot(), fault.help("for example 0.5"));
    None
}

/// Reads the prefix of key names.
fn prefix_of(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>) -> Option<String> {
    let text = document.text(value)?;
    let is_sound = |c: char| c.is_ascii_graphic() && !matches!(c, '{' | '}' | '$');
    if text.len() <= 64 && text.chars().all(is_sound) {
        return Some(text.to_owned());
    }
    let found = ConfigFault::quote(text);
    let fault = ConfigFault::new(format!(
        "{} is {found}, which is not a valid key prefix",
        value.name()
    ));
    document.error(
        value.spot(),
        fault.help("use up to 64 visible characters without braces"),
    );
    None
}

/// Reads a flag. For a variable, its default applies, or `usual` if it has none.
fn flag(document: &mut ImportedFile<'_>, value: &ConfigValue<'_>, usual: bool) -> bool {
    let Some(text) = value.node.as_text().filter(|text| text.contains("${")) else {
        return document.flag(value);
    };
    let default = by_default(text).filter(|text| !text.is_empty());
    let taken = if default.is_some() {
        "its default is used".to_owned()
    } else {
        format!("it has no default, so `{usual}` is used")
    };
    let note = format!("{} is a variable: {taken}", value.name());
    document.note(value.node.place, note);
    default.map_or(usual, |text| text.eq_ignore_ascii_case("true"))
}
