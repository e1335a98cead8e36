//! One round trip to Redis: the requests of a call, sending it, and distributing the replies.

use super::general::decide;
use super::waiter::{LaneRequest, ReplyWaiter, RequestReply};
use super::{CALL_KEYS_MAX, CALL_REQUESTS_MAX, CALL_WEIGHT_MAX, REPEAT_WEIGHT};
use crate::any_op::{ASK_WEIGHT, KEY_WEIGHT};
use crate::dispatch::RedisInner;
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use std::future::ready;
use std::pin::pin;
use tidegate_core::{LimitMode, Op, StoreError};
use tidegate_redis_client::RepeatEffect;
use tokio::time::{Instant, sleep_until};

/// Requests that travel together, in one call.
#[derive(Debug, Default)]
pub(crate) struct LaneBatch {
    /// Oldest first.
    requests: Vec<SlotAsks>,
    /// The client that waits for each; `None` once answered.
    askers: Vec<Option<ReplyWaiter>>,
    /// The buckets of each request, one after the other.
    buckets: Vec<u64>,
    weight: u32,
    keys: usize,
}

impl LaneBatch {
    /// Returns true if it has no request.
    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Returns whether `waiter` may travel too, of whose buckets `known` are in here. The first may in
    /// any case.
    pub(super) fn has_room(&self, waiter: &LaneRequest, known: usize) -> bool {
        let new_keys = waiter.buckets.len().saturating_sub(known);
        self.is_empty()
            || (self.weight.saturating_add(self.weight_of(waiter, known)) <= CALL_WEIGHT_MAX
                && self.requests.len() < CALL_REQUESTS_MAX
                && self.keys.saturating_add(new_keys) <= CALL_KEYS_MAX)
    }

    /// Adds a request, `known` of whose buckets are in here already.
    pub(super) fn add(&mut self, waiter: LaneRequest, known: usize) {
        let weight = self.weight_of(&waiter, known);
        self.weight = self.weight.saturating_add(weight);
        let new_keys = waiter.buckets.len().saturating_sub(known);
        self.keys = self.keys.saturating_add(new_keys);
        self.buckets.extend_from_slice(&waiter.buckets);
        self.requests.push(waiter.request);
        self.askers.push(Some(waiter.asker));
    }

    /// A key is read and written once in a call, and equal takes in a row are a count.
    fn weight_of(&self, waiter: &LaneRequest, known: usize) -> u32 {
        if known < waiter.buckets.len() {
            let known = u32::try_from(known).unwrap_or(u32::MAX);
            let spared = KEY_WEIGHT
                .saturating_add(ASK_WEIGHT)
                .saturating_sub(REPEAT_WEIGHT);
            return waiter.weight.saturating_sub(known.saturating_mul(spared));
        }
        let is_take = |ask: &OwnedAsk| {
            ask.mode == LimitMode::Enforce && matches!(ask.op, RequestOp::Engine(Op::Take(1..)))
        };
        if self.requests.last() == Some(&waiter.request) && waiter.request.asks.iter().all(is_take)
        {
            return 0;
        }
        let asks = u32::try_from(waiter.request.asks.len()).unwrap_or(u32::MAX);
        asks.saturating_mul(REPEAT_WEIGHT)
    }

    /// Returns the buckets of its requests, with repetitions.
    pub(super) fn take_buckets(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.buckets)
    }

    /// Sends the call, then distributes `earlier`, the replies of the previous trip: so Redis has work
    /// while their callers continue. Callers whose time is up before the reply get an error; the replies
    /// of the others are returned.
    pub(super) async fn run(
        self,
        shared: &RedisInner,
        slot: u16,
        earlier: UndeliveredReplies,
    ) -> UndeliveredReplies {
        let mut askers = Askers::new(self.askers);
        let Some(latest) = askers.latest() else {
            earlier.hand_out();
            return askers.answers;
        };
        let sent = Instant::now();
        let requests: Vec<&SlotAsks> = self.requests.iter().collect();
        let (call, command) = shared.general(&requests);
        shared.stats.calls.add(1);
        let (script, repeat) = (&shared.scripts.general, repeat(&requests));
        let run = shared
            .connection
            .run(slot, script, &command, repeat, latest);
        let mut run = pin!(run);
        let mut earlier = Some(earlier);
        let reply = loop {
            tokio::select! {
                biased;
                reply = &mut run => break reply,
                // The call is in flight.
                () = ready(()), if earlier.is_some() => {
                    earlier.take().map(UndeliveredReplies::hand_out).unwrap_or_default();
                }
                () = sleep_until(askers.earliest().unwrap_or(latest)), if earlier.is_none() => {
                    if askers.give_up(Instant::now(), shared) {
                        return askers.answers;
                    }
                }
            }
        };
        earlier
            .map(UndeliveredReplies::hand_out)
            .unwrap_or_default();
        decide(shared, &requests, (&call, reply), (&mut askers, sent));
        shared.stats.decisions.add(askers.answers.decided());
        askers.answers
    }
}

