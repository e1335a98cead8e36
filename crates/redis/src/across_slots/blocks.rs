//! Blocks in other slots than their limits: on a Cluster, with the open layout, the buckets of one limit
//! may be in several slots, and no script call sees them all.
//!
//! Such a block is only read at first. If its limit refuses, it is charged in a separate call: a take of
//! one, which does nothing if the block is in force already. The same holds for every block of a limit in
//! shadow mode: it is charged only if the request passes, and no single call sees that either.

use super::GroupResult;
use crate::dispatch::{AskOptions, RedisInner, RequestReply};
use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use crate::slots::SlotRequest;
use smallvec::SmallVec;
use std::sync::Arc;
use tidegate_core::{LimitMode, Op, Outcome, StoreError, Wait, step};

/// The position of a block: the number of its group, and its number among the asks of that group.
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

/// Returns true if `ask` takes units of the limit of a block.
fn is_charge_of(ask: &OwnedAsk, block: &OwnedAsk) -> bool {
    ask.op.cost() > 0 && ask.limit == block.limit && ask.mode == block.mode
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

/// Returns the request that charges a block, if it is to be charged.
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
    if !step::is_block_due(waits) {
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

/// Returns the answer of a block that was just charged, or that another request has charged before.
fn closed(taken: &Outcome) -> Outcome {
    let left_us = taken.reset_us;
    let wait = if taken.is_allowed() {
        Wait::from_micros(left_us)
    } else {
        taken.wait
    };
    taken.with_wait(wait)
}
