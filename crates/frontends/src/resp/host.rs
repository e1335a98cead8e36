//! Executes commands, one after the other.

use super::RespFrontend;
use super::batch::{CommandBatch, OwnedQuestion};
use super::command::{self, CommandKind, CommandSpec};
use super::metrics::RespTally;
use super::parse::RespCommand;
use super::reply::Replies;
use super::session::RespSession;
use super::throttle::{self, ThrottleCall};
use super::{check, connection, introspect, keys};
use futures_util::FutureExt;
use std::sync::Arc;
use tidegate::{Rules, Store, Throttle};

/// The maximum number of bytes of a command's name, and of all its arguments, that an error repeats.
const REPEATED_MAX: usize = 128;

/// The action after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    /// Continue with the next command.
    GoOn,
    /// Run the commands of the transaction, then continue.
    Run,
    Close,
}

/// The executing side of a conversation.
#[derive(Debug)]
pub(super) struct RespHost<S> {
    pub(super) frontend: Arc<RespFrontend<S>>,
    pub(super) session: RespSession,
    pub(super) replies: Replies,
    pub(super) batch: CommandBatch<S>,
    pub(super) tally: RespTally,
    /// The rules for all decisions of a batch, from the first to the last.
    pub(super) rules: Option<Arc<Rules>>,
}

impl<S: Store> RespHost<S> {
    /// Executes a command, or adds it to the batch if it has to wait for the store.
    #[inline]
    pub(super) fn execute(&mut self, command: RespCommand<'_>) -> Flow {
        let Some(spec) = command::find(command.word(0)) else {
            return self.unknown(command);
        };
        self.tally.command(Some(spec.kind));
        let session = &self.session;
        if spec.kind == CommandKind::Throttle && session.is_known && session.transaction.is_none() {
            return self.throttle(command);
        }
        self.execute_unusual(spec, command)
    }

    /// Executes a command of a transaction, which was counted when it was queued.
    pub(super) fn execute_queued(&mut self, command: RespCommand<'_>) -> Flow {
        match command::find(command.word(0)) {
            Some(spec) => self.execute_unusual(spec, command),
            None => self.unknown(command),
        }
    }

    fn execute_unusual(&mut self, spec: &CommandSpec, command: RespCommand<'_>) -> Flow {
        if let Err(message) = check_form(spec, command) {
            return self.reject(spec.kind, message);
        }
        if !self.session.is_known && !spec.is_public {
            self.frontend.threshold.metrics.count_bad(401);
            return self.reject(spec.kind, "NOAUTH Authentication required.");
        }
        if self.session.transaction.is_some() && !spec.kind.runs_in_transaction() {
            return self.enqueue(spec.kind, command);
        }
        match spec.kind {
            CommandKind::Throttle => return self.throttle(command),
            CommandKind::Check => return self.check(command),
            CommandKind::Exec => return self.exec(),
            CommandKind::Quit => {
                self.replies.simple("OK");
                return Flow::Close;
            }
            CommandKind::Ping => connection::ping(command, &mut self.replies),
            CommandKind::Echo => self.replies.bulk(command.word(1)),
            CommandKind::Select => connection::select(command, &mut self.replies),
            CommandKind::Hello => self.hello(command),
            CommandKind::Auth => self.auth(command),
            CommandKind::Client => self.client(command),
            CommandKind::Reset => self.reset(),
            CommandKind::Multi => self.multi(),
            CommandKind::Discard => self.discard(),
            CommandKind::Watch => self.watch(),
            CommandKind::Unwatch => self.replies.simple("OK"),
            kind @ (CommandKind::Del
            | CommandKind::Unlink
            | CommandKind::Exists
            | CommandKind::Type
            | CommandKind::Ttl
            | CommandKind::Pttl) => return self.keys(kind, command),
            kind @ (CommandKind::Acquire | CommandKind::Renew | CommandKind::Release) => {
                return self.permits(kind, command);
            }
            CommandKind::Command => introspect::command(command, &mut self.replies),
            CommandKind::Config => introspect::config(command, &mut self.replies),
            CommandKind::Info => introspect::info(command, &mut self.replies),
        }
        Flow::GoOn
    }

