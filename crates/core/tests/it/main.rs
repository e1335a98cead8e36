//! Tests of the algorithms against the model and against their guarantees.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod blocks;
mod calendar; // only a limit's first refusal blocks its subject
mod cas; // the compare-and-swap driver: the store laws over a map, skewed clocks, failures
mod change; // a new quota for existing buckets: kept, scaled or reset
mod clock_back; // a clock that runs backwards: refuses longer, never over, never permanently
mod coarse; // quotas too large for microseconds
mod envelope; // the units admitted in any interval
mod exact; // every field of every decision equals the model's
mod give_back; // refunds: never above the envelope, never more than the exact credit
mod honest; // reported waits, refusals and expiries are true
mod lent; // loans: parts of a charge are refunded seconds later, exactly or a little less
mod queue; // the queue of a token bucket: in order, never over
mod quotas; // which quotas can be represented, and the nearest that can
mod requests; // several buckets decided atomically
mod shares; // parts of a quota, and quotas that can be refunded
mod world; // random quotas and traces, for core and model alike
