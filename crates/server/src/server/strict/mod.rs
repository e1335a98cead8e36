//! A strict reader of HTTP/1 requests, which runs before hyper's.
//!
//! A gateway stands between two readers of the same bytes. Where they differ about the end of a
//! request, a client can hide one request within another and talk past every limit. Most of what is
//! sent for that is tolerated by some reader or other, hyper's included. This one tolerates nothing
//! that two could read in two ways; it knows where requests begin and end and nothing else of them, and
//! keeps nothing but a few numbers.
//!
//! | module | what it is |
//! |---|---|
//! | `reader` | where in a request we are, byte after byte |
//! | `request_line`, `lines`, `content` | its parts: what may stand there, and what comes next |
//! | `message` | what is known of the request: lengths, hosts, version |
//! | `field` | the header fields that matter |
//! | `bytes` | what tokens, targets and numbers are made of |
//! | `reason` | why a request is refused |

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
