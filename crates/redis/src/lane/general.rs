//! From what the general script replied to everybody's answer.

use super::batch::Askers;
use super::waiter::Answer;
use crate::deny::Refused;
use crate::error::CallError;
use crate::general::{Call, Decided, Replay};
use crate::refuse::{disturb, wanted};
use crate::request::Request;
use crate::shared::Shared;
use redis::Value;
use tidegate_core::Timestamp;
use tokio::time::Instant;

/// Finds the answers of all `requests`, which were sent at `sent`.
pub(super) fn decide(
    shared: &Shared,
    requests: &[&Request],
    (call, value): (&Call, Result<Value, CallError>),
    (askers, sent): (&mut Askers, Instant),
) {
    let told = value.and_then(|value| {
        let mut replay = Replay::new(call, &value)?;
        for (place, request) in requests.iter().enumerate() {
            let decided = replay.next(request, askers.wants_before(place));
            if let Ok(decided) = &decided {
                disturb(&shared.deny, request, sent);
                if !decided.reply.passed {
                    remember(shared, request, (&replay, decided), sent);
                }
            }
            askers.tell(place, decided.map(Answer::from));
        }
        Ok(())
    });
    if let Err(error) = told {
        for place in 0..requests.len() {
            askers.tell(place, Err(error.clone().into()));
        }
    }
}

/// Remembers the buckets of a refused request, those that had room too, so that the same request
/// can be answered whole.
pub(crate) fn remember(
    shared: &Shared,
    request: &Request,
    (replay, decided): (&Replay<'_>, &Decided),
    sent: Instant,
) {
    let at: Timestamp = replay.at();
    let outcomes = decided.reply.outcomes.iter();
    for (nth, (ask, outcome)) in request.asks.iter().zip(outcomes).enumerate() {
        let cost = wanted(request, nth).unwrap_or(0);
        let key = request.keys.get(usize::from(ask.key));
        if let (Some(key), Some(bucket)) = (key, replay.bucket(request, nth)) {
            let refused = Refused {
                key,
                quota: &ask.quota,
                cost,
                outcome: *outcome,
                bucket,
            };
            shared.deny.remember(&refused, at, sent);
        }
    }
}

impl From<Decided> for Answer {
    fn from(decided: Decided) -> Self {
        Self {
            reply: decided.reply,
            before: decided.before,
        }
    }
}
