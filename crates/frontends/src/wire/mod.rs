//! The formats of check requests and responses.
//!
//! | module | what it is |
//! |---|---|
//! | [`question`] | a check request, parsed without copying |
//! | [`answer`] | a decision, written |
//! | [`reserve`] | a reservation, written |
//! | [`permit`] | permits of requests in flight: acquired, renewed, released |
//! | [`settle`] | settlements of reservations, parsed, and their results, written |
//! | [`problem`] | an error in place of a decision, in the format of RFC 9457 |
//! | [`fault`] | errors in the input, for people |
//! | [`rls`], `protobuf` | Envoy's rate limit service, and its encoding |
//! | [`json`] | the JSON underneath: a reader with precise errors, and a writer |
//! | `cost` | a cost: a number, or amounts by unit |
//! | `members`, `schema` | the members of each object, and their JSON Schema |
//!
//! `POST /v1/check` and `tidegate simulate` both use these modules, so both read and reject the same check
//! requests.

pub mod answer;
pub(crate) mod cost;
pub mod fault;
pub mod json;
pub(crate) mod members;
pub mod permit;
pub mod problem;
pub mod protobuf;
pub mod question;
pub mod reserve;
pub mod rls;
pub(crate) mod schema;
pub mod settle;
