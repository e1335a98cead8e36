//! One quota and one ask, as the script is told.
//!
//! The script counts *room*: how much of what a charge takes is left. For a token bucket that is
//! debt, for a window it is units. What can be worked out without the state is worked out here, once
//! for all requests of a shape: above all, what other asks of the same request take from the same
//! bucket first.

use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use crate::script::record_id;
use tidegate_core::quota::{EXACT_MAX, LOG_COST_MAX, WINDOW_PARTS};
use tidegate_core::{Algorithm, Align, LimitMode, Op, Quota, Receipt, Timestamp};

/// Kinds of quotas, as in `program.lua`.
const TOKENS: u8 = 1;
const TOKENS_REFUNDABLE: u8 = 2;
const FIXED: u8 = 3;
const SLIDING: u8 = 4;
const LOG: u8 = 5;
const TOKENS_LENT: u8 = 6;
/// Beside the kind: what a record has to say of its quota follows.
const MARKED: u8 = 16;

/// Operations, as in `program.lua`.
const LOOK: u8 = 0;
const TAKE: u8 = 1;
const FORCE: u8 = 2;
const GIVE_BACK: u8 = 3;
const DROP: u8 = 4;
const SWITCH: u8 = 5;
const RETURN: u8 = 6;
const BLOCK: u8 = 7;
const INSPECT: u8 = 8;

/// Appends a quota.
pub(super) fn push_quota(program: &mut Vec<u8>, quota: &Quota) {
    let (drain, price) = quota.drain_and_price();
    let period = quota.period_us();
    let (full, over) = (quota.brim(), quota.overdraft().saturating_mul(price));
    let (kind, pace, more) = match quota.algorithm() {
        Algorithm::TokenBucket => {
            let kind = match (quota.lends(), quota.is_refundable()) {
                (true, _) => TOKENS_LENT,
                (false, true) => TOKENS_REFUNDABLE,
                (false, false) => TOKENS,
            };
            let ahead = full.saturating_add(over) / drain.max(1);
            (kind, drain, ahead.saturating_add(1))
        }
        Algorithm::FixedWindow(align) => (FIXED, period, u64::from(align == Align::Clock)),
        Algorithm::SlidingWindow => (SLIDING, period / quota.tick_us().max(1), 0),
        Algorithm::SlidingLog => (LOG, period, 0),
        Algorithm::BucketedWindow => (LOG, period, period.div_ceil(WINDOW_PARTS)),
    };
    let code = quota.basis_code();
    program.push(if code.is_some() { kind | MARKED } else { kind });
    program.extend_from_slice(record_id(quota).to_le_bytes().get(..6).unwrap_or_default());
    for number in [full, over, pace, more, quota.tick_us()] {
        push_number(program, number);
    }
    if let Some(code) = code {
        push_number(program, code);
        push_number(program, quota.whole_code());
    }
}

/// An ask's place in the script.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskSlot {
    /// Which of the key's places, from 0.
    pub(super) offset: u16,
    /// Which of the call's quotas, from 0.
    pub(super) quota: u16,
    /// The quota under which an earlier request used the same place, if that was another.
    pub(super) switched_from: Option<u16>,
}

/// Appends the shape of a request: how many keys it has, whether it is simple, and its asks.
pub(super) fn push_shape(shape: &mut Vec<u8>, request: &SlotAsks, spots: &[AskSlot]) {
    let switches = spots.iter().filter(|spot| spot.switched_from.is_some());
    let rows = request.asks.len().saturating_add(switches.count());
    push_count(shape, request.keys.len());
    shape.push(u8::from(is_simple(request, spots)));
    push_count(shape, rows);
    for (ask, spot) in request.asks.iter().zip(spots) {
        if let Some(old) = spot.switched_from {
            let old = u64::from(old).saturating_add(1);
            push_row(shape, ask, *spot, &AskRow::of(SWITCH).at(old));
        }
    }
    // In the order in which they are carried out.
    for turn in [
        AskPhase::GiveBack,
        AskPhase::Enforced,
        AskPhase::Shadow,
        AskPhase::Return,
    ] {
        for (i, (ask, spot)) in request.asks.iter().zip(spots).enumerate() {
            if AskPhase::of(ask) == turn {
                push_row(shape, ask, *spot, &row(request, i, ask));
            }
        }
    }
}

/// When an ask is carried out: what is given back first, shadows after what is enforced, and last
/// what comes back only if all of that went well.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskPhase {
    GiveBack,
    Enforced,
    Shadow,
    Return,
}

impl AskPhase {
    fn of(ask: &OwnedAsk) -> Self {
        match (ask.op, ask.mode) {
            (RequestOp::Engine(Op::GiveBack(_)), _) => Self::GiveBack,
            (RequestOp::Engine(Op::Return { .. }), _) => Self::Return,
            (_, LimitMode::Enforce) => Self::Enforced,
            (_, LimitMode::Shadow) => Self::Shadow,
        }
    }
}

