//! A request over several slots of a Cluster: reserve in all of them in parallel, refund on refusal.
//!
//! No script call spans slots, so each group of buckets is decided in its own slot, and charged if it
//! passes: that is the reservation. If all groups pass, nothing is left to do. If one refuses, the
//! charges of the others are refunded, as far as that is safe (`Op::GiveBack`). Requests in between may
//! have been refused unnecessarily, but none was admitted wrongly. Only a charge that Redis has
//! acknowledged is refunded, and at most once: a second attempt might refund twice.
//!
//! A limit that refuses charges its block in the same call; one whose buckets are in several slots, in a
//! later call (see [`blocks`]).

mod blocks;

use crate::dispatch::{AskOptions, RedisInner, RequestReply};
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use crate::slots::{Groups, SlotRequest};
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::step::StepVerdict;
use tidegate_core::{
    ChargedOutcome, LimitMode, Op, PartialAnswer, Receipt, Reply, StoreError, Timestamp,
};
use tidegate_redis_client::spawn_short;
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// Decides a request of several groups. It runs to its end, refunds included, even if the caller is gone:
/// otherwise a client that hangs up early could drain the buckets of others.
pub(crate) async fn reserve(
    shared: &Arc<RedisInner>,
    groups: Groups,
    options: AskOptions,
) -> Result<Reply, StoreError> {
    let (told, answer) = oneshot::channel();
    let to_its_end = Arc::clone(shared);
    spawn_short(async move {
        let (reply, refunds) = match decide(&to_its_end, groups, options).await {
            Ok(reply) => (Ok(reply), Vec::new()),
            Err((error, refunds)) => (Err(error), refunds),
        };
        let unclaimed = UnclaimedRefunds {
            refunds,
            shared: to_its_end,
            runtime: Handle::current(),
        };
        // A caller that is still there decides what to do with a partial answer.
        told.send((reply, unclaimed)).ok();
    });
    match answer.await {
        Ok((reply, mut unclaimed)) => {
            unclaimed.refunds.clear();
            reply
        }
        Err(_) => Err(shared.too_late()),
    }
}

/// Refunds of a partial answer on its way to the caller. They start if the answer is dropped: a caller
/// may go after it was sent.
struct UnclaimedRefunds {
    refunds: Vec<SlotRefund>,
    shared: Arc<RedisInner>,
    /// The caller may be dropped outside of it.
    runtime: Handle,
}

impl Drop for UnclaimedRefunds {
    fn drop(&mut self) {
        let _entered = self.runtime.enter();
        start(self.refunds.drain(..), &self.shared);
    }
}

/// The result of a group: its answer, or an error.
pub(crate) struct GroupResult {
    pub(crate) group: SlotRequest,
    pub(crate) answer: Result<RequestReply, StoreError>,
}

/// Decides a request. An error carries the answers of the groups that replied, and comes with the refunds
/// of everything that they have charged.
async fn decide(
    shared: &Arc<RedisInner>,
    groups: Groups,
    options: AskOptions,
) -> Result<Reply, (StoreError, Vec<SlotRefund>)> {
    // All are on their way before the first is waited for.
    let apart = blocks::find(&groups);
    let pending: SmallVec<[_; 4]> = (0..)
        .zip(&groups)
        .map(|(nth, group)| {
            let request = blocks::only_ask(&group.request, nth, &apart);
            shared.send(group.slot, request, options)
        })
        .collect();
    let mut parts: SmallVec<[GroupResult; 4]> = SmallVec::new();
    for (group, pending) in groups.into_iter().zip(pending) {
        let answer = match pending {
            Ok(pending) => pending.answer().await,
            Err(error) => Err(error),
        };
        parts.push(GroupResult { group, answer });
    }
    if let Some(at) = outside(&parts) {
        start(SlotsVerdict::nothing_passes().refunds(&parts), shared);
        let asks = parts.iter().map(|part| part.group.places.len());
        return Ok(Reply::undecided(at, asks.sum()));
    }
    let error = match take_error(&mut parts) {
        Some(error) => Some(error),
        None => {
            let passed = SlotsVerdict::of(&parts).step.passed;
            let charged = blocks::charge(shared, &mut parts, (&apart, passed), options);
            charged.await.err()
        }
    };
    if let Some(error) = error {
        let refunds = SlotsVerdict::nothing_passes().refunds(&parts);
        return Err((error.with_answers(answers(&parts)), refunds));
    }
    let verdict = SlotsVerdict::of(&parts);
    start(verdict.refunds(&parts), shared);
    Ok(verdict.reply(&parts))
}

