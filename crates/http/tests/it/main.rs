//! Responses to clients, tested from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests fail like tests"
)]

mod answers; // every header format and every profile, exactly
mod kit; // limiters, and their responses as text
mod properties; // for every decision, the response is well-formed and true
mod time; // rounding of seconds, and clock times
mod words; // messages, names, and the choice of a body
