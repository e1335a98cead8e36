//! The façade from the view of its users.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking, its helpers as well"
)]

/// Blocks after the first refusal, and their duration.
mod blocks;
/// Building limiters, and invalid settings.
mod building;
/// Windows of the calendar.
mod calendar;
/// The state of buckets when numbers change.
mod changes;
/// The contents of a decision.
mod decisions;
/// Requests that a proxy describes.
mod descriptors;
/// Decisions if the store does not answer.
mod failure;
/// Clients that are refused outright, or exempt from all limits.
mod guards;
/// The hits of every limit.
mod hits;
/// Documents of other limiters, request by request.
mod imported;
/// Requests in flight: permits, and their release.
mod in_flight;
/// The cost of a decision with many limits.
mod many;
/// Keys without room share buckets.
mod overflow;
/// Rates that come from plans.
mod plans;
/// Rates in numbers, and limits by a key alone.
mod rates;
/// Settings made in code, across reloads.
mod reload;
/// Shadow mode: everything decided and counted, and no request refused.
mod shadow;
/// A store whose callers have another clock.
#[path = "../common/skewed.rs"]
mod skewed;
/// Buckets in memory that survive a restart.
mod snapshot;
/// Variables and files that a configuration names.
mod surroundings;
/// Limits that count different things in one policy.
mod units;
/// Requests without the address that a limit needs.
mod unknown_clients;
/// Decisions that must match exactly.
mod vectors;