/// Returns how the call may be repeated. A refund must not happen twice, not even in a call with requests
/// that may be repeated.
pub(super) fn repeat(requests: &[&SlotAsks]) -> RepeatEffect {
    let may_block = |request: &&SlotAsks| {
        let mut asks = request.asks.iter();
        asks.any(|ask| matches!(ask.op, RequestOp::Engine(Op::Block)))
    };
    // Nor may a request that has passed be sent again where it would then be refused, and blocked.
    if requests.iter().any(|request| may_give_twice(request)) || requests.iter().any(may_block) {
        RepeatEffect::Refund
    } else {
        RepeatEffect::Consume
    }
}

/// Returns true if a request that is executed twice may refund twice. A return in a request with a take
/// that only one can win happens once, even if it is sent again: the second time that take refuses.
fn may_give_twice(request: &SlotAsks) -> bool {
    let won_once = request.asks.iter().any(|ask| {
        let is_won_once = |cost: u64| cost > ask.quota.capacity() / 2;
        ask.mode == LimitMode::Enforce
            && matches!(ask.op, RequestOp::Engine(Op::Take(cost)) if is_won_once(cost))
    });
    request.asks.iter().any(|ask| match ask.op {
        RequestOp::Engine(Op::Return { .. }) => !won_once,
        RequestOp::Engine(op) => op.receipt().is_some(),
        RequestOp::Drop | RequestOp::Inspect => false,
    })
}

/// The callers of a round trip, oldest first.
pub(crate) struct Askers {
    waiting: Vec<Option<ReplyWaiter>>,
    answers: UndeliveredReplies,
}

/// Answers that have not been handed out yet.
#[derive(Debug, Default)]
pub(crate) struct UndeliveredReplies(Vec<(ReplyWaiter, Result<RequestReply, StoreError>)>);

impl UndeliveredReplies {
    /// Returns true if there is no reply to distribute.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of decisions, without failures.
    fn decided(&self) -> u64 {
        let decided = self.0.iter().filter(|(_, answer)| answer.is_ok());
        u64::try_from(decided.count()).unwrap_or(u64::MAX)
    }

    /// Sends the replies to their callers. Callers that have stopped waiting need none.
    pub(super) fn hand_out(self) {
        for (asker, answer) in self.0 {
            asker.tell(answer);
        }
    }
}

impl Askers {
    /// Returns the callers of a batch, none of which has a reply yet.
    fn new(waiting: Vec<Option<ReplyWaiter>>) -> Self {
        let answers = UndeliveredReplies(Vec::with_capacity(waiting.len()));
        Self { waiting, answers }
    }

    /// The answer of the one at `place`, unless there is one.
    pub(crate) fn tell(&mut self, place: usize, answer: Result<RequestReply, StoreError>) {
        if let Some(asker) = self.waiting.get_mut(place).and_then(Option::take) {
            self.answers.0.push((asker, answer));
        }
    }

    /// Returns true if the caller at `place` wants the readings before the charge.
    pub(crate) fn wants_before(&self, place: usize) -> bool {
        matches!(self.waiting.get(place), Some(Some(asker)) if asker.wants_before)
    }

    /// Returns the callers that have no reply yet.
    fn waiting(&self) -> impl Iterator<Item = &ReplyWaiter> {
        self.waiting.iter().flatten()
    }

    /// Returns the last deadline of the callers: the call may take as long.
    fn latest(&self) -> Option<Instant> {
        self.waiting().map(|asker| asker.deadline).max()
    }

    /// Returns the first deadline of the callers: the next one that fails.
    fn earliest(&self) -> Option<Instant> {
        self.waiting().map(|asker| asker.deadline).min()
    }

    /// Fails the callers whose time is up. Returns true if none is left.
    fn give_up(&mut self, now: Instant, shared: &RedisInner) -> bool {
        let mut left = false;
        for asker in &mut self.waiting {
            match asker.take_if(|asker| asker.deadline <= now) {
                Some(asker) => asker.tell(Err(shared.too_late())),
                None => left |= asker.is_some(),
            }
        }
        !left
    }
}
