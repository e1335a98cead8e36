//! The form in which questions come in and answers go out.
//!
//! | module | what it is |
//! |---|---|
//! | [`question`] | a question, read without copying what it holds |
//! | [`answer`] | a decision, written |
//! | [`reserve`] | a reservation, written |
//! | [`settle`] | what settles reservations, read, and what comes of it, written |
//! | [`problem`] | why there is no decision, as RFC 9457 has it |
//! | [`fault`] | what is wrong with what came in, for people |
//! | [`rls`], `protobuf` | Envoy's rate limit service, and what it is written in |
//! | [`json`] | the JSON underneath: a reader that says where and what is wrong, and a writer |
//!
//! `POST /v1/check` and `tidegate simulate` both use these, so that a question means the same to
//! both, down to what is refused.

pub mod answer;
pub mod fault;
pub mod json;
pub mod problem;
pub(crate) mod protobuf;
pub mod question;
pub mod reserve;
pub mod rls;
pub mod settle;
