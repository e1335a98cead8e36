//! The further arguments of the open script, and their weight.

use super::key::{Form, OpenKey};
use crate::request::{RedisKey, RequestOp, SlotAsks};
use tidegate_core::{Algorithm, Op, Quota};

/// Returns the price of a unit under each quota and the debt of an empty bucket (`I7` each; a queue may
/// owe more, for which the documents have no form), and a flag for blocks, whose windows do not begin
/// on a second (`B`); then for each key its form (`B`) and, if it is a field, the field (`I2` and that
/// many bytes).
pub(crate) fn push_forms(quotas: &[Quota], keys: &[RedisKey]) -> Vec<u8> {
    let mut forms = Vec::with_capacity(16);
    for quota in quotas {
        let price = quota.drain_and_price().1;
        for number in [price, quota.capacity().saturating_mul(price)] {
            forms.extend_from_slice(number.to_le_bytes().get(..7).unwrap_or_default());
        }
        forms.push(u8::from(quota.is_block()));
    }
    for key in keys {
        let key = OpenKey::read(key);
        forms.push(key.form as u8);
        if key.form == Form::Window {
            let length = u16::try_from(key.field.len()).unwrap_or(u16::MAX);
            forms.extend_from_slice(&length.to_le_bytes());
            forms.extend_from_slice(key.field.get(..length.into()).unwrap_or_default());
        }
    }
    forms
}

/// Reading and writing one key, in tenths of a microsecond of Redis' time: several commands, and text
/// to read and to write.
const KEY_WEIGHT: u32 = 90;

/// Looking at fields whose windows may be over.
const WINDOW_WEIGHT: u32 = 60;

/// A member of a sorted set.
const MEMBER_WEIGHT: u64 = 10;

/// So many members of a set are read in any case.
const SHORT: u64 = 16;

/// About how much of Redis' time a request takes, in tenths of a microsecond.
pub(crate) fn weight(request: &SlotAsks) -> u32 {
    let keys = u32::try_from(request.keys.len()).unwrap_or(u32::MAX);
    let asks = request.asks.iter().fold(0_u32, |sum, ask| {
        let extra = match ask.quota.algorithm() {
            Algorithm::FixedWindow(_) => WINDOW_WEIGHT,
            Algorithm::SlidingLog => {
                let amount = ask.quota.amount();
                let members = match ask.op {
                    RequestOp::Engine(
                        Op::Take(cost) | Op::Force(cost) | Op::Debit(cost) | Op::Test(cost),
                    ) => amount.min(SHORT).saturating_add(cost),
                    RequestOp::Engine(
                        Op::Look
                        | Op::GiveBack(_)
                        | Op::Return { .. }
                        | Op::Block
                        | Op::Acquire(_)
                        | Op::Renew { .. }
                        | Op::Release(_),
                    )
                    | RequestOp::Drop
                    | RequestOp::Inspect => amount,
                };
                let weight = members.saturating_mul(MEMBER_WEIGHT);
                u32::try_from(weight).unwrap_or(u32::MAX)
            }
            Algorithm::TokenBucket
            | Algorithm::SlidingWindow
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => 0,
        };
        sum.saturating_add(extra)
    });
    keys.saturating_mul(KEY_WEIGHT).saturating_add(asks)
}
