//! The URL of Redis, and its password.

use super::whose::guards;
use super::{said, scalar, text};
use crate::config::environment::Environment;
use crate::config::overrides::at;
use crate::config::store::has_password;
use crate::config::syntax::{MapEntry, NodeKind, TextSpan, YamlNode};

const URL: &str = "REDIS_URL";
const PASSWORD: &str = "REDIS_PASSWORD";

/// The default URL.
const DEFAULT_URL: &str = "redis://localhost:6379";

/// The fields of `store` for the URL, and for the password.
const URLS: [&str; 2] = ["url", "urls"];
const PASSWORDS: [&str; 2] = ["password", "password_file"];

/// Puts the values of the variables under `store`.
pub(super) fn apply(root: &mut YamlNode, environment: &dyn Environment) {
    let url = said(URL, environment).map(|url| with_scheme(&url));
    // The default must not move anyone's buckets. It applies only if something needs Redis and no URL
    // is set.
    let is_missing = needs_redis(root) && !URLS.iter().any(|name| is_told(root, name));
    let url = url.or_else(|| is_missing.then(|| DEFAULT_URL.to_owned()));
    if let Some(url) = url {
        put(root, URLS, &url, TextSpan::Variable(URL));
    }
    let password = said(PASSWORD, environment).filter(|_| !is_filled(root, environment));
    if let Some(password) = password {
        put(root, PASSWORDS, &password, TextSpan::Variable(PASSWORD));
    }
}

/// Puts a value under the first of two names and removes the other, which means the same. A value set
/// by one of Tidegate's own variables stays.
fn put(root: &mut YamlNode, names: [&'static str; 2], said: &str, place: TextSpan) {
    let NodeKind::Map(sections) = &mut root.kind else {
        return;
    };
    let store = at(sections, "store", place, NodeKind::Null);
    if let NodeKind::Null = store.kind {
        store.kind = NodeKind::Map(Vec::new());
    }
    // A section that is not a map is reported when it is read.
    let NodeKind::Map(fields) = &mut store.kind else {
        return;
    };
    let is_same = |field: &MapEntry| names.contains(&field.key.text.as_str());
    let is_ours = |field: &MapEntry| matches!(field.value.place, TextSpan::Variable(_));
    if fields.iter().any(|field| is_same(field) && is_ours(field)) {
        return;
    }
    fields.retain(|field| !is_same(field));
    let [name, _] = names;
    *at(fields, name, place, NodeKind::Null) = scalar(said, place);
}

/// Adds a scheme to the collector's own form, `host:port`.
fn with_scheme(url: &str) -> String {
    if url.contains("://") || url == "memory" {
        return url.to_owned();
    }
    format!("redis://{url}")
}

fn is_told(root: &YamlNode, name: &str) -> bool {
    let store = root.get("store");
    store.and_then(|store| store.get(name)).is_some()
}

/// Returns true if a part of the configuration works only with Redis.
fn needs_redis(root: &YamlNode) -> bool {
    let mut sets = guards(root).iter().filter_map(|guard| guard.get("redis"));
    root.get("addresses").is_some() || sets.any(|set| set.get("url").is_none())
}

/// Returns true if the URL contains a password already.
fn is_filled(root: &YamlNode, environment: &dyn Environment) -> bool {
    let store = root.get("store");
    let written = URLS.iter().filter_map(|name| store?.get(name));
    written.into_iter().any(|node| match &node.kind {
        NodeKind::List(items) => items
            .iter()
            .any(|item| has_password(&text(item, environment))),
        _ => has_password(&text(node, environment)),
    })
}
