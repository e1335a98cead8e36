//! `store`: where buckets live.

use super::duration;
use super::excerpt::hide_passwords;
use super::fault::Fault;
use super::fields::{MAX_KEYS, STORE};
use super::local_share::{self, LocalShare};
use super::reader::{Reader, Value};
use super::scalar::whole;
use super::secret::Secret;
use super::secret_setting::secret;
use super::words::ON_FAILURE;
use crate::limit::OnFailure;
use std::fmt;
use std::time::Duration;

/// Where buckets live, and what to do without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// Which store.
    pub url: StoreUrl,
    /// How long to wait for it.
    pub timeout: Duration,
    /// What a limit does when the store does not answer in time, unless it says otherwise.
    pub on_failure: OnFailure,
    /// How much of the policy this instance may grant while the store is away.
    pub local_share: LocalShare,
    /// Keys the hashes of identities; the same on all instances.
    pub key_secret: Option<Secret>,
    /// How many buckets the store in this process may hold.
    pub max_keys: u64,
}

/// `memory`, or the URL of a store. It prints without its password.
#[derive(Clone, PartialEq, Eq)]
pub struct StoreUrl(String);

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            url: StoreUrl("memory".to_owned()),
            timeout: Duration::from_millis(20),
            on_failure: OnFailure::Local,
            local_share: LocalShare::default(),
            key_secret: None,
            max_keys: 1_000_000,
        }
    }
}

// === impl StoreUrl ===

impl StoreUrl {
    /// Whether buckets live in this process.
    pub fn is_memory(&self) -> bool {
        self.0 == "memory"
    }

    /// The scheme, such as `redis`; `memory` for the store in this process.
    pub fn scheme(&self) -> &str {
        self.0
            .split_once("://")
            .map_or(&self.0, |(scheme, _)| scheme)
    }

    /// The URL with its password.
    pub fn expose(&self) -> &str {
        &self.0
    }

    fn parse(text: &str) -> Result<Self, Fault> {
        let refused = |what: String| {
            Fault::new(what)
                .help("expected `memory` or a URL, for example `redis://127.0.0.1:6379`")
        };
        if text == "memory" {
            return Ok(Self(text.to_owned()));
        }
        for url in text.split(',') {
            let Some((scheme, rest)) = url.split_once("://") else {
                // Not quoted: without a scheme it is anybody's guess where a password stands.
                return Err(refused("this is not the URL of a store".to_owned()));
            };
            let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
            let starts_well = scheme.starts_with(|first: char| first.is_ascii_alphabetic());
            let is_visible = |c: char| !c.is_whitespace() && !c.is_control();
            if !starts_well || !scheme.chars().all(belongs) {
                return Err(refused(format!(
                    "{} is not a URL scheme",
                    Fault::quote(scheme)
                )));
            }
            if rest.is_empty() || rest.starts_with('/') || !rest.chars().all(is_visible) {
                let url = Fault::quote(&hide_passwords(url));
                return Err(refused(format!("{url} names no host")));
            }
        }
        Ok(Self(text.to_owned()))
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hide_passwords(&self.0))
    }
}

impl fmt::Debug for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads `store`.
pub(super) fn read(reader: &mut Reader<'_>, value: Option<&Value<'_>>) -> StoreSettings {
    let default = StoreSettings::default();
    let Some(fields) = value.and_then(|value| reader.fields(value, &STORE)) else {
        return default;
    };
    let url = reader.setting(&fields, "url", StoreUrl::parse);
    let timeout = reader.setting(&fields, "timeout", timeout);
    let on_failure = reader.setting(&fields, "on_failure", |word| ON_FAILURE.parse(word));
    let local_share = reader.setting(&fields, "local_share", local_share::parse);
    let max_keys = reader.setting(&fields, "max_keys", |text| whole(text, &(1..=MAX_KEYS)));
    StoreSettings {
        url: url.unwrap_or(default.url),
        timeout: timeout.unwrap_or(default.timeout),
        on_failure: on_failure.unwrap_or(default.on_failure),
        local_share: local_share.unwrap_or(default.local_share),
        key_secret: secret(reader, &fields, "key_secret", "key_secret_file"),
        max_keys: max_keys.unwrap_or(default.max_keys),
    }
}

fn timeout(text: &str) -> Result<Duration, Fault> {
    // Longer than a minute, a request has given up by itself.
    const LONGEST_US: u64 = 60_000_000;
    match duration::parse(text)? {
        micros @ 1..=LONGEST_US => Ok(Duration::from_micros(micros)),
        _ => Err(
            Fault::new(format!("{} is not from 1us to 1min", Fault::quote(text)))
                .help("a store in the same network answers within `20ms`"),
        ),
    }
}
