//! Secrets in documents, hidden from those who look.

use serde_json::Value;

/// What a secret is replaced by.
pub(super) const HIDDEN: &str = "***";

/// Words in a name that mark its value as secret.
const TELLTALE: [&str; 9] = [
    "secret",
    "token",
    "passw",
    "authorization",
    "api-key",
    "api_key",
    "apikey",
    "cookie",
    "credential",
];

/// Hides what must not be seen.
pub(super) fn hide(document: &mut Value) {
    let lists_secrets = ["refuse", "exempt"].iter().any(|field| {
        let whose = document.get(field).and_then(Value::as_str);
        whose.is_some_and(is_secret)
    });
    if lists_secrets && let Some(list) = document.get_mut("list") {
        hide_all(list);
    }
    walk(document);
}

/// The same, of a copy.
pub(super) fn hidden(document: &Value) -> Value {
    let mut document = document.clone();
    hide(&mut document);
    document
}

/// Whether a name, of a field or of whose value is looked up, suggests a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    // `token_file: /run/secrets/x` names where it is, which is no secret.
    !name.ends_with("file") && TELLTALE.iter().any(|word| name.contains(word))
}

/// Whether any value is the mask, which somebody has sent back.
pub(super) fn is_masked(value: &Value) -> bool {
    match value {
        Value::String(text) => text == HIDDEN || text.contains("://***@"),
        Value::Array(items) => items.iter().any(is_masked),
        Value::Object(members) => members.values().any(is_masked),
        _ => false,
    }
}

fn walk(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(walk),
        Value::Object(members) => {
            for (name, member) in members {
                if is_secret(name) {
                    hide_all(member);
                } else {
                    walk(member);
                }
            }
        }
        Value::String(text) => {
            if let Some(without) = without_user(text) {
                *text = without;
            }
        }
        _ => {}
    }
}

fn hide_all(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(hide_all),
        Value::Object(members) => members.values_mut().for_each(hide_all),
        Value::Null => {}
        value => *value = Value::String(HIDDEN.to_owned()),
    }
}

/// A URL without who opens it.
fn without_user(text: &str) -> Option<String> {
    let (scheme, rest) = text.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    // A password may hold an `@` itself.
    let (_, host) = authority.rsplit_once('@')?;
    Some(format!("{scheme}://{HIDDEN}@{host}{path}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn secrets_are_hidden_and_nothing_else_is() {
        let mut guard = json!({
            "name": "keys", "refuse": "api-key", "list": ["hunter2", "hunter3"],
            "redis": { "url": "redis://ann:p@ss@host:1/2", "set": "S" },
            "headers": { "X-Api-Key": "hunter2", "Accept": "text/html" },
            "token_file": "/run/secrets/token", "password": 12,
        });
        hide(&mut guard);
        let expected = json!({
            "name": "keys", "refuse": "api-key", "list": ["***", "***"],
            "redis": { "url": "redis://***@host:1/2", "set": "S" },
            "headers": { "X-Api-Key": "***", "Accept": "text/html" },
            "token_file": "/run/secrets/token", "password": "***",
        });
        assert_eq!(guard, expected);
        let open = json!({ "name": "a", "refuse": "ip", "list": ["192.0.2.1"], "key": "api-key" });
        assert_eq!(hidden(&open), open);
    }

    #[test]
    fn a_mask_that_is_sent_back_is_noticed() {
        assert!(is_masked(&json!({ "list": ["a", "***"] })));
        assert!(is_masked(
            &json!({ "redis": { "url": "redis://***@host" } })
        ));
        assert!(!is_masked(&json!({ "list": ["*", "**"] })));
    }
}
