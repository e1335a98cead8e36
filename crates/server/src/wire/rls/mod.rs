//! Envoy's rate limit service on the wire: `envoy.service.ratelimit.v3`, by hand.
//!
//! | module | what it is |
//! |---|---|
//! | [`read`] | `RateLimitRequest`, borrowed from the bytes that it came in |
//! | [`mod@write`] | `RateLimitResponse` |
//! | [`reserve`] | Kuadrant's `Reserve` and `Commit`, both ways |
//! | `unit` | units of time, as both have them |
//! | [`json`] | both as JSON, for `POST /json` |
//!
//! Why not generated code: see `docs/decisions/0018-rls-codec.md`. The tests hold both directions
//! against prost, and so does a fuzzer.

pub mod json;
pub mod read;
pub mod reserve;
mod unit;
pub mod write;

pub(crate) use unit::name_of_period;
