//! Distributes the reply of the general script to the callers.

use super::batch::Askers;
use super::waiter::RequestReply;
use crate::any_op::{Replay, ReplayedRequest, ScriptCall};
use crate::deny::RefusedBucket;
use crate::deny::refuse::{invalidate, wanted};
use crate::dispatch::RedisInner;
use crate::failure::store_error;
use crate::request::SlotAsks;
use tidegate_core::Timestamp;
use tidegate_redis_client::CallError;
use tidegate_redis_client::protocol::Value;
use tokio::time::Instant;

/// Finds the answers of all `requests`, which were sent at `sent`.
pub(super) fn decide(
    shared: &RedisInner,
    requests: &[&SlotAsks],
    (call, value): (&ScriptCall, Result<Value, CallError>),
    (askers, sent): (&mut Askers, Instant),
) {
    let replayed = value.and_then(|value| {
        let mut replay = Replay::new(call, &value)?;
        for (place, request) in requests.iter().enumerate() {
            let decided = replay.next(request, askers.wants_before(place));
            if let Ok(decided) = &decided {
                invalidate(&shared.deny, request, sent);
                if !decided.reply.passed && !decided.reply.outside {
                    remember(shared, request, (&replay, decided), sent);
                }
            }
            askers.tell(place, decided.map(RequestReply::from));
        }
        Ok(())
    });
    if let Err(error) = replayed {
        for place in 0..requests.len() {
            askers.tell(place, Err(store_error(error.clone())));
        }
    }
}

/// Remembers the buckets of a refused request, those that had room too, so that the same request
/// can be answered whole.
pub(crate) fn remember(
    shared: &RedisInner,
    request: &SlotAsks,
    (replay, decided): (&Replay<'_>, &ReplayedRequest),
    sent: Instant,
) {
    let at: Timestamp = replay.at();
    let outcomes = decided.reply.outcomes.iter();
    for (nth, (ask, outcome)) in request.asks.iter().zip(outcomes).enumerate() {
        let cost = wanted(request, nth).unwrap_or(0);
        let key = request.keys.get(usize::from(ask.key));
        if let (Some(key), Some(bucket)) = (key, replay.bucket(request, nth)) {
            let refused = RefusedBucket {
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

impl From<ReplayedRequest> for RequestReply {
    fn from(decided: ReplayedRequest) -> Self {
        Self {
            reply: decided.reply,
            before: decided.before,
        }
    }
}
