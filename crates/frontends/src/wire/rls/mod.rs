//! Envoy's rate limit service on the wire: `envoy.service.ratelimit.v3`, encoded by hand.
//!
//! | module | what it is |
//! |---|---|
//! | [`read`] | `RateLimitRequest`, borrowed from its bytes |
//! | [`mod@write`] | `RateLimitResponse` |
//! | [`reserve`] | Kuadrant's `Reserve` and `Commit`, both ways |
//! | `unit` | units of time, shared by requests and responses |
//! | [`json`] | both as JSON, for `POST /json` |
//!
//! `docs/explanation/decisions/0018-rls-codec.md` gives the reasons against generated code. Tests and a fuzzer compare
//! both directions with prost.

pub mod json;
pub mod read;
pub mod reserve;
mod unit;
pub mod write;

pub use unit::name_of_period;
