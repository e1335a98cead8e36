//! The arguments of the script in the usual case; `plain.lua` describes the form.

use super::row::{AskSlot, push_number};
use crate::request::SlotAsks;
use crate::script::record_id;
use smallvec::SmallVec;
use tidegate_core::{Algorithm, Align, Quota};

/// Kinds, as in `program.lua`.
const TOKENS: u8 = 1;
/// The kind of a fixed window, as in `plain.lua`.
const FIXED: u8 = 3;

/// Returns true if a quota's record is two numbers, counted in microseconds.
pub(super) fn is_plain(quota: &Quota) -> bool {
    match quota.algorithm() {
        _ if quota.scales() => false,
        Algorithm::TokenBucket => quota.tick_us() == 1 && !quota.is_refundable(),
        Algorithm::FixedWindow(_) => true,
        Algorithm::SlidingWindow
        | Algorithm::SlidingLog
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => false,
    }
}

/// Appends the bands under a key.
pub(super) fn push_class<'a>(program: &mut Vec<u8>, bands: impl Iterator<Item = &'a Quota>) {
    let at = program.len();
    program.push(0);
    for quota in bands {
        if let Some(length) = program.get_mut(at) {
            *length = length.saturating_add(1);
        }
        let (drain, price) = quota.drain_and_price();
        let full = quota.capacity().saturating_mul(price);
        let over = quota.overdraft().saturating_mul(price);
        let (kind, pace, more) = match quota.algorithm() {
            Algorithm::FixedWindow(align) => {
                (FIXED, quota.period_us(), u64::from(align == Align::Clock))
            }
            // The last five are never plain.
            Algorithm::TokenBucket
            | Algorithm::SlidingWindow
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => {
                let ahead = full.saturating_add(over) / drain.max(1);
                (TOKENS, drain, ahead.saturating_add(1))
            }
        };
        program.push(kind);
        program.extend_from_slice(record_id(quota).to_le_bytes().get(..6).unwrap_or_default());
        for number in [full, pace, more] {
            push_number(program, number);
        }
    }
}

/// Appends what a request takes from each band under each of its keys.
pub(super) fn push_shape(shape: &mut Vec<u8>, request: &SlotAsks, spots: &[AskSlot]) {
    shape.push(u8::try_from(request.keys.len()).unwrap_or(u8::MAX));
    for key in (0..=u8::MAX).take(request.keys.len()) {
        let mut takes: SmallVec<[(u16, u64); 4]> = request
            .asks
            .iter()
            .zip(spots)
            .filter(|(ask, _)| ask.key == key)
            .map(|(ask, spot)| {
                let cost = ask.op.cost();
                let price = ask.quota.drain_and_price().1;
                (spot.offset, cost.saturating_mul(price))
            })
            .collect();
        takes.sort_unstable();
        shape.push(u8::try_from(takes.len()).unwrap_or(u8::MAX));
        for (_, units) in takes {
            push_number(shape, units.min(tidegate_core::quota::EXACT_MAX));
        }
    }
}
