//! One quota and one ask, as arguments of the script.
//!
//! The script counts *room*: the amount that can still be charged. For a token bucket that is
//! debt, for a window it is units. Values that do not depend on the state are computed here, once for all
//! requests of a shape: above all, the costs of other asks of the same request on the same bucket that
//! come first.

use crate::request::{OwnedAsk, RequestOp, SlotAsks};
use crate::script::record_id;
use tidegate_core::quota::{EXACT_MAX, WINDOW_PARTS};
use tidegate_core::{Algorithm, Align, LimitMode, Op, Quota, Receipt, Timestamp, step};

/// Kinds of quotas, as in `program.lua`.
const TOKENS: u8 = 1;
const TOKENS_REFUNDABLE: u8 = 2;
const FIXED: u8 = 3;
const SLIDING: u8 = 4;
const LOG: u8 = 5;
const TOKENS_LENT: u8 = 6;
const CALENDAR: u8 = 7;
/// Flag next to the kind: the basis of the quota follows.
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
        // Refused before it is sent.
        Algorithm::Concurrent => (FIXED, period, 0),
        Algorithm::SlidingWindow => (SLIDING, period / quota.tick_us().max(1), 0),
        Algorithm::SlidingLog => (LOG, period, 0),
        Algorithm::BucketedWindow => (LOG, period, period.div_ceil(WINDOW_PARTS)),
        Algorithm::CalendarWindow => (CALENDAR, period, u64::from(quota.calendar().is_some())),
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
    if kind == CALENDAR {
        for start in quota.starts() {
            push_number(program, start.min(EXACT_MAX));
        }
    }
}

/// An ask's place in the script.
#[derive(Clone, Copy, Debug)]
pub(super) struct AskSlot {
    /// The place of the key, from 0.
    pub(super) offset: u16,
    /// The quota of the call, from 0.
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

/// The phase in which an ask is executed: refunds first, then enforced asks, then shadows, and last the
/// returns, which need all of that to succeed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskPhase {
    GiveBack,
    Enforced,
    Shadow,
    Return,
}

impl AskPhase {
    /// Returns the phase of an ask.
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

/// Returns true if two asks of one request use the same bucket.
pub(super) fn is_same_bucket(one: &OwnedAsk, other: &OwnedAsk) -> bool {
    one.key == other.key && record_id(&one.quota) == record_id(&other.quota)
}

/// The arguments of an ask, apart from its place.
struct AskRow {
    op: u8,
    /// The room that there must be.
    need: u64,
    /// The units that are taken or refunded.
    units: u64,
    /// When it was taken; of a limit that blocks, its number and one more.
    at: u64,
    /// The rest of the receipt of a refund: until when it was owed, the credits by then, and the part
    /// of them that is behind.
    receipt: Option<[u64; 3]>,
    /// The last instant of a refund that is not unconditional.
    by: Option<u64>,
}

impl AskRow {
    /// Returns the arguments of an operation without a cost.
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

    /// Returns the arguments of a refund.
    fn giving(op: u8, units: u64, receipt: Receipt) -> Self {
        Self {
            units,
            at: receipt.at.as_micros(),
            receipt: Some([receipt.until.as_micros(), receipt.mark, receipt.behind]),
            ..Self::of(op)
        }
    }

    /// Sets the instant, or the number of the limit.
    fn at(self, at: u64) -> Self {
        Self { at, ..self }
    }
}

/// The room that an ask needs, in the script's units.
struct AskRoom<'a> {
    request: &'a SlotAsks,
    /// The number of the ask.
    nth: usize,
    quota: &'a Quota,
}

impl AskRoom<'_> {
    /// Returns the room that `cost` takes.
    fn units(&self, cost: u64) -> u64 {
        let (_, price) = self.quota.drain_and_price();
        cost.saturating_mul(price).min(EXACT_MAX)
    }

    /// Returns the room that `op` needs after the asks that come first; 0 if it never refuses.
    fn needed(&self, op: Op) -> u64 {
        let needed = op.needs();
        if needed == 0 {
            return 0;
        }
        let together = needed.saturating_add(cost_beside(self.request, self.nth));
        // Regardless of the queue, no more than the capacity ever passes at the same time.
        let is_bucket = self.quota.algorithm() == Algorithm::TokenBucket;
        if is_too_large(needed, self.quota) || (is_bucket && together > self.quota.capacity()) {
            EXACT_MAX
        } else {
            self.units(together)
        }
    }
}

