//! The algorithms against the model, and against what they promise.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod blocks; // the first refusal of a limit closes it, and nothing else does
mod cas; // the compare-and-swap driver: the laws over a map, clocks that differ, failures
mod change; // other numbers for the same buckets: kept, scaled or begun anew
mod clock_back; // a clock that runs backwards: refuses longer, never over, and not for ever
mod coarse; // quotas too large for microseconds
mod envelope; // what passes in any interval
mod exact; // every field of every decision equals the model's
mod give_back; // refunds: never above the envelope, never more than the exact credit
mod honest; // waits, refusals, expiry: what a decision says of itself is true
mod lent; // loans: parts of a charge come back seconds later, exactly or a little less
mod queue; // places in the debt of a token bucket: in order, never over
mod quotas; // what can be represented, and the nearest that can
mod requests; // several buckets in one step
mod shares; // parts of a quota, and quotas that can be refunded
mod world; // random quotas and traces, for core and model alike
