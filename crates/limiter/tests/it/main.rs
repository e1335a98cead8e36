//! The façade as its users see it.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking, its helpers as well"
)]

/// The first refusal, and for how long.
mod blocks;
/// Building limiters, and what is refused.
mod building;
/// What becomes of buckets when numbers change.
mod changes;
/// What a decision says.
mod decisions;
/// Requests that a proxy describes.
mod descriptors;
/// What happens when the store cannot tell.
mod failure;
/// Who may not pass at all, and whom no limit applies to.
mod guards;
/// The hits of every limit.
mod hits;
/// Documents of other limiters, request by request.
mod imported;
/// How little it matters how many limits there are.
mod many;
/// Keys that find no room share buckets.
mod overflow;
/// Rates that come from plans.
mod plans;
/// What the builder was told, when another configuration comes.
mod reload;
/// Everything decided and counted, and nobody refused.
mod shadow;
/// Variables and files that a configuration names.
mod surroundings;
/// Decisions that must come out to the letter.
mod vectors;
