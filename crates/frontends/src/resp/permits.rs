//! `TG.ACQUIRE policy [field value]… [ttl_ms n]`, `TG.RENEW id [ttl_ms]` and `TG.RELEASE id`: requests in flight,
//! as over HTTP.

use super::check;
use super::command::CommandKind;
use super::parse::RespCommand;
use super::reply::{Replies, RespVersion};
use crate::decider::Decider;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Acquisition, CheckError, Rules, Store};
use tidegate_http::unix_seconds;
use tidegate_telemetry::traces::UNTRACED;

/// A reply, before it is written.
#[expect(
    clippy::large_enum_variant,
    reason = "there is one for each pending command, and none is kept"
)]
pub(super) enum PermitReply {
    Acquired(Acquisition),
    /// True if the permits are held, or were released.
    Done(bool),
    /// The mistake in the command.
    Wrong(String),
}

/// Executes a command of one of these kinds.
pub(super) async fn answer<S: Store>(
    decider: &Decider<S>,
    rules: &Arc<Rules>,
    (kind, command): (CommandKind, RespCommand<'_>),
) -> Result<PermitReply, CheckError> {
    if kind == CommandKind::Acquire {
        return acquire(decider, rules, command).await;
    }
    // An id is text. Other bytes are no id.
    let id = std::str::from_utf8(command.word(1)).unwrap_or_default();
    if kind == CommandKind::Release {
        return decider.release(id).await.map(PermitReply::Done);
    }
    let ttl = match command.len() {
        2 => None,
        _ => match check::ttl(command.word(2)) {
            Ok(ttl_ms) => Some(Duration::from_millis(ttl_ms)),
            Err(message) => return Ok(PermitReply::Wrong(message)),
        },
    };
    decider.renew(id, ttl).await.map(PermitReply::Done)
}

async fn acquire<S: Store>(
    decider: &Decider<S>,
    rules: &Arc<Rules>,
    command: RespCommand<'_>,
) -> Result<PermitReply, CheckError> {
    let question = match check::read_acquiring(command) {
        Ok(question) => question,
        Err(message) => return Ok(PermitReply::Wrong(message)),
    };
    let learnt = question.learn(rules.client(), &unix_seconds);
    let pairs = question.pairs_with(learnt.as_ref());
    let described = question.descriptors(&pairs);
    let request = question.request(&pairs).descriptors(&described);
    let ttl = question.ttl_ms.map(Duration::from_millis);
    let refused = learnt.as_ref().and_then(|learnt| learnt.token_refused);
    let acquired = decider.acquire(rules, (&request, ttl), &UNTRACED, refused);
    acquired.await.map(PermitReply::Acquired)
}

/// Writes a reply. Of an acquisition: in RESP3 a map of `decision`, as of `TG.CHECK`, `id` and `expires_ms`; in RESP2
/// these three values.
pub(super) fn write(reply: &Result<PermitReply, CheckError>, replies: &mut Replies) {
    match reply {
        Ok(PermitReply::Acquired(acquired)) => write_acquired(acquired, replies),
        Ok(PermitReply::Done(is_done)) => replies.boolean(*is_done),
        Ok(PermitReply::Wrong(message)) => replies.error(message),
        Err(error) => check::write_error(error, replies),
    }
}

fn write_acquired(acquired: &Acquisition, replies: &mut Replies) {
    let is_resp3 = replies.protocol == RespVersion::Resp3;
    let name = |name: &str, replies: &mut Replies| {
        if is_resp3 {
            replies.bulk(name);
        }
    };
    if is_resp3 {
        replies.map(3);
    } else {
        replies.array(3);
    }
    name("decision", replies);
    check::write(Ok(acquired.decision()), replies);
    name("id", replies);
    check::text_or_null(acquired.id(), replies);
    name("expires_ms", replies);
    match acquired.expires_after() {
        // Rounded down, so that no client renews too late.
        Some(ttl) => replies.natural(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)),
        None => check::absent(replies),
    }
}
