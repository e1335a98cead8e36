//! The form in which questions come in and answers go out, at every door that speaks JSON.
//!
//! | module | what it is |
//! |---|---|
//! | [`question`] | a question, read without copying what it holds |
//! | [`answer`] | a decision, written |
//! | [`problem`] | why there is no decision, as RFC 9457 has it |
//! | [`fault`] | what is wrong with what came in, for people |
//! | [`json`] | the JSON underneath: a reader that says where and what is wrong, and a writer |
//!
//! `POST /v1/check` and `tidegate simulate` both use these, so that a question means the same to
//! both, down to what is refused.

pub mod answer;
pub mod fault;
pub mod json;
pub mod problem;
pub mod question;
