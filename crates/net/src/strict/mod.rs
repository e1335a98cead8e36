//! A strict reader of HTTP/1 requests, which runs before hyper's.
//!
//! A gateway is between two readers of the same bytes. If they differ about the end of a request, a client
//! can hide one request within another and evade every limit (request smuggling). Some readers, hyper's
//! included, tolerate most such requests. This one tolerates nothing ambiguous; it knows only the boundaries
//! of requests, and keeps only a few numbers.
//!
//! | module | what it is |
//! |---|---|
//! | `reader` | the position in a request, byte after byte |
//! | `request_line`, `lines`, `content` | its parts: their syntax and order |
//! | `message` | the framing of the request: lengths, hosts, version |
//! | `field` | the relevant header fields |
//! | `bytes` | classes of bytes in tokens, targets and numbers |
//! | `reason` | the reasons for rejecting a request |

mod bytes;
mod content;
mod field;
mod lines;
mod message;
mod reader;
mod reason;
mod request_line;
#[cfg(test)]
pub(super) mod tests;

pub(super) use reader::{ReadStop, StrictReader};
#[cfg(test)]
use reason::StrictReason;