/// Returns the instant of a group that is outside the windows of a quota, so that the request has to be sent again.
/// One with refunds, of which another group may have made some, is not: they would be made twice.
fn outside(parts: &[GroupResult]) -> Option<Timestamp> {
    let refunds = |ask: &OwnedAsk| match ask.op {
        RequestOp::Engine(op) => op.receipt().is_some(),
        RequestOp::Drop | RequestOp::Inspect => false,
    };
    let mut asks = parts.iter().flat_map(|part| &part.group.request.asks);
    if asks.any(refunds) || parts.iter().any(|part| part.answer.is_err()) {
        return None;
    }
    let mut replies = parts.iter().filter_map(|part| part.answer.as_ref().ok());
    let reply = replies.find(|answer| answer.reply.outside)?;
    Some(reply.reply.at)
}

/// The first error, if there is one. That there was one stays known.
fn take_error(parts: &mut [GroupResult]) -> Option<StoreError> {
    let failed = parts
        .iter_mut()
        .find_map(|part| part.answer.as_mut().err())?;
    let kind = failed.kind();
    let known = StoreError::transient(String::new()).with_kind(kind);
    Some(std::mem::replace(failed, known))
}

/// An ask's instant and answer, and whether it changed its bucket.
type DatedAnswer = (Timestamp, ChargedOutcome, bool);

/// The verdict of all groups together.
struct SlotsVerdict {
    step: StepVerdict,
    /// The shadow limits of which a bucket had none.
    shadows_refusing: SmallVec<[u16; 2]>,
}

impl SlotsVerdict {
    /// Nothing that was charged may stay.
    fn nothing_passes() -> Self {
        Self {
            step: StepVerdict {
                passed: false,
                taken: false,
            },
            shadows_refusing: SmallVec::new(),
        }
    }

    /// Combines the answers of all groups: the request passes if every enforced bucket has room.
    fn of(parts: &[GroupResult]) -> Self {
        let mut verdict = Self {
            step: StepVerdict::PASSED,
            shadows_refusing: SmallVec::new(),
        };
        for (ask, answer, nth) in parts.iter().flat_map(GroupResult::asks) {
            let refuses = answer
                .reply
                .outcomes
                .get(nth)
                .is_some_and(|it| !it.is_allowed());
            match ask.mode {
                // Its limit has refused, which is counted there.
                LimitMode::Enforce if refuses && is_just_blocked(ask, answer, nth) => {}
                mode if refuses => {
                    verdict.step.refuse(mode, ask.op.is_forced());
                    if mode == LimitMode::Shadow {
                        verdict.shadows_refusing.push(ask.limit);
                    }
                }
                LimitMode::Enforce | LimitMode::Shadow => {}
            }
        }
        verdict
    }

    /// Returns true if a charge that a group has made is kept.
    fn keeps(&self, ask: &OwnedAsk) -> bool {
        let is_in_shadow = ask.mode == LimitMode::Shadow;
        self.step.charges(ask.mode, ask.op.is_forced())
            && !(is_in_shadow && self.shadows_refusing.contains(&ask.limit))
    }

    /// Returns the receipt of a charge that the group has made and may not keep.
    fn refund(&self, ask: &OwnedAsk, answer: &RequestReply, nth: usize) -> Option<Receipt> {
        let RequestOp::Engine(op) = ask.op else {
            return None;
        };
        answer.reply.receipt(nth, op).filter(|_| !self.keeps(ask))
    }

    /// Returns the refunds of everything that the groups have charged and may not keep.
    fn refunds(&self, parts: &[GroupResult]) -> Vec<SlotRefund> {
        let refund = |part: &GroupResult| {
            let mut request = SlotAsks::default();
            for (ask, answer, nth) in part.asks() {
                request
                    .asks
                    .extend(self.refund(ask, answer, nth).map(|receipt| OwnedAsk {
                        op: RequestOp::Engine(Op::GiveBack(receipt)),
                        ..*ask
                    }));
            }
            request.keys.clone_from(&part.group.request.keys);
            let slot = part.group.slot;
            (!request.asks.is_empty()).then_some(SlotRefund { slot, request })
        };
        parts.iter().filter_map(refund).collect()
    }

