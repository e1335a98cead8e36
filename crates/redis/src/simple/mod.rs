//! The usual request, as cheap as it gets: one unrefundable token bucket.
//!
//! Such requests commute unless they mean the same key, so a call names each key once and says what
//! is asked of it, in order, as runs of equal costs. Keys of which the same is asked form a group
//! that is described once. A thousand requests on one hot key are one key, one read, one write.

mod decide;
mod entries;

pub(crate) use decide::decide;
pub(crate) use entries::Entries;

use crate::request::{Request, RequestOp};
use crate::script::{Script, ScriptClock};
use tidegate_core::{Algorithm, Mode, Op, Quota};

/// What a key weighs, in tenths of a microsecond of Redis' time.
pub(crate) const KEY_WEIGHT: u32 = 35;

/// The script.
pub(crate) fn script(clock: ScriptClock) -> Script {
    Script::new("simple", clock.fill(include_str!("simple.lua")))
}

/// The bucket and the cost, where a request is as simple as this call needs it to be.
pub(crate) fn only_take(request: &Request) -> Option<(&Quota, u64)> {
    let [ask] = request.asks.as_slice() else {
        return None;
    };
    let quota = &ask.quota;
    let RequestOp::Engine(Op::Take(cost)) = ask.op else {
        return None;
    };
    let is_simple = ask.mode == Mode::Enforce
        && quota.algorithm() == Algorithm::TokenBucket
        && quota.tick_us() == 1
        && !quota.is_refundable()
        && !quota.scales()
        && (1..=quota.cost_max()).contains(&cost);
    is_simple.then_some((quota, cost))
}