/// Returns the arguments of the ask numbered `nth`.
fn row(request: &SlotAsks, nth: usize, ask: &OwnedAsk) -> AskRow {
    let op = match ask.op {
        RequestOp::Engine(op) => op,
        RequestOp::Drop => return AskRow::of(DROP),
        RequestOp::Inspect => return AskRow::of(INSPECT),
    };
    let quota = &ask.quota;
    let room = AskRoom {
        request,
        nth,
        quota,
    };
    let op = exact(op, quota);
    let charge = |kind| AskRow {
        need: room.needed(op),
        units: room.units(op.cost()),
        // Without a cost, it starts no block.
        at: if op.cost() > 0 {
            blocked(request, ask)
        } else {
            0
        },
        ..AskRow::of(kind)
    };
    match op {
        Op::Take(1..) => charge(TAKE),
        // A debit is charged like a forced charge, but refuses if it does not fit.
        Op::Force(1..) | Op::Debit(_) => charge(FORCE),
        Op::Block => match blocked(request, ask) {
            0 => AskRow {
                need: room.needed(op),
                ..AskRow::of(LOOK)
            },
            at => AskRow {
                need: room.needed(op),
                units: room.units(1),
                at,
                ..AskRow::of(BLOCK)
            },
        },
        Op::GiveBack(receipt) => AskRow::giving(GIVE_BACK, room.units(receipt.cost), receipt),
        Op::Return { receipt, by } => AskRow {
            by: Some(by.as_micros()),
            ..AskRow::giving(RETURN, room.units(receipt.cost), receipt)
        },
        // A test is a look that may refuse. Permits are refused before they are sent.
        Op::Look
        | Op::Test(_)
        | Op::Take(0)
        | Op::Force(0)
        | Op::Acquire(_)
        | Op::Renew { .. }
        | Op::Release(_) => AskRow {
            need: room.needed(op),
            ..AskRow::of(LOOK)
        },
    }
}

/// Returns the number that links `ask` to the block that its refusal charges: the number of their limit
/// plus one. 0 if no refusal does: there is no block, or the cost can never pass the limit.
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

/// Returns true if no wait helps the take; see core's `step`.
fn never_passes(request: &SlotAsks, i: usize, ask: &OwnedAsk) -> bool {
    let quota = &ask.quota;
    let RequestOp::Engine(op) = ask.op else {
        return false;
    };
    let together = op.needs().saturating_add(cost_beside(request, i));
    op.cost() > 0 && (is_too_large(op.needs(), quota) || together > quota.capacity())
}

/// Returns true if a bucket never has so many units at once.
fn is_too_large(units: u64, quota: &Quota) -> bool {
    units > quota.cost_max()
}

/// Returns the operation as both script and engine use it. No charge exceeds 2^53 units of debt or is
/// later than 2^53 microseconds, and a receipt beyond that would leave exact arithmetic.
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
        Op::Look
        | Op::Take(_)
        | Op::Force(_)
        | Op::Debit(_)
        | Op::Test(_)
        | Op::Block
        | Op::Acquire(_)
        | Op::Renew { .. }
        | Op::Release(_) => op,
    }
}

/// Returns the cost that other asks of the request take from the i-th ask's bucket before its turn.
pub(crate) fn cost_beside(request: &SlotAsks, i: usize) -> u64 {
    let Some(ask) = request.asks.get(i) else {
        return 0;
    };
    let asks = request.asks.iter().enumerate();
    let same = asks.filter(|(_, other)| is_same_bucket(other, ask));
    let same = same.map(|(j, other)| (j, other.mode, other.op.cost()));
    step::cost_ahead(same, (i, ask.mode))
}

/// Writes the arguments of an ask, as `program.lua` reads them.
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

/// Writes a number in seven bytes: all numbers are below 2^53.
pub(super) fn push_number(program: &mut Vec<u8>, number: u64) {
    program.extend_from_slice(number.to_le_bytes().get(..7).unwrap_or_default());
}

/// Writes a count in two bytes.
pub(super) fn push_count(program: &mut Vec<u8>, count: usize) {
    program.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
}
