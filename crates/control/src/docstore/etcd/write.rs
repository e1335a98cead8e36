//! Changes to the keys of etcd: one transaction each, and never sent twice.

use super::pairs::highest;
use super::response::{EtcdError, decoded, number, parse};
use super::{COUNT, EtcdDocumentStore};
use crate::docstore::{DocumentChange, Revision, WriteError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tidegate_config::compose::digest;

impl EtcdDocumentStore {
    pub(super) async fn change(
        &self,
        expected: &Revision,
        changes: &[DocumentChange],
    ) -> Result<Revision, WriteError> {
        let mark = mark(expected, changes);
        let asked = self.transaction(expected, changes, &mark);
        let mut why = "there are no members".to_owned();
        let members = &self.members;
        for mut turn in members.turns() {
            match members.call_one(turn.member, |it| &it.txn, &asked).await {
                Ok(answer) => {
                    turn.answered();
                    let answer = parse(&answer).map_err(WriteError::Doubtful)?;
                    return Self::changed_to(expected, changes, &answer);
                }
                // Nothing was sent, so another member may be tried.
                Err(EtcdError::Unsent(error)) => why = error,
                Err(EtcdError::Refused(error)) => {
                    turn.answered();
                    return Err(WriteError::Away(error));
                }
                Err(EtcdError::Lost(error)) => {
                    // Another member is queried for the result.
                    drop(turn);
                    return self.look_back(&mark, error).await;
                }
            }
        }
        Err(WriteError::Away(why))
    }

    /// Returns the transaction that makes all of these changes, or none.
    fn transaction(&self, expected: &Revision, changes: &[DocumentChange], mark: &str) -> Value {
        // No key below the prefix may have a higher revision than the one seen: neither the count, which
        // every change by Tidegate writes, nor a key that was changed by hand.
        let (seen, _) = parts(expected);
        let mut compare = vec![json!({
            "key": self.key(""), "range_end": self.end(),
            "target": "MOD", "result": "LESS", "mod_revision": seen.saturating_add(1).to_string(),
        })];
        let mut success = Vec::new();
        for change in changes {
            let key = self.key(&change.key);
            success.push(match &change.text {
                Some(text) => {
                    let value = STANDARD.encode(text);
                    json!({ "request_put": { "key": key, "value": value, "prev_kv": true } })
                }
                None => {
                    // The key exists, unless it was removed concurrently.
                    compare.push(json!({
                        "key": key, "target": "CREATE", "result": "GREATER", "create_revision": "0",
                    }));
                    json!({ "request_delete_range": { "key": key } })
                }
            });
        }
        let count = json!({ "key": self.key(COUNT), "value": STANDARD.encode(mark) });
        success.push(json!({ "request_put": count }));
        // Part of the same transaction, so that the result is the version that this change made.
        success.push(json!({ "request_range": self.latest() }));
        json!({ "compare": compare, "success": success })
    }

    /// Returns the version that a change made.
    fn changed_to(
        expected: &Revision,
        changes: &[DocumentChange],
        answer: &Value,
    ) -> Result<Revision, WriteError> {
        if answer.get("succeeded").and_then(Value::as_bool) != Some(true) {
            return Err(WriteError::Conflict);
        }
        let responses = answer.get("responses").and_then(Value::as_array);
        let range = responses.and_then(|it| it.last()?.get("response_range"));
        let silent = || WriteError::Doubtful("etcd returned no version".to_owned());
        let range = range.ok_or_else(silent)?;
        let revision = highest(range);
        // The number of keys seen, adjusted by these changes. If a key was removed by hand meanwhile,
        // which changes no revision, there are fewer: then this version matches nothing, and everything
        // is read again.
        let (_, mut count) = parts(expected);
        for (change, response) in changes.iter().zip(responses.into_iter().flatten()) {
            let put = response.get("response_put");
            match &change.text {
                None => count = count.saturating_sub(1),
                Some(_) if put.is_none_or(|put| put.get("prev_kv").is_none()) => {
                    count = count.saturating_add(1);
                }
                Some(_) => {}
            }
        }
        Ok(Revision(format!("{revision}-{count}")))
    }

    /// Checks whether a change was made whose response was lost: the change is not sent twice.
    async fn look_back(&self, mark: &str, why: String) -> Result<Revision, WriteError> {
        let asked = json!({ "key": self.key(COUNT) });
        let unknown = |_| {
            let message = format!("it is not known whether it was changed: {why}");
            WriteError::Doubtful(message)
        };
        let until = self.members.until();
        let answer = self.members.call(|it| &it.range, &asked, until).await;
        let answer = answer.and_then(|it| parse(&it)).map_err(unknown)?;
        let pairs = answer.get("kvs").and_then(Value::as_array);
        let pair = pairs.and_then(|it| it.first());
        match decoded(pair.and_then(|it| it.get("value"))) {
            // The number of texts is not known here, so everything is read again.
            Ok(there) if there == mark => {
                let revision = number(pair.and_then(|it| it.get("mod_revision")));
                Ok(Revision(format!("{revision}-?")))
            }
            // The change may still be made later.
            _ => Err(unknown(String::new())),
        }
    }
}

/// Returns the mark by which a change can be recognized: the same changes from the same version have the
/// same mark.
fn mark(expected: &Revision, changes: &[DocumentChange]) -> String {
    digest(&format!("{expected} {changes:?}"))
}

/// Returns the highest revision of a version, and its number of texts.
fn parts(version: &Revision) -> (u64, u64) {
    let (revision, count) = version.0.split_once('-').unwrap_or((&version.0, "0"));
    let number = |text: &str| text.parse().unwrap_or_default();
    (number(revision), number(count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docstore::etcd::pairs::EtcdEntries;

    fn pair(name: &str, revision: u64) -> Value {
        let key = STANDARD.encode(format!("/t/{name}"));
        json!({ "key": key, "value": "", "mod_revision": revision.to_string() })
    }

    #[test]
    fn a_change_next_to_a_deleted_key_has_a_new_version() {
        let change = |name: &str, text: Option<&str>| DocumentChange {
            key: format!("policy/{name}"),
            text: text.map(str::to_owned),
        };
        let changes = [
            change("api", Some("{}")),
            change("new", Some("{}")),
            change("old", None),
        ];
        let responses = |kvs: Vec<Value>| {
            let answer = json!({ "succeeded": true, "responses": [
                { "response_put": { "prev_kv": pair("policy/api", 9) } },
                { "response_put": {} },
                { "response_delete_range": { "deleted": "1" } },
                { "response_put": {} },
                { "response_range": { "kvs": kvs } },
            ] });
            let seen = Revision("10-3".to_owned());
            EtcdDocumentStore::changed_to(&seen, &changes, &answer)
                .unwrap()
                .0
        };
        let mut kvs = vec![
            pair("policy/api", 12),
            pair("policy/new", 12),
            pair("policy/other", 3),
            pair(COUNT, 12),
        ];
        assert_eq!(responses(kvs.clone()), "12-3", "as a load tells it");
        kvs.remove(2);
        let there = EtcdEntries::read("/t/", &json!({ "kvs": kvs.clone() }));
        let there = there.unwrap().version;
        assert_eq!(there, "12-2");
        assert_ne!(responses(kvs), there, "so all of it is read again");
    }
}
