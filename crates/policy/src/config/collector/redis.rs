//! Where Redis is, and its password.

use super::whose::guards;
use super::{said, scalar, text};
use crate::config::environment::Environment;
use crate::config::overrides::at;
use crate::config::store::has_password;
use crate::config::syntax::{MapEntry, NodeKind, TextSpan, YamlNode};

const URL: &str = "REDIS_URL";
const PASSWORD: &str = "REDIS_PASSWORD";

/// Where it is unless told.
const DEFAULT_URL: &str = "redis://localhost:6379";

/// The fields of `store` that say where it is, and its password.
const URLS: [&str; 2] = ["url", "urls"];
const PASSWORDS: [&str; 2] = ["password", "password_file"];

/// Puts what the variables say under `store`.
pub(super) fn apply(root: &mut YamlNode, environment: &dyn Environment) {
    let url = said(URL, environment).map(|url| with_scheme(&url));
    // A default is no reason to move anybody's buckets: it only stands where Redis cannot be done
    // without, and nobody has said where it is.
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

/// Puts a value under the first of these names, and takes the other away: they mean the same. What
/// a variable of our own has said stays.
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

/// The collector's own form is `host:port`.
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

/// Whether there is something that only Redis can have.
fn needs_redis(root: &YamlNode) -> bool {
    let mut sets = guards(root).iter().filter_map(|guard| guard.get("redis"));
    root.get("addresses").is_some() || sets.any(|set| set.get("url").is_none())
}

/// Whether the URL has a password already.
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