/// Enforced takes of something from buckets that are all different.
pub(super) fn is_simple(request: &SlotAsks, spots: &[AskSlot]) -> bool {
    let is_take = |ask: &OwnedAsk| {
        ask.mode == LimitMode::Enforce
            && matches!(ask.op, RequestOp::Engine(Op::Take(cost)) if cost > 0)
    };
    let unlike = |(i, ask): (usize, &OwnedAsk)| {
        let mut others = request.asks.iter().take(i);
        !others.any(|other| is_same_bucket(other, ask))
    };
    request.asks.iter().all(is_take)
        && request.asks.iter().enumerate().all(unlike)
        && spots.iter().all(|spot| spot.switched_from.is_none())
}

pub(super) fn is_same_bucket(one: &OwnedAsk, other: &OwnedAsk) -> bool {
    one.key == other.key && record_id(&one.quota) == record_id(&other.quota)
}

/// What the script is told of an ask beside where it is.
struct AskRow {
    op: u8,
    /// The room that there must be.
    need: u64,
    /// What is taken or given back.
    units: u64,
    /// When it was taken; of a limit that blocks, its number and one more.
    at: u64,
    /// What else is known of what is given back: until when it was owed, what had been credited then,
    /// and what of it lies behind.
    receipt: Option<[u64; 3]>,
    /// The last instant at which it is given back, where that is not in any case.
    by: Option<u64>,
}

impl AskRow {
    fn of(op: u8) -> Self {
        Self {
            op,
            need: 0,
            units: 0,
            at: 0,
            receipt: None,
            by: None,
        }
    }

    fn giving(op: u8, units: u64, receipt: Receipt) -> Self {
        Self {
            units,
            at: receipt.at.as_micros(),
            receipt: Some([receipt.until.as_micros(), receipt.mark, receipt.behind]),
            ..Self::of(op)
        }
    }

    fn at(self, at: u64) -> Self {
        Self { at, ..self }
    }
}

fn row(request: &SlotAsks, i: usize, ask: &OwnedAsk) -> AskRow {
    let op = match ask.op {
        RequestOp::Engine(op) => op,
        RequestOp::Drop => return AskRow::of(DROP),
        RequestOp::Inspect => return AskRow::of(INSPECT),
    };
    let quota = &ask.quota;
    let price = quota.drain_and_price().1;
    let units = |cost: u64| cost.saturating_mul(price).min(EXACT_MAX);
    // However long the queue, no more than the capacity ever passes at once.
    let is_bucket = quota.algorithm() == Algorithm::TokenBucket;
    let need = |cost: u64| {
        if is_bucket && cost > quota.capacity() {
            EXACT_MAX
        } else {
            units(cost)
        }
    };
    let need_at_once = |cost: u64| {
        let too_large = cost > LOG_COST_MAX && cost > quota.cost_max();
        let together = cost.saturating_add(cost_beside(request, i));
        if too_large { EXACT_MAX } else { need(together) }
    };
    match exact(op, quota) {
        Op::Take(cost) if cost > 0 => AskRow {
            need: need_at_once(cost),
            units: units(cost),
            at: blocked(request, ask),
            ..AskRow::of(TAKE)
        },
        // A look that may refuse.
        Op::Test(cost) => AskRow {
            need: need_at_once(cost.max(1)),
            ..AskRow::of(LOOK)
        },
        Op::Force(cost) if cost > 0 => AskRow {
            need: need(cost_beside(request, i).saturating_add(1)),
            units: units(cost),
            at: blocked(request, ask),
            ..AskRow::of(FORCE)
        },
        // Charged as what is forced is, but refuses where it does not fit.
        Op::Debit(cost) => AskRow {
            need: need_at_once(cost.max(1)),
            units: units(cost),
            // A debit of nothing blocks nobody.
            at: if cost > 0 { blocked(request, ask) } else { 0 },
            ..AskRow::of(FORCE)
        },
        Op::Block => match blocked(request, ask) {
            0 => AskRow {
                need: need_at_once(1),
                ..AskRow::of(LOOK)
            },
            at => AskRow {
                need: need_at_once(1),
                units: units(1),
                at,
                ..AskRow::of(BLOCK)
            },
        },
        Op::GiveBack(receipt) => AskRow::giving(GIVE_BACK, units(receipt.cost), receipt),
        Op::Return { receipt, by } => AskRow {
            by: Some(by.as_micros()),
            ..AskRow::giving(RETURN, units(receipt.cost), receipt)
        },
        Op::Look | Op::Take(_) | Op::Force(_) => AskRow::of(LOOK),
    }
}