    /// One reply in the order of the caller's asks. A charge that is refunded reads as if it had never
    /// been made; one that cannot be refunded reads as it was left.
    fn reply(&self, parts: &[GroupResult]) -> Reply {
        let mut placed: SmallVec<[(u16, DatedAnswer); 8]> = SmallVec::new();
        for part in parts {
            for (ask, answer, nth) in part.asks() {
                let (Some(mut charged), Some(place)) =
                    (charged(ask, answer, nth), part.group.places.get(nth))
                else {
                    continue;
                };
                let is_refunded = self.refund(ask, answer, nth).is_some();
                if is_refunded {
                    let before = answer.before.as_ref().and_then(|before| before.get(nth));
                    charged = ChargedOutcome {
                        outcome: before.copied().unwrap_or(charged.outcome),
                        units: 0,
                    };
                }
                let is_applied = answer.reply.applied.contains(nth) && !is_refunded;
                placed.push((*place, (answer.reply.at, charged, is_applied)));
            }
        }
        placed.sort_by_key(|(place, _)| *place);
        Reply::of_instants(
            self.step.passed,
            placed.into_iter().map(|(_, answer)| answer),
        )
    }
}

/// Returns true if an ask that refuses is a block that was not in force before.
fn is_just_blocked(ask: &OwnedAsk, answer: &RequestReply, nth: usize) -> bool {
    ask.op == RequestOp::Engine(Op::Block) && answer.reply.applied.contains(nth)
}

/// Returns the group's answer to its `nth` ask, and the units that it charged.
fn charged(ask: &OwnedAsk, answer: &RequestReply, nth: usize) -> Option<ChargedOutcome> {
    let units = match ask.op {
        RequestOp::Engine(op) => answer.reply.applied.units(nth, op),
        RequestOp::Drop | RequestOp::Inspect => 0,
    };
    let outcome = *answer.reply.outcomes.get(nth)?;
    Some(ChargedOutcome { outcome, units })
}

impl GroupResult {
    /// The asks of a group that answered, with the answer and their numbers in the group.
    pub(crate) fn asks(&self) -> impl Iterator<Item = (&OwnedAsk, &RequestReply, usize)> {
        let answer = self.answer.as_ref().ok();
        let asks = self.group.request.asks.iter();
        asks.enumerate()
            .filter_map(move |(nth, ask)| Some((ask, answer?, nth)))
    }
}

/// Charges in one slot that have to be refunded.
pub(crate) struct SlotRefund {
    pub(crate) slot: u16,
    pub(crate) request: SlotAsks,
}

/// Starts the refunds in the background, each once.
pub(crate) fn start(refunds: impl IntoIterator<Item = SlotRefund>, shared: &Arc<RedisInner>) {
    for refund in refunds {
        refund.start(shared);
    }
}

impl SlotRefund {
    /// Refunds in the background, once.
    fn start(self, shared: &Arc<RedisInner>) {
        shared.stats.refunds_due.add(1);
        let shared = Arc::clone(shared);
        spawn_short(async move {
            let given = shared.give_back(self.slot, &self.request).await;
            let stats = &shared.stats;
            if given {
                &stats.refunds
            } else {
                &stats.refunds_lost
            }
            .add(1);
        });
    }
}

/// Returns the known answers to the caller's asks if a group did not reply.
fn answers(parts: &[GroupResult]) -> Box<[Option<PartialAnswer>]> {
    let asks = parts.iter().map(|part| part.group.places.len()).sum();
    let mut answers = vec![None; asks];
    for part in parts {
        for (ask, answer, nth) in part.asks() {
            let place = part.group.places.get(nth).map(|place| usize::from(*place));
            let slot = place.and_then(|place| answers.get_mut(place));
            if let (Some(slot), Some(charged)) = (slot, charged(ask, answer, nth)) {
                *slot = Some(PartialAnswer {
                    at: answer.reply.at,
                    answer: charged,
                });
            }
        }
    }
    answers.into_boxed_slice()
}