    #[inline]
    fn throttle(&mut self, command: RespCommand<'_>) -> Flow {
        let call = match ThrottleCall::read(command, &mut self.session.quotas) {
            Ok(call) => call,
            Err(wrong) => {
                self.replies.error(wrong.to_string());
                return Flow::GoOn;
            }
        };
        let Some(rules) = self.frontend.rules(&mut self.rules) else {
            return Flow::Close;
        };
        let ask = Throttle {
            key: call.key,
            quota: call.quota,
            quantity: call.quantity,
        };
        match self.frontend.decider.throttle_at_once(rules, &ask) {
            Some(throttled) => {
                self.tally.throttled(Some(&throttled));
                throttle::write(&throttled, call.quota.capacity(), &mut self.replies);
            }
            None => self
                .batch
                .push(OwnedQuestion::throttle(&ask), &self.replies),
        }
        Flow::GoOn
    }

    fn check(&mut self, command: RespCommand<'_>) -> Flow {
        let question = match check::read(command) {
            Ok(question) => question,
            Err(message) => {
                self.replies.error(message);
                return Flow::GoOn;
            }
        };
        let Some(rules) = self.frontend.rules(&mut self.rules) else {
            return Flow::Close;
        };
        let decider = &self.frontend.decider;
        let asked = (&question, !self.batch.is_empty());
        if let Some(check) = check::ask(decider, rules, asked, &mut self.replies) {
            let asked = OwnedQuestion::Check(Box::new(check));
            self.batch.push(asked, &self.replies);
        }
        Flow::GoOn
    }

    /// Executes a command about keys of `CL.THROTTLE`.
    fn keys(&mut self, kind: CommandKind, command: RespCommand<'_>) -> Flow {
        let Some(rules) = self.frontend.rules(&mut self.rules) else {
            return Flow::Close;
        };
        let decider = &self.frontend.decider;
        if decider.waits() {
            self.batch
                .push(OwnedQuestion::keys(kind, command), &self.replies);
            return Flow::GoOn;
        }
        // A store that does not wait is ready when first polled.
        if let Some(found) = keys::answer(decider, rules, (kind, command)).now_or_never() {
            keys::write(&found, &mut self.replies);
        }
        Flow::GoOn
    }

    /// Executes a command about requests in flight. It waits with the batch: few are sent, and an acquisition may
    /// have to wait for a limit.
    fn permits(&mut self, kind: CommandKind, command: RespCommand<'_>) -> Flow {
        if self.frontend.rules(&mut self.rules).is_none() {
            return Flow::Close;
        }
        self.batch
            .push(OwnedQuestion::permits(kind, command), &self.replies);
        Flow::GoOn
    }

    #[cold]
    fn unknown(&mut self, command: RespCommand<'_>) -> Flow {
        self.tally.command(None);
        let name = command.word(0);
        // A browser sends this on behalf of a foreign page, not of its user (cross-protocol scripting).
        if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
            self.frontend.threshold.metrics.count_bad(400);
            return Flow::Close;
        }
        let mut message = b"ERR unknown command '".to_vec();
        message.extend_from_slice(shortened(name, REPEATED_MAX));
        message.extend_from_slice(b"', with args beginning with: ");
        let mut room = REPEATED_MAX;
        for word in command.words().skip(1) {
            if room == 0 {
                break;
            }
            let word = shortened(word, room);
            message.push(b'\'');
            message.extend_from_slice(word);
            message.extend_from_slice(b"' ");
            // The quotes and the blank count as well.
            room = room.saturating_sub(word.len().saturating_add(3));
        }
        self.spoil();
        self.replies.error(message);
        Flow::GoOn
    }
}

/// Fails if a command has a wrong number of words, or an unknown subcommand.
fn check_form(spec: &CommandSpec, command: RespCommand<'_>) -> Result<(), String> {
    let wrong = |name: &str, of: &str| {
        Err(format!(
            "ERR wrong number of arguments for '{name}{of}' command"
        ))
    };
    if !spec.subcommands.is_empty() && command.len() > 1 {
        let Some(sub) = spec.subcommand(command.word(1)) else {
            let name = shortened(command.word(1), REPEATED_MAX);
            return Err(format!(
                "ERR unknown subcommand '{}'. Try {} HELP.",
                String::from_utf8_lossy(name),
                spec.name.to_uppercase()
            ));
        };
        if !command::fits(sub.arity, command.len()) {
            return wrong(spec.name, &format!("|{}", sub.name));
        }
    } else if !command::fits(spec.arity, command.len()) {
        return wrong(spec.name, "");
    }
    Ok(())
}

pub(super) fn shortened(word: &[u8], bytes_max: usize) -> &[u8] {
    word.get(..bytes_max).unwrap_or(word)
}
