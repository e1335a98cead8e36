//! HTTP/1 to upstreams.
//!
//! | module | what it is |
//! |---|---|
//! | `wire` | one connection, driven by the task that uses it |
//! | `write` | the request head, and chunks, as bytes |
//! | `sending` | a request that is being sent |
//! | `input` | bytes received and not yet taken |
//! | `read` | the response head, parsed |
//! | `template` | response heads that have the same fields as an earlier one |
//! | `framing` | the framing of a response body, from its headers |
//! | `content` | the body of a response, parsed |
//! | `chunks` | a chunked body, parsed |
//! | `deadline` | the deadline of a response |
//! | `whole` | a response without a connection, for tests and fuzzers |

mod chunks;
mod content;
mod deadline;
mod framing;
mod input;
mod read;
mod sending;
mod template;
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

pub(crate) use wire::{ReadTerms, UpstreamHttp1};
