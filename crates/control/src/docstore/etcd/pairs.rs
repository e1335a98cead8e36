//! The texts and the version of etcd keys, from responses.

use super::COUNT;
use super::response::{decoded, number};
use serde_json::Value;

/// All keys.
#[derive(Debug)]
pub(super) struct EtcdEntries {
    /// The version of the keys.
    pub(super) version: String,
    /// The revision of etcd at which they were read.
    pub(super) revision: u64,
    pub(super) texts: Vec<(String, String)>,
}

impl EtcdEntries {
    /// Reads a response with all keys that begin with `prefix`. Takes long if it is long.
    pub(super) fn read(prefix: &str, answer: &Value) -> Result<Self, String> {
        let mut texts = Vec::new();
        for pair in pairs(answer) {
            let key = decoded(pair.get("key"))?;
            let value = decoded(pair.get("value"))?;
            let name = key.strip_prefix(prefix).unwrap_or(&key);
            if name != COUNT {
                texts.push((name.to_owned(), value));
            }
        }
        let count = u64::try_from(texts.len()).unwrap_or(u64::MAX);
        Ok(Self {
            version: version(highest(answer), count),
            revision: revision(answer),
            texts,
        })
    }
}

/// Returns the version in a response to a request for the latest key and for the count; `None` if it is
/// missing.
pub(super) fn version_of(answer: &Value) -> Option<String> {
    let responses = answer.get("responses").and_then(Value::as_array)?;
    let mut ranges = responses.iter().map(|it| it.get("response_range"));
    let (latest, count) = (ranges.next()??, ranges.next()??);
    let among = |range: &Value| number(range.get("count"));
    let texts = among(latest).saturating_sub(among(count));
    Some(version(highest(latest), texts))
}

fn version(highest: u64, texts: u64) -> String {
    match highest {
        0 => "0".to_owned(),
        _ => format!("{highest}-{texts}"),
    }
}

/// Returns the highest revision among the keys of a response.
pub(super) fn highest(answer: &Value) -> u64 {
    let revisions = pairs(answer).map(|it| number(it.get("mod_revision")));
    revisions.max().unwrap_or_default()
}

/// Returns the revision of etcd at which it responded.
pub(super) fn revision(answer: &Value) -> u64 {
    number(answer.get("header").and_then(|it| it.get("revision")))
}

fn pairs(answer: &Value) -> impl Iterator<Item = &Value> {
    let pairs = answer.get("kvs").and_then(Value::as_array);
    pairs.into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::json;

    #[test]
    fn a_version_check_matches_a_load_with_and_without_a_counter() {
        let key = |name: &str| STANDARD.encode(format!("/t/{name}"));
        let pair = |name: &str, at: &str| json!({ "key": key(name), "mod_revision": at });
        let texts = [pair("policy/b", "9"), pair("policy/a", "4")];
        let counted = [pair(COUNT, "9"), texts[0].clone(), texts[1].clone()];
        for (kvs, has_count, expected) in [
            (&texts[..], false, "9-2"),
            (&counted[..], true, "9-2"),
            (&counted[..1], true, "9-0"),
            (&[], false, "0"),
        ] {
            let all = EtcdEntries::read("/t/", &json!({ "kvs": kvs })).unwrap();
            // The gateway omits empty values and zeros.
            let mut count = json!({});
            if has_count {
                count = json!({ "count": "1" });
            }
            let mut latest = json!({});
            if let Some(first) = kvs.first() {
                latest = json!({ "kvs": [first], "count": kvs.len().to_string() });
            }
            let look = json!({ "responses": [
                { "response_range": latest }, { "response_range": count },
            ] });
            assert_eq!(version_of(&look).as_deref(), Some(expected));
            assert_eq!(all.version, expected);
        }
        assert_eq!(version_of(&json!({ "responses": [{}] })), None);
    }
}
