//! Hides secrets wherever a configuration is shown: in documents, in the audit log, and in the lines that
//! errors quote. One list defines for all of them which values are secrets.
//!
//! ```
//! use serde_json::json;
//! use tidegate_policy::redact;
//!
//! let mut route = json!({ "name": "shop", "request_headers": { "set": { "X-Key": "hunter2" } } });
//! redact::hide(&mut route);
//! assert_eq!(route["request_headers"]["set"]["X-Key"], redact::HIDDEN);
//! assert_eq!(route["name"], "shop");
//! ```

use crate::patterns::is_secret_name;
use serde_json::Value;

/// The replacement for a secret of any length.
pub const HIDDEN: &str = "***";

/// Words that mark the value of a key as secret if the key contains them.
pub const TELLTALE: [&str; 11] = [
    "secret",
    "secert",
    "token",
    "passw",
    "authorization",
    "api-key",
    "api_key",
    "apikey",
    "cookie",
    "credential",
    // The URL of a webhook is enough to post to it.
    "webhook",
];

/// The context of a value, which decides if it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaskScope {
    /// Shown, unless its own name marks it as secret.
    Plain,
    /// Below `request_headers` or `response_headers`, whose values may contain secrets.
    Headers,
    /// Hidden.
    Secret,
    /// Shown always; only for internal use.
    Open,
}

impl MaskScope {
    /// Returns the context of the value of `key`. `lists_secrets` is true in a map whose `list` holds
    /// secrets.
    #[must_use]
    pub fn key(self, key: &str, lists_secrets: bool) -> Self {
        match self {
            Self::Open | Self::Secret => self,
            Self::Headers if matches!(key, "set" | "add") => Self::Secret,
            _ if is_telltale(key) || (lists_secrets && key == "list") => Self::Secret,
            _ if key.ends_with("_headers") => Self::Headers,
            _ => Self::Plain,
        }
    }
}

/// Replaces all secrets in `document` with [`HIDDEN`].
///
/// ```
/// use serde_json::json;
/// use tidegate_policy::redact::{hide, is_masked};
///
/// let mut document = json!({ "name": "shop", "api_key": "hunter2" });
/// hide(&mut document);
/// assert_eq!(document, json!({ "name": "shop", "api_key": "***" }));
/// assert!(is_masked(&document), "it must not be written back");
/// ```
pub fn hide(document: &mut Value) {
    walk(document, MaskScope::Plain);
}

/// Returns a copy of `document` with all secrets hidden.
#[must_use]
pub fn hidden(document: &Value) -> Value {
    let mut document = document.clone();
    hide(&mut document);
    document
}

/// Returns true if any value in it is the mask, as in a document that a client read and sent back.
pub fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text == HIDDEN || text.contains("://***@"),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(members) => members.values().any(is_masked),
        _ => false,
    }
}

/// Returns true if the value of this key is always hidden.
pub(crate) fn is_telltale(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    // `token_file: /run/secrets/x` is the path of a secret, not a secret.
    !lower.ends_with("file") && TELLTALE.iter().any(|word| lower.contains(word))
}

/// Returns true if the setting with this path, such as `admin.tokens[0].token`, is secret.
pub fn is_secret_path(path: &str) -> bool {
    let keys = path.split(['.', '[']);
    let below = keys.fold(MaskScope::Plain, |below, key| below.key(key, false));
    below == MaskScope::Secret
}

/// Returns true if the values with this name are secrets. The name is that of a header, an attribute or a
/// part of a key, by which a list looks values up.
pub fn is_secret_subject(name: &str) -> bool {
    is_telltale(name) || is_secret_name(name)
}

/// Returns true if a map with these texts, such as a guard, has a `list` of secrets.
pub fn lists_secrets<'t>(text: impl Fn(&str) -> Option<&'t str>) -> bool {
    let mut subjects = ["deny", "allow"].into_iter().filter_map(text);
    subjects.any(is_secret_subject)
}

/// Returns the URL with its user and password hidden, or `None` if it has neither.
///
/// ```
/// use tidegate_policy::redact::without_user;
///
/// let shown = without_user("redis://:hunter2@127.0.0.1:6379/0");
/// assert_eq!(shown.as_deref(), Some("redis://***@127.0.0.1:6379/0"));
/// assert_eq!(without_user("redis://127.0.0.1:6379/0"), None);
/// ```
pub fn without_user(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    // A password may contain an `@`.
    let (_, host) = authority.rsplit_once('@')?;
    Some(format!("{scheme}://{HIDDEN}@{host}{path}"))
}

fn walk(value: &mut Value, below: MaskScope) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, below)),
        Value::Object(members) => {
            let lists_secrets = lists_secrets(|field| members.get(field)?.as_str());
            for (name, member) in members {
                walk(member, below.key(name, lists_secrets));
            }
        }
        Value::Null => {}
        value if below == MaskScope::Secret => *value = HIDDEN.into(),
        Value::String(text) => {
            if let Some(without) = without_user(text) {
                *text = without;
            }
        }
        Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_and_nothing_else_is() {
        let mut guard = json!({
            "name": "keys", "deny": "api-key", "list": ["hunter2", "hunter3"],
            "redis": { "url": "redis://ann:p@ss@host:1/2", "set": "S" },
            "headers": { "X-Api-Key": "hunter2", "Accept": "text/html" },
            "token_file": "/run/secrets/token", "password": 12,
        });
        hide(&mut guard);
        let expected = json!({
            "name": "keys", "deny": "api-key", "list": ["***", "***"],
            "redis": { "url": "redis://***@host:1/2", "set": "S" },
            "headers": { "X-Api-Key": "***", "Accept": "text/html" },
            "token_file": "/run/secrets/token", "password": "***",
        });
        assert_eq!(guard, expected);
        let open = json!({ "name": "a", "deny": "ip", "list": ["192.0.2.1"], "key": "api-key" });
        assert_eq!(hidden(&open), open);
    }

    #[test]
    fn route_headers_and_webhooks_were_logged_in_plain_text() {
        let route = json!({
            "name": "shop", "webhook": "https://example.com/hunter2",
            "request_headers": {
                "set": { "X-Internal-Key": "hunter2" }, "add": { "Via-Us": ["hunter2", 7] },
                "remove": ["X-Debug"],
            },
            "response_headers": { "set": { "X-A": "hunter2" } },
        });
        let expected = json!({
            "name": "shop", "webhook": "***",
            "request_headers": {
                "set": { "X-Internal-Key": "***" }, "add": { "Via-Us": ["***", "***"] },
                "remove": ["X-Debug"],
            },
            "response_headers": { "set": { "X-A": "***" } },
        });
        assert_eq!(hidden(&route), expected);
    }

    #[test]
    fn lists_of_secret_subjects_are_hidden() {
        for (subject, is_hidden) in [("header:x-session", true), ("user", false)] {
            let guard = json!({ "allow": subject, "list": ["hunter2"] });
            assert_eq!(hidden(&guard)["list"][0] == HIDDEN, is_hidden, "{subject}");
        }
    }

    #[test]
    fn a_mask_sent_as_a_value_is_detected() {
        assert!(is_masked(&json!({ "list": ["a", "***"] })));
        assert!(is_masked(
            &json!({ "redis": { "url": "redis://***@host" } })
        ));
        assert!(!is_masked(&json!({ "list": ["*", "**"] })));
    }
}
