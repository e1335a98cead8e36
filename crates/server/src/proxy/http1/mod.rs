//! HTTP/1 as spoken to upstreams.
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | one connection, driven by whoever uses it |
//! | `write` | the head of a request, and chunks, as bytes |
//! | `sending` | a request on its way |
//! | `input` | what came and was not taken yet |
//! | `read` | the head of an answer, from bytes |
//! | `interim` | interim answers, passed on to the client |
//! | `framing` | where an answer ends, by what its head says |
//! | `content` | the body of an answer, from bytes |
//! | `chunks` | the same, of a body that comes in chunks |
//! | `deadline` | how long an answer may take |
//! | `whole` | an answer without a connection, for tests and fuzzers |
//! | `fault` | what goes wrong with connections |

mod chunks;
mod content;
mod deadline;
mod fault;
mod framing;
mod input;
mod interim;
mod read;
mod sending;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "fuzzing"))]
#[cfg_attr(
    not(feature = "fuzzing"),
    expect(unreachable_pub, reason = "only fuzzers come from outside")
)]
pub mod whole;
mod wire;
mod write;

pub(crate) use fault::Http1Fault;
pub(crate) use interim::Interim;
pub(crate) use wire::{ReadTerms, UpstreamHttp1};