/// What tells the script that a refusal of `ask` charges a block, or that it is that block: the number
/// of their limit and one more. 0 where no refusal does: there is no block, or what is asked of the
/// limit can never pass.
fn blocked(request: &SlotAsks, ask: &OwnedAsk) -> u64 {
    let of_limit =
        |(_, other): &(usize, &OwnedAsk)| other.limit == ask.limit && other.mode == ask.mode;
    let is_block = |ask: &OwnedAsk| ask.op == RequestOp::Engine(Op::Block);
    if !request.asks.iter().any(is_block) {
        return 0;
    }
    let mut limit = request.asks.iter().enumerate().filter(of_limit);
    let mut same = request.asks.iter().enumerate().filter(of_limit);
    let blocks = limit.any(|(_, ask)| is_block(ask));
    if blocks && !same.any(|(i, ask)| never_passes(request, i, ask)) {
        u64::from(ask.limit).saturating_add(1)
    } else {
        0
    }
}

/// Whether no wait helps what is taken; see core's `step`.
fn never_passes(request: &SlotAsks, i: usize, ask: &OwnedAsk) -> bool {
    let quota = &ask.quota;
    let together = |cost: u64| cost.saturating_add(cost_beside(request, i));
    let RequestOp::Engine(op) = ask.op else {
        return false;
    };
    match op {
        Op::Take(cost @ 1..) | Op::Debit(cost @ 1..) => {
            let too_large = cost > LOG_COST_MAX && cost > quota.cost_max();
            too_large || together(cost) > quota.capacity()
        }
        Op::Force(1..) => together(1) > quota.capacity(),
        Op::Take(0)
        | Op::Debit(0)
        | Op::Force(0)
        | Op::Look
        | Op::Test(_)
        | Op::GiveBack(_)
        | Op::Return { .. }
        | Op::Block => false,
    }
}

/// The operation as both the script and the engine are told it: nobody can have been charged more
/// than 2^53 units of debt, or later than 2^53 microseconds, and a receipt that says so would leave
/// exact arithmetic.
pub(super) fn exact(op: Op, quota: &Quota) -> Op {
    let price = quota.drain_and_price().1.max(1);
    let most = EXACT_MAX.saturating_sub(1);
    let instant = |at: Timestamp| at.min(Timestamp::from_micros(most));
    let exactly = |mut receipt: Receipt| {
        receipt.at = instant(receipt.at);
        receipt.cost = receipt.cost.min(most / price);
        receipt.until = instant(receipt.until);
        receipt.mark = receipt.mark.min(most);
        receipt.behind = receipt.behind.min(most);
        receipt
    };
    match op {
        Op::GiveBack(receipt) => Op::GiveBack(exactly(receipt)),
        Op::Return { receipt, by } => Op::Return {
            receipt: exactly(receipt),
            by: instant(by),
        },
        Op::Look | Op::Take(_) | Op::Force(_) | Op::Debit(_) | Op::Test(_) | Op::Block => op,
    }
}

/// Returns the cost that other asks of the request take from the i-th ask's bucket before its turn; see
/// core's `step`.
pub(crate) fn cost_beside(request: &SlotAsks, i: usize) -> u64 {
    let Some(ask) = request.asks.get(i) else {
        return 0;
    };
    let comes_first = |j: usize, other: &OwnedAsk| match (other.mode, ask.mode) {
        (LimitMode::Enforce, LimitMode::Shadow) => true,
        (LimitMode::Shadow, LimitMode::Enforce) => false,
        _ => j < i,
    };
    request
        .asks
        .iter()
        .enumerate()
        .filter(|(j, other)| is_same_bucket(other, ask) && comes_first(*j, other))
        .fold(0, |sum, (_, other)| other.op.cost().saturating_add(sum))
}

fn push_row(shape: &mut Vec<u8>, ask: &OwnedAsk, spot: AskSlot, row: &AskRow) {
    let shadow = match ask.mode {
        LimitMode::Enforce => 0,
        LimitMode::Shadow => u32::from(ask.limit).saturating_add(1),
    };
    shape.push(ask.key);
    shape.push(row.op);
    push_count(shape, usize::from(spot.offset).saturating_add(1));
    push_count(shape, usize::from(spot.quota).saturating_add(1));
    shape.extend_from_slice(shadow.to_le_bytes().get(..3).unwrap_or_default());
    let numbers = [row.need, row.units, row.at];
    let receipt = row.receipt.into_iter().flatten().chain(row.by);
    for number in numbers.into_iter().chain(receipt) {
        push_number(shape, number);
    }
}

pub(super) fn push_number(program: &mut Vec<u8>, number: u64) {
    program.extend_from_slice(number.to_le_bytes().get(..7).unwrap_or_default());
}

pub(super) fn push_count(program: &mut Vec<u8>, count: usize) {
    program.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}
