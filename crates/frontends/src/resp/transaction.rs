//! `MULTI`, `EXEC`, `DISCARD`: commands that are queued, and run one after the other.
//!
//! A transaction is not atomic: it consumes nothing before `EXEC`, and then runs its commands in order,
//! each as if it had been sent alone. Commands of other connections may run in between.

use super::check;
use super::command::CommandKind;
use super::host::{Flow, RespHost};
use super::parse::RespCommand;
use super::throttle::ThrottleCall;
use tidegate::Store;

const ABORTED: &str = "EXECABORT Transaction discarded because of previous errors.";

const NO_WATCH: &str = "ERR WATCH is not supported: a transaction cannot depend on keys that other \
    clients change";

impl<S: Store> RespHost<S> {
    pub(super) fn multi(&mut self) {
        if self.session.transaction.is_some() {
            return self.replies.error("ERR MULTI calls can not be nested");
        }
        self.session.transaction = Some(Box::default());
        self.replies.simple("OK");
    }

    /// Starts the reply; the commands that run next complete it.
    pub(super) fn exec(&mut self) -> Flow {
        match &self.session.transaction {
            Some(queue) if !queue.is_spoiled() => {
                self.replies.array(queue.len());
                return Flow::Run;
            }
            Some(_) => self.replies.error(ABORTED),
            None => self.replies.error("ERR EXEC without MULTI"),
        }
        self.session.transaction = None;
        Flow::GoOn
    }

    pub(super) fn discard(&mut self) {
        match self.session.transaction.take() {
            Some(_) => self.replies.simple("OK"),
            None => self.replies.error("ERR DISCARD without MULTI"),
        }
    }

    /// Refuses to watch: `OK` would promise that `EXEC` fails once a key has changed.
    pub(super) fn watch(&mut self) {
        self.replies.error(match self.session.transaction {
            Some(_) => "ERR WATCH inside MULTI is not allowed",
            None => NO_WATCH,
        });
    }

    /// Queues a command for `EXEC`. Rejects invalid checks, so that the commands before them consume
    /// nothing.
    pub(super) fn enqueue(&mut self, kind: CommandKind, command: RespCommand<'_>) -> Flow {
        let valid = match kind {
            CommandKind::Throttle => ThrottleCall::read(command, &mut self.session.quotas)
                .map(|_| ())
                .map_err(|wrong| wrong.to_string()),
            CommandKind::Check => check::read(command).map(|_| ()),
            _ => Ok(()),
        };
        let queued = valid.and_then(|()| match &mut self.session.transaction {
            Some(queue) if !queue.is_spoiled() => {
                queue.push(command).map_err(|full| full.to_string())
            }
            _ => Ok(()),
        });
        match queued {
            Ok(()) => self.replies.simple("QUEUED"),
            Err(message) => return self.reject(kind, message),
        }
        Flow::GoOn
    }

    /// Replies with an error to a command that is not executed. An open transaction fails.
    pub(super) fn reject(&mut self, kind: CommandKind, message: impl AsRef<str>) -> Flow {
        let message = message.as_ref();
        if kind == CommandKind::Exec {
            self.session.transaction = None;
            let reason = message.strip_prefix("ERR ").unwrap_or(message);
            let message = format!("EXECABORT Transaction discarded because of: {reason}");
            self.replies.error(message);
        } else {
            self.spoil();
            self.replies.error(message);
        }
        Flow::GoOn
    }

    /// Makes an open transaction fail at `EXEC`.
    pub(super) fn spoil(&mut self) {
        if let Some(queue) = &mut self.session.transaction {
            queue.spoil();
        }
    }
}
