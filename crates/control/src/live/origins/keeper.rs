//! A key of a keeper: a document with a version, over HTTP.

use super::BYTES_MAX;
use super::translate::ForeignDocument;
use crate::live::source::{LoadResult, LoadedPart, PolicyFetcher, Revision, SourceError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT, AUTHORIZATION};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde::Deserialize;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;
use tidegate_config::compose::digest;
use tidegate_config::source::Keeper;
use tidegate_net::tasks::blocking;
use tidegate_proxy::http_fetch::HttpFetch;
use tokio::time::sleep;

/// The version of the fallback.
const FALLBACK: &str = "fallback";

/// The version that a keeper reports if it does not count versions.
const UNCOUNTED: &str = "0/0";

/// A key of a keeper.
#[derive(Debug)]
pub(super) struct KeeperSource {
    keeper: Keeper,
    errand: HttpFetch,
    headers: HeaderMap,
    every: Duration,
}

/// A keeper's response.
#[derive(Deserialize)]
struct KeeperReply {
    /// The document: text, or JSON within JSON.
    #[serde(default)]
    value: Value,
    #[serde(default)]
    version: Value,
    #[serde(default)]
    mod_revision: Value,
}

impl KeeperReply {
    /// Returns the document, and its version.
    fn into_version_and_text(self) -> (Revision, String) {
        let text = match self.value {
            Value::String(text) => text,
            Value::Null => String::new(),
            value => value.to_string(),
        };
        let version = format!("{}/{}", number(&self.version), number(&self.mod_revision));
        let version = match version.as_str() {
            // Without a counter, the content identifies the version.
            UNCOUNTED => format!("{UNCOUNTED}~{}", digest(&text)),
            _ => version,
        };
        (Revision(version), text)
    }
}

impl KeeperSource {
    pub(super) fn new(
        keeper: &Keeper,
        time_max: Duration,
        every: Duration,
    ) -> Result<Self, String> {
        let url = format!("{}/{}/{}", keeper.url, keeper.path, segment(&keeper.key));
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(password) = &keeper.password {
            let who = STANDARD.encode(format!("{}:{}", keeper.user, password.expose()));
            let value = HeaderValue::from_str(&format!("Basic {who}"));
            let mut value = value.map_err(|_| "the password cannot be sent".to_owned())?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self {
            keeper: keeper.clone(),
            errand: HttpFetch::to(&url, &keeper.tls, time_max, BYTES_MAX)?,
            headers,
            every,
        })
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<LoadResult, SourceError> {
        let asked = self
            .errand
            .run(Method::GET, self.headers.clone(), Bytes::new());
        let answer = asked
            .await
            .map_err(|error| SourceError(error.to_string()))?;
        if answer.status != StatusCode::OK {
            return Err(SourceError(format!(
                "the response status was {}",
                answer.status
            )));
        }
        let answered: KeeperReply = serde_json::from_slice(&answer.body).map_err(|error| {
            SourceError(format!("the response is not a keeper document: {error}"))
        })?;
        let (version, text) = answered.into_version_and_text();
        if seen == Some(&version) {
            return Ok(LoadResult::Unchanged);
        }
        if text.trim().is_empty() {
            let key = &self.keeper.key;
            return Err(SourceError(format!("the key `{key}` does not exist")));
        }
        let keeper = self.keeper.clone();
        let read = blocking(move || foreign(&keeper, &text).load(version));
        read.await
            .ok_or_else(|| SourceError("the read did not finish".to_owned()))
    }
}

fn foreign<'a>(keeper: &'a Keeper, text: &'a str) -> ForeignDocument<'a> {
    ForeignDocument {
        name: &keeper.key,
        format: keeper.format,
        policy: &keeper.policy,
        text,
    }
}

impl PolicyFetcher for KeeperSource {
    fn load<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<LoadResult, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self) -> BoxFuture<'_, ()> {
        Box::pin(sleep(self.every))
    }

    fn fallback(&self) -> Option<Result<LoadedPart, SourceError>> {
        let text = self.keeper.fallback.as_ref()?;
        let loaded = foreign(&self.keeper, text).load(Revision(FALLBACK.to_owned()));
        match loaded {
            LoadResult::Part(part) => Some(Ok(part)),
            LoadResult::Wrong(wrong) => Some(Err(SourceError(wrong.why))),
            LoadResult::Unchanged => None,
        }
    }

    fn has_fallback(&self) -> bool {
        self.keeper.fallback.is_some()
    }
}

/// Returns a number as text. Keepers and similar systems write it as a number or as text.
fn number(value: &Value) -> String {
    match value {
        Value::Number(number) => number.to_string(),
        Value::String(number) => number.clone(),
        _ => "0".to_owned(),
    }
}

/// Percent-encodes a key as a segment of a path.
fn segment(key: &str) -> String {
    let mut segment = String::new();
    for byte in key.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            segment.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            write!(segment, "%{byte:02X}").ok();
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::{KeeperReply, segment};

    #[test]
    fn a_keeper_without_versions_always_had_the_same_version() {
        let version = |text: &str| {
            let answered: KeeperReply = serde_json::from_str(text).unwrap();
            answered.into_version_and_text().0
        };
        let one = version(r#"{"value": "one"}"#);
        assert_eq!(one, version(r#"{"value": "one", "version": null}"#));
        assert_ne!(one, version(r#"{"value": "two"}"#));
        assert_eq!(
            version(r#"{"value": "two", "version": 1, "mod_revision": "7"}"#).0,
            "1/7"
        );
    }

    #[test]
    fn a_key_is_one_path_segment_whatever_it_contains() {
        assert_eq!(segment("ratelimits"), "ratelimits");
        assert_eq!(segment("a/b c?"), "a%2Fb%20c%3F");
    }
}
