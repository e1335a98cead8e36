//! The façade as its users see it.

/// Building limiters, and what is refused.
mod building;
/// What a decision says.
mod decisions;
/// Decisions that must come out to the letter.
mod vectors;
