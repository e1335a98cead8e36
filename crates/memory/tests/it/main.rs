//! The memory store against the laws, the model, crowds and attackers.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod crowd; // many threads: exact counts, no deadlock
mod full; // what a full store does: overflow buckets, nobody forgotten, bounded memory
mod kept; // what is kept: inspect, reset, settle, stats
mod late; // threads that read the clock, and then slept
mod laws; // the laws that every store obeys
mod model; // many keys and quotas in one small store, against the model
mod moving; // quotas that change so that a bucket moves between the table and the records
mod overflow; // keys for which no place is left, and those that they do not disturb
mod shop; // a store with a clock moved by hand, and quotas for it
