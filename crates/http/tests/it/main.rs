//! What clients are told, from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests"
)]

mod answers; // every dialect and every profile, to the letter
mod kit; // limiters to ask, and their answers as text
mod properties; // whatever is decided, an answer is well-formed and tells no lie
mod time; // how seconds are rounded, and which clock instants follow
mod words; // messages, names, and what is said where
