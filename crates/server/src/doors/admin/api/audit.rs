//! The audit log: the caller, the time, the change, and the state before it. Written to the log and, if
//! configured, to a file and to a Redis stream.

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

/// The maximum number of bytes of a before or after state to record.
const STATE_MAX: usize = 64 << 10;

/// A change to record: its target, and the states before and after.
#[derive(Debug)]
pub(super) struct AuditedChange {
    /// The target, such as `policy/api`.
    pub(super) target: String,
    pub(super) before: Value,
    pub(super) after: Value,
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AuditOutcome {
    Done,
    /// The change was written to its source and then rejected; it is not served.
    RefusedAfterWriting,
    /// A part of the change is served, and a part was rejected.
    PartlyRefused,
    /// The result is unknown: the backend did not answer, and may have made the change.
    Unknown,
    /// The caller's role does not allow the change. It was not made.
    Forbidden,
}

/// An audit entry: the caller, the action, and the outcome.
#[derive(Debug)]
pub(super) struct AuditEntry<'a> {
    pub(super) caller: &'a Caller,
    pub(super) peer: IpAddr,
    /// The id of the route.
    pub(super) action: &'static str,
    pub(super) outcome: AuditOutcome,
    pub(super) change: AuditedChange,
}

/// The audit log.
#[derive(Debug, Default)]
pub(super) struct AuditLog {
    /// Serializes writes, so that lines do not mix.
    turn: Mutex<()>,
}

/// An open audit log: proof, before a change is made, that it can be recorded.
#[derive(Debug)]
pub(super) struct AuditPage {
    file: Option<File>,
}

impl AuditLog {
    /// Opens the log. Fails if the file cannot be opened; then nothing may be changed.
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

    /// Records an entry. A failure to write it is logged and counted.
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

/// Adds an entry to a stream, which trims its oldest ones.
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

/// Returns a state with secrets masked, or a placeholder if it is too long.
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
