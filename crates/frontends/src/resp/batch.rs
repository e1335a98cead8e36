//! Commands that wait for the store, and their replies in order among the others.
//!
//! Up to 1,024 commands of a connection wait at once; the next one is read after they are answered.
//! Decisions are started in order and awaited together. Commands that inspect or reset keys wait for
//! all decisions before them.

use super::command::CommandKind;
use super::host::RespHost;
use super::parse::{OwnedCommand, RespCommand};
use super::reply::{Replies, RespVersion};
use super::{check, keys, permits, throttle};
use crate::decider::{Decider, PendingCheck};
use futures_util::future::join_all;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate::{CheckError, Decision, Rules, Store, Throttle, ThrottleOutcome};
use tidegate_core::Quota;
use tidegate_telemetry::traces::UNTRACED;

/// The maximum number of commands of a connection that wait for the store at once.
pub(super) const PENDING_MAX: usize = 1_024;

/// The waiting commands, in order.
#[derive(Debug)]
pub(super) struct CommandBatch<S> {
    pending: Vec<PendingCommand<S>>,
}

#[derive(Debug)]
struct PendingCommand<S> {
    asked: OwnedQuestion<S>,
    /// The number of bytes of other replies before its own.
    at: usize,
    /// The protocol of its reply, even if a later command switches to another.
    protocol: RespVersion,
}

/// A waiting check with owned data: the buffer that it was parsed from is reused.
#[derive(Debug)]
pub(super) enum OwnedQuestion<S> {
    Throttle(Box<OwnedThrottle>),
    Check(Box<PendingCheck<S>>),
    Keys(CommandKind, OwnedCommand),
    Permits(CommandKind, OwnedCommand),
}

#[derive(Debug)]
pub(super) struct OwnedThrottle {
    key: SmallVec<[u8; 64]>,
    quota: Quota,
    quantity: u64,
}

/// The result of a waiting command.
enum CommandResult {
    Throttled(Result<ThrottleOutcome, CheckError>, u64),
    Checked(Result<Decision, CheckError>),
    Keys(Result<keys::KeyReply, CheckError>),
    Permits(Result<permits::PermitReply, CheckError>),
}

impl<S> Default for CommandBatch<S> {
    fn default() -> Self {
        Self {
            pending: Vec::new(),
        }
    }
}

impl<S> CommandBatch<S> {
    pub(super) fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns true if no further command may wait.
    pub(super) fn is_full(&self) -> bool {
        self.pending.len() >= PENDING_MAX
    }

    /// Adds a waiting command; its reply follows all of `replies`.
    pub(super) fn push(&mut self, asked: OwnedQuestion<S>, replies: &Replies) {
        self.pending.push(PendingCommand {
            asked,
            at: replies.len(),
            protocol: replies.protocol,
        });
    }
}

impl<S: Store> OwnedQuestion<S> {
    pub(super) fn throttle(ask: &Throttle<'_>) -> Self {
        Self::Throttle(Box::new(OwnedThrottle {
            key: SmallVec::from_slice(ask.key),
            quota: *ask.quota,
            quantity: ask.quantity,
        }))
    }

    pub(super) fn keys(kind: CommandKind, command: RespCommand<'_>) -> Self {
        Self::Keys(kind, command.to_owned())
    }

    pub(super) fn permits(kind: CommandKind, command: RespCommand<'_>) -> Self {
        Self::Permits(kind, command.to_owned())
    }

    /// Returns true if it must neither overtake earlier commands nor be overtaken: it reaches the store
    /// by another path than decisions.
    fn is_barrier(&self) -> bool {
        matches!(self, Self::Keys(..))
    }

    async fn answer(self, decider: &Decider<S>, rules: &Arc<Rules>) -> CommandResult {
        match self {
            Self::Throttle(owned) => {
                let ask = Throttle {
                    key: &owned.key,
                    quota: &owned.quota,
                    quantity: owned.quantity,
                };
                let throttled = decider.throttle(rules, &ask).await;
                CommandResult::Throttled(throttled, owned.quota.capacity())
            }
            Self::Check(check) => CommandResult::Checked(check.outcome(decider, &UNTRACED).await),
            Self::Keys(kind, owned) => {
                let command = owned.as_command();
                CommandResult::Keys(keys::answer(decider, rules, (kind, command)).await)
            }
            Self::Permits(kind, owned) => {
                let command = owned.as_command();
                CommandResult::Permits(permits::answer(decider, rules, (kind, command)).await)
            }
        }
    }
}

impl<S: Store> RespHost<S> {
    /// Waits for all commands of the batch, and puts the replies in order.
    ///
    /// Decisions are started in order before any is awaited, so that a store across the network gets them
    /// together and in that order. Barriers wait for the commands before them.
    pub(super) async fn settle(&mut self) {
        let pending = std::mem::take(&mut self.batch.pending);
        let Some(rules) = self.rules.clone() else {
            return;
        };
        let (asked, places): (Vec<_>, Vec<_>) = pending
            .into_iter()
            .map(|it| (it.asked, (it.at, it.protocol)))
            .unzip();
        let decider = &self.frontend.decider;
        let mut answers = Vec::with_capacity(places.len());
        let mut asked = asked.into_iter().peekable();
        while asked.peek().is_some() {
            let mut together = Vec::new();
            while let Some(decision) = asked.next_if(|it| !it.is_barrier()) {
                together.push(decision.answer(decider, &rules));
            }
            answers.extend(join_all(together).await);
            if let Some(barrier) = asked.next() {
                answers.push(barrier.answer(decider, &rules).await);
            }
        }
        let mut replies = Replies::of(self.replies.protocol);
        let mut from = 0;
        for ((at, protocol), answer) in places.into_iter().zip(answers) {
            replies.append(self.replies.as_bytes().get(from..at).unwrap_or_default());
            from = at;
            replies.protocol = protocol;
            self.write(&answer, &mut replies);
        }
        replies.append(self.replies.as_bytes().get(from..).unwrap_or_default());
        replies.protocol = self.replies.protocol;
        self.replies = replies;
    }

    fn write(&mut self, answer: &CommandResult, replies: &mut Replies) {
        match answer {
            CommandResult::Throttled(Ok(throttled), capacity) => {
                self.tally.throttled(Some(throttled));
                throttle::write(throttled, *capacity, replies);
            }
            CommandResult::Throttled(Err(error), _) => {
                self.tally.throttled(None);
                check::write_error(error, replies);
            }
            CommandResult::Checked(decided) => check::write(decided.as_ref(), replies),
            CommandResult::Keys(found) => keys::write(found, replies),
            CommandResult::Permits(reply) => permits::write(reply, replies),
        }
    }
}
