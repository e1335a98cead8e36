//! The URL of Redis, and its password.

use super::section::guards;
use super::{scalar, text, variable_value};
use crate::environment::Environment;
use crate::sections::store::has_password;
use crate::syntax::{MapEntry, NodeKind, TextSpan, YamlNode, at};

const URL: &str = "REDIS_URL";
const PASSWORD: &str = "REDIS_PASSWORD";

/// The default URL.
const DEFAULT_URL: &str = "redis://localhost:6379";

/// The field of `store` for the URL, and those of `store.redis` for the password.
const STORE_URL: &str = "url";
const PASSWORDS: [&str; 2] = ["password", "password_file"];

/// Puts the values of the variables under `store`.
pub(super) fn apply(root: &mut YamlNode, environment: &dyn Environment) {
    let url = variable_value(URL, environment).map(|url| with_scheme(&url));
    // The default must not move anyone's buckets. It applies only if something needs Redis and no URL
    // is set.
    let is_missing = needs_redis(root) && store_url(root).is_none();
    let url = url.or_else(|| is_missing.then(|| DEFAULT_URL.to_owned()));
    if let Some(url) = url {
        put(
            root,
            &["store"],
            &[STORE_URL],
            &url,
            TextSpan::Variable(URL),
        );
    }
    let password = variable_value(PASSWORD, environment).filter(|_| !is_filled(root, environment));
    if let Some(password) = password {
        let place = TextSpan::Variable(PASSWORD);
        put(root, &["store", "redis"], &PASSWORDS, &password, place);
    }
}

/// Puts a value into the section at `path`, under the first of these names, and removes the others, which
/// mean the same. A value set by one of Tidegate's own variables stays.
fn put(node: &mut YamlNode, path: &[&str], names: &[&'static str], said: &str, place: TextSpan) {
    if let NodeKind::Null = node.kind {
        node.kind = NodeKind::Map(Vec::new());
    }
    // A section that is not a map is reported when it is read.
    let NodeKind::Map(fields) = &mut node.kind else {
        return;
    };
    if let Some((first, rest)) = path.split_first() {
        let section = at(fields, first, place, NodeKind::Null);
        return put(section, rest, names, said, place);
    }
    let is_same = |field: &MapEntry| names.contains(&field.key.text.as_str());
    let is_ours = |field: &MapEntry| matches!(field.value.place, TextSpan::Variable(_));
    if fields.iter().any(|field| is_same(field) && is_ours(field)) {
        return;
    }
    fields.retain(|field| !is_same(field));
    if let Some(name) = names.first() {
        *at(fields, name, place, NodeKind::Null) = scalar(said, place);
    }
}

/// Adds a scheme to the collector's own form, `host:port`.
fn with_scheme(url: &str) -> String {
    if url.contains("://") || url == "memory" {
        return url.to_owned();
    }
    format!("redis://{url}")
}

fn store_url(root: &YamlNode) -> Option<&YamlNode> {
    root.get("store")?.get(STORE_URL)
}

/// Returns true if a part of the configuration works only with Redis.
fn needs_redis(root: &YamlNode) -> bool {
    let mut sets = guards(root).iter().filter_map(|guard| guard.get("redis"));
    root.get("addresses").is_some() || sets.any(|set| set.get("url").is_none())
}

/// Returns true if the URL contains a password already.
fn is_filled(root: &YamlNode, environment: &dyn Environment) -> bool {
    store_url(root).is_some_and(|node| match &node.kind {
        NodeKind::List(items) => items
            .iter()
            .any(|item| has_password(&text(item, environment))),
        _ => has_password(&text(node, environment)),
    })
}
