//! The memory store against the laws, the model, many threads and attackers.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

mod crowd; // many threads: exact counts, no deadlock
mod full; // a full store: overflow buckets, no limited client forgotten, bounded memory
mod kept; // stored state: inspect, reset, clamp, stats
mod late; // threads that read the clock, and were then suspended
mod laws; // the store laws
mod model; // many keys and quotas in one small store, against the model
mod moving; // quotas that change so that a bucket moves between the table and the records
mod overflow; // keys without a slot, and the keys that they do not affect
mod permits; // requests in flight: in a full store, over a reset and over a restart
mod shop; // a store with a manual clock, and quotas for it
mod snapshot; // a store that is written, and read by the next process
