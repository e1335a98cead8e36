//! Blocks apart from their limits: on a Cluster, under the open layout, the buckets of one limit may
//! lie in several slots, and no step sees them all.
//!
//! Such a block is only asked at first. Where its limit turns out to refuse, it is charged by itself:
//! a take of one, which does nothing where it is in force already. So is every block of a limit in shadow
//! mode, which is charged only if the request passes, and no step sees that either.

use crate::lane::RequestReply;
use crate::plan::SlotRequest;
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use crate::reserve::GroupResult;
use crate::shared::{AskOptions, RedisInner};
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{LimitMode, Op, Outcome, StoreError, Wait};

/// Where a block is: the number of its group, and its own among the asks of that.
pub(crate) type BlockIndex = (usize, usize);

/// The blocks of which something of the limit is taken in another group, and all of shadow limits.
pub(crate) fn find(groups: &[SlotRequest]) -> SmallVec<[BlockIndex; 2]> {
    let mut places = SmallVec::new();
    for (nth, group) in groups.iter().enumerate() {
        for (i, ask) in group.request.asks.iter().enumerate() {
            let others = groups.iter().enumerate().filter(|(other, _)| *other != nth);
            let mut asks = others.flat_map(|(_, other)| &other.request.asks);
            if ask.op == RequestOp::Engine(Op::Block)
                && (ask.mode == LimitMode::Shadow || asks.any(|other| is_charge_of(other, ask)))
            {
                places.push((nth, i));
            }
        }
    }
    places
}

/// Whether `ask` takes something of the limit of a block.
fn is_charge_of(ask: &OwnedAsk, block: &OwnedAsk) -> bool {
    let is_charge = matches!(
        ask.op,
        RequestOp::Engine(Op::Take(_) | Op::Force(_) | Op::Debit(1..))
    );
    is_charge && ask.limit == block.limit && ask.mode == block.mode
}

/// The request of the group numbered `group`, in which blocks that are apart are only asked.
pub(crate) fn only_ask(request: &SlotAsks, group: usize, apart: &[BlockIndex]) -> SlotAsks {
    let mut request = request.clone();
    for (_, i) in apart.iter().filter(|(nth, _)| *nth == group) {
        if let Some(ask) = request.asks.get_mut(*i) {
            ask.op = RequestOp::Engine(Op::Test(1));
        }
    }
    request
}

/// Charges the blocks that are apart and whose limits refuse, of shadow limits where the request has
/// `passed`; they answer as they are then.
pub(crate) async fn charge(
    shared: &Arc<RedisInner>,
    parts: &mut [GroupResult],
    (apart, passed): (&[BlockIndex], bool),
    options: AskOptions,
) -> Result<(), StoreError> {
    for (nth, i) in apart {
        let Some((slot, request)) = to_charge(parts, (*nth, *i), passed) else {
            continue;
        };
        let answer = match shared.send(slot, request, options) {
            Ok(pending) => pending.answer().await,
            Err(error) => Err(error),
        };
        let answer = match answer {
            // No limit in shadow mode changes the answer, not even by failing.
            Err(_) if passed => continue,
            answer => answer?,
        };
        let part = parts.get_mut(*nth);
        let charged = part.and_then(|part| part.answer.as_mut().ok());
        if let (Some(taken), Some(RequestReply { reply, .. })) =
            (answer.reply.outcomes.first(), charged)
            && let Some(outcome) = reply.outcomes.get_mut(*i)
        {
            *outcome = closed(taken);
            reply.applied.add(*i);
        }
    }
    Ok(())
}

/// What charges the block at a place, if it is to be charged.
fn to_charge(parts: &[GroupResult], (nth, i): BlockIndex, passed: bool) -> Option<(u16, SlotAsks)> {
    let part = parts.get(nth)?;
    let ask = part.group.request.asks.get(i)?;
    if (ask.mode == LimitMode::Shadow) != passed {
        return None;
    }
    let answer = part.answer.as_ref().ok()?;
    if !answer.reply.outcomes.get(i)?.is_allowed() {
        return None;
    }
    let waits = parts.iter().flat_map(GroupResult::asks).filter_map(|it| {
        let (other, answer, nth) = it;
        let outcome = answer.reply.outcomes.get(nth)?;
        is_charge_of(other, ask).then_some(outcome.wait)
    });
    let longest = waits.max()?;
    if longest.is_none() || longest.is_never() {
        return None;
    }
    let mut request = SlotAsks::default();
    let key = part.group.request.keys.get(usize::from(ask.key))?;
    request.keys.push(key.clone());
    request.asks.push(OwnedAsk {
        key: 0,
        op: RequestOp::Engine(Op::Take(1)),
        ..*ask
    });
    Some((part.group.slot, request))
}

/// What a block answers from which one was taken, or which somebody else has charged before.
fn closed(taken: &Outcome) -> Outcome {
    let left_us = taken.reset_us;
    let wait = if taken.is_allowed() {
        Wait::from_micros(left_us)
    } else {
        taken.wait
    };
    taken.with_wait(wait)
}
