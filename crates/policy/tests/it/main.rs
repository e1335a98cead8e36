//! The configuration language, from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail like tests"
)]

mod bad; // every mistake, and the message for it, to the letter
mod environment; // variables, files, overrides, secrets
mod explain; // what a configuration means, to the letter
mod good; // what must load, and what it then means
mod robust; // no text, however odd, does harm
