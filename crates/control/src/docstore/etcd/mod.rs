//! Keys of etcd with a text in each, by its JSON gateway.
//!
//! `PREFIX` followed by a name is the key of a text. The version consists of the highest revision among
//! the keys and their number: a changed key has a higher revision, and a removed one leaves fewer. The
//! version is read first, and the texts only if it differs from the one seen.
//!
//! | module | what it is |
//! |---|---|
//! | this one | reading, and notifications of changes |
//! | `members` | the members to try, and their timeouts |
//! | `write` | changes |
//! | `pairs` | the texts and the version in a response |
//! | `response` | requests to a member, and its responses |

mod members;
mod pairs;
mod response;
mod write;

use super::{DocumentChange, DocumentSnapshot, DocumentStore, Revision, SourceError, WriteError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use members::{AnswerDeadline, EtcdMembers};
use pairs::{EtcdEntries, revision, version_of};
use response::{headers, parse};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_net::tasks::blocking;
use tidegate_policy::documents::EtcdSource;
use tidegate_proxy::http_fetch::HttpFetch;
use tokio::time::{sleep, timeout};

/// The key below the prefix that every change writes: a reader that has seen it has seen all earlier
/// changes.
const COUNT: &str = "version";

/// The delay before a failed watch is started again.
const PAUSE: Duration = Duration::from_secs(1);

/// Keys of etcd.
#[derive(Debug)]
pub(super) struct EtcdDocumentStore {
    prefix: String,
    members: EtcdMembers,
    /// The revision up to which everything has been read.
    read_to: AtomicU64,
}

impl EtcdDocumentStore {
    pub(super) fn new(etcd: &EtcdSource, time_max: Duration) -> Result<Self, String> {
        Ok(Self {
            prefix: etcd.prefix.clone(),
            members: EtcdMembers::new(etcd, time_max)?,
            read_to: AtomicU64::new(0),
        })
    }

    /// Returns the key of `name` below the prefix, encoded for the gateway.
    fn key(&self, name: &str) -> String {
        STANDARD.encode(format!("{}{name}", self.prefix))
    }

    async fn ask(&self, seen: Option<&Revision>) -> Result<Option<DocumentSnapshot>, SourceError> {
        let until = self.members.until();
        let (version, revision) = self.look(until).await.map_err(SourceError)?;
        if seen.is_some_and(|seen| seen.0 == version) {
            self.read_to.store(revision, Relaxed);
            return Ok(None);
        }
        let asked = json!({ "key": self.key(""), "range_end": self.end() });
        let answer = self
            .members
            .call(|it| &it.range, &asked, until.known())
            .await
            .map_err(SourceError)?;
        let prefix = self.prefix.clone();
        // There may be megabytes of it.
        let read = blocking(move || EtcdEntries::read(&prefix, &parse(&answer)?)).await;
        let read = read.unwrap_or_else(|| Err("the read did not finish".to_owned()));
        let pairs = read.map_err(SourceError)?;
        self.read_to.store(pairs.revision, Relaxed);
        DocumentSnapshot::new(&pairs.version, pairs.texts, seen).map_err(|_| {
            let prefix = &self.prefix;
            SourceError(format!("all keys below `{prefix}` are missing"))
        })
    }

    /// Reads the version of the keys, and etcd's revision at that time.
    async fn look(&self, until: AnswerDeadline) -> Result<(String, u64), String> {
        // Both in one transaction, so that they are consistent.
        let count = json!({ "key": self.key(COUNT), "keys_only": true });
        let asked = json!({ "success": [
            { "request_range": self.latest() }, { "request_range": count },
        ] });
        let answer = self.members.call(|it| &it.txn, &asked, until).await?;
        let answer = parse(&answer)?;
        let version = version_of(&answer).ok_or("etcd returned no version")?;
        Ok((version, revision(&answer)))
    }

    /// Returns the request for the key that was changed last, and for the number of keys.
    fn latest(&self) -> Value {
        json!({
            "key": self.key(""), "range_end": self.end(), "limit": 1,
            "sort_order": "DESCEND", "sort_target": "MOD", "keys_only": true,
        })
    }

    /// Returns the first key after those with the prefix.
    fn end(&self) -> String {
        let mut end = self.prefix.clone().into_bytes();
        while let Some(last) = end.pop() {
            if let Some(next) = last.checked_add(1) {
                end.push(next);
                return STANDARD.encode(end);
            }
        }
        // All keys.
        STANDARD.encode([0])
    }

    /// Waits until a member reports a change.
    async fn wait_for_change(&self) {
        // Watch from the revision after the last read, so that no change is missed.
        let from = self.read_to.load(Relaxed).saturating_add(1).to_string();
        let asked = json!({
            "create_request": {
                "key": self.key(""), "range_end": self.end(), "start_revision": from,
            },
        });
        loop {
            let token = self.members.token();
            for (_, member) in self.members.in_order() {
                if watched(&member.watch, &asked, token.as_deref()).await {
                    return;
                }
            }
            sleep(PAUSE).await;
        }
    }
}

/// Returns true if a change was reported.
async fn watched(errand: &HttpFetch, asked: &Value, token: Option<&str>) -> bool {
    let Ok(headers) = headers(token) else {
        return false;
    };
    let body = Bytes::from(asked.to_string());
    // The first line confirms the watch; a later one has events.
    let wanted = |line: &[u8]| memchr::memmem::find(line, b"\"events\"").is_some();
    errand.listen(headers, body, wanted).await.unwrap_or(false)
}

impl DocumentStore for EtcdDocumentStore {
    fn read<'a>(
        &'a self,
        seen: Option<&'a Revision>,
    ) -> BoxFuture<'a, Result<Option<DocumentSnapshot>, SourceError>> {
        Box::pin(self.ask(seen))
    }

    fn changed(&self, most: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Either is reason enough to read again.
            timeout(most, self.wait_for_change()).await.ok();
        })
    }

    fn write<'a>(
        &'a self,
        expected: &'a Revision,
        changes: &'a [DocumentChange],
    ) -> BoxFuture<'a, Result<Revision, WriteError>> {
        Box::pin(self.change(expected, changes))
    }
}
