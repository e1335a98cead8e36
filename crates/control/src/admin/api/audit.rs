//! The audit log: the caller, the time, the change, and the state before it. Written to the log and, if
//! configured, to a file and to a Redis stream.

use super::caller::Caller;
use super::problem::AdminProblem;
use serde::Serialize;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::net::IpAddr;
use std::path::Path;
use tidegate::{Clock, SystemClock};
use tidegate_config::admin::Audit;
use tidegate_files::append_file;
use tidegate_frontends::decider::Decider;
use tidegate_net::tasks;
use tidegate_policy::redact;
use tidegate_redis_client::{NodeChoice, protocol};
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

/// An audit entry as it is written.
#[derive(Debug, Serialize)]
struct AuditLine<'a> {
    at_ms: u64,
    who: &'a str,
    role: &'static str,
    peer: IpAddr,
    action: &'static str,
    outcome: &'static str,
    target: &'a str,
    before: &'a Value,
    after: &'a Value,
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
                error!(event = "audit_unavailable", file = name, %error, "audit log not writable; change rejected");
                Err(AdminProblem::unavailable(
                    "the audit log is not writable: see the log",
                ))
            }
            None => Err(AdminProblem::internal()),
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
        // Serializing texts, numbers and JSON cannot fail.
        let text = serde_json::to_string(&AuditLine::of(&entry)).unwrap_or_default();
        info!(
            event = "admin_change",
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
                None => Some("the write did not finish".to_owned()),
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
        error!(
            event = "audit_failed",
            place,
            error = why,
            "change not recorded in the audit log"
        );
    }
}

/// Adds an entry to a stream, which trims its oldest ones.
async fn add(decider: &Decider, stream: &str, audit: &Audit, text: &str) -> Result<(), String> {
    let store = decider.limiter().store().redis();
    let store = store.ok_or_else(|| "the store is not Redis".to_owned())?;
    let mut command = protocol::cmd("XADD");
    command.arg(stream).arg("MAXLEN").arg("~").arg(audit.max);
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
            Self::Done => "admin change",
            Self::RefusedAfterWriting | Self::PartlyRefused | Self::Unknown => {
                "admin change, not applied as requested"
            }
            Self::Forbidden => "admin change rejected: the role does not allow it",
        }
    }
}

impl<'a> AuditLine<'a> {
    fn of(entry: &'a AuditEntry<'_>) -> Self {
        Self {
            at_ms: SystemClock::new().now().as_micros() / 1_000,
            who: &entry.caller.name,
            role: entry.caller.role.as_str(),
            peer: entry.peer,
            action: entry.action,
            outcome: entry.outcome.as_str(),
            target: &entry.change.target,
            before: &entry.change.before,
            after: &entry.change.after,
        }
    }
}

/// Returns a state with secrets masked, or a placeholder if it is too long.
fn bounded(mut state: Value) -> Value {
    redact::hide(&mut state);
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
    fn long_values_are_logged_by_length_and_secrets_never() {
        let long = json!({ "list": "x".repeat(STATE_MAX) });
        assert!(bounded(long)["omitted_bytes"].as_u64().unwrap() > 64 << 10);
        assert_eq!(bounded(json!({ "token": "x" })), json!({ "token": "***" }));
        assert_eq!(bounded(Value::Null), Value::Null);
    }
}
