//! Who changed what, when, and how it was before: to the log, and where it is configured to a file and
//! to a stream in Redis.

use super::caller::Caller;
use super::respond::AdminProblem;
use crate::decider::Decider;
use crate::tasks;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use tidegate::{AnyStore, Clock, SystemClock, append_file};
use tidegate_policy::admin::Audit;
use tidegate_policy::mask;
use tidegate_redis::{NodeChoice, protocol};
use tokio::sync::Mutex;
use tracing::{error, info};

/// The most bytes of what was before, or is after, that are written down.
const STATE_MAX: usize = 64 << 10;

/// A change, as far as it can be told: what it was made to, and how that was before and is after.
#[derive(Debug)]
pub(super) struct AuditedChange {
    /// Such as `policy/api`.
    pub(super) target: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// What came of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuditOutcome {
    Done,
    /// It is written where it was to be, and not served: it was refused after all.
    RefusedAfterWriting,
    /// Some of it is served, and some was refused.
    PartlyRefused,
    /// Whoever was to do it did not answer, and may have done it.
    Unknown,
    /// The caller may not do that. It was not done.
    Forbidden,
}

/// What is written down: who did what, and what came of it.
#[derive(Debug)]
pub(super) struct AuditEntry<'a> {
    pub(super) caller: &'a Caller,
    pub(super) peer: IpAddr,
    /// The id of the route.
    pub(super) action: &'static str,
    pub(super) outcome: AuditOutcome,
    pub(super) change: AuditedChange,
}

/// Where changes are written down.
#[derive(Debug, Default)]
pub(super) struct AuditLog {
    /// One line at a time, so that none is in the middle of another.
    turn: Mutex<()>,
}

/// A page that is open: whoever is about to change something knows that it can be written down.
#[derive(Debug)]
pub(super) struct AuditPage {
    file: Option<File>,
}

impl AuditLog {
    /// Opens it; a refusal where that cannot be done, for then nothing is to be changed.
    pub(super) async fn open(&self, audit: &Audit) -> Result<AuditPage, AdminProblem> {
        let Some(path) = audit.file.clone() else {
            return Ok(AuditPage { file: None });
        };
        let name = path.clone();
        let opened = tasks::blocking(move || append_file(Path::new(&path)));
        match opened.await {
            Some(Ok(file)) => Ok(AuditPage { file: Some(file) }),
            Some(Err(error)) => {
                error!(file = name, %error, "the audit cannot be written, so nothing is changed");
                Err(AdminProblem::away(
                    "the audit cannot be written: see the log",
                ))
            }
            None => Err(AdminProblem::failed()),
        }
    }

    /// Writes down what has happened: where it cannot be written, the log and a metric say so.
    pub(super) async fn write(
        &self,
        page: AuditPage,
        audit: &Audit,
        decider: &Decider,
        mut entry: AuditEntry<'_>,
    ) {
        let change = &mut entry.change;
        change.before = bounded(change.before.take());
        change.after = bounded(change.after.take());
        let text = line(&entry).to_string();
        info!(
            who = %entry.caller.name,
            peer = %entry.peer,
            action = entry.action,
            outcome = entry.outcome.as_str(),
            what = entry.change.target,
            before = %entry.change.before,
            after = %entry.change.after,
            "{}", entry.outcome.message()
        );
        if let Some(mut file) = page.file {
            let _turn = self.turn.lock().await;
            let whole = format!("{text}\n");
            let written = tasks::blocking(move || file.write_all(whole.as_bytes()));
            let why = match written.await {
                Some(Ok(())) => None,
                Some(Err(error)) => Some(error.to_string()),
                None => Some("writing came to no end".to_owned()),
            };
            note(decider, "file", why);
        }
        if let Some(stream) = &audit.stream {
            note(
                decider,
                "stream",
                add(decider, stream, audit, &text).await.err(),
            );
        }
    }
}

fn note(decider: &Decider, place: &str, why: Option<String>) {
    if let Some(why) = why {
        decider.metrics().admin.count_unwritten();
        error!(place, why, "a change was not written down");
    }
}

/// Adds a line to a stream, which forgets its oldest.
async fn add(decider: &Decider, stream: &str, audit: &Audit, text: &str) -> Result<(), String> {
    let AnyStore::Redis(store) = decider.limiter().store() else {
        return Err("the store is no Redis".to_owned());
    };
    let max = audit.max.unwrap_or(Audit::MAX);
    let mut command = protocol::cmd("XADD");
    command.arg(stream).arg("MAXLEN").arg("~").arg(max);
    command.arg("*").arg("change").arg(text);
    let connection = store.connection();
    let added = connection.command(NodeChoice::Key(stream.as_bytes()), &command);
    added.await.map(drop).map_err(|error| error.to_string())
}

impl AuditOutcome {
    fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::RefusedAfterWriting => "refused_after_writing",
            Self::PartlyRefused => "partly_refused",
            Self::Unknown => "unknown",
            Self::Forbidden => "forbidden",
        }
    }

    fn message(self) -> &'static str {
        match self {
            Self::Done => "changed by an administrator",
            Self::RefusedAfterWriting | Self::PartlyRefused | Self::Unknown => {
                "changed by an administrator, and not as it was meant"
            }
            Self::Forbidden => "an administrator tried what is not theirs to do",
        }
    }
}

fn line(entry: &AuditEntry<'_>) -> Value {
    json!({
        "at_ms": SystemClock::new().now().as_micros() / 1_000,
        "who": &*entry.caller.name,
        "role": entry.caller.role.as_str(),
        "peer": entry.peer.to_string(),
        "action": entry.action,
        "outcome": entry.outcome.as_str(),
        "target": entry.change.target,
        "before": entry.change.before,
        "after": entry.change.after,
    })
}

/// What can be shown, and is not too long to be.
fn bounded(mut state: Value) -> Value {
    mask::hide(&mut state);
    let bytes = state.to_string().len();
    if bytes > STATE_MAX {
        return json!({ "omitted_bytes": bytes });
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_told_by_its_length_and_secrets_not_at_all() {
        let long = json!({ "list": "x".repeat(STATE_MAX) });
        assert!(bounded(long)["omitted_bytes"].as_u64().unwrap() > 64 << 10);
        assert_eq!(bounded(json!({ "token": "x" })), json!({ "token": "***" }));
        assert_eq!(bounded(Value::Null), Value::Null);
    }
}
