//! The formats of input lines.
//!
//! | module | what it reads |
//! |---|---|
//! | [`trace`] | check requests with their time, in Tidegate's own format |
//! | [`combined`] | the access logs of nginx and Apache |
//! | [`access`] | access logs in JSON: Traefik, Envoy, Caddy |
//! | [`detect`] | the detection of the format |
//!
//! Each parses one line from arbitrary bytes, and never panics.

pub mod access;
pub mod combined;
pub mod detect;
mod target;
#[cfg(test)]
mod tests;
pub mod trace;

use super::event::Event;
use std::fmt;
use tidegate_frontends::wire::json::JsonResult;

/// The format of input lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Check requests with their time. A line that cannot be parsed is an error.
    Trace,
    /// The common or combined log format of nginx and Apache.
    Combined,
    /// An access log in JSON.
    Json,
}

impl InputFormat {
    /// Parses one line into `event`, which must be empty.
    #[inline]
    pub fn read<'a>(self, line: &'a [u8], event: &mut Event<'a>) -> JsonResult<()> {
        match self {
            Self::Trace => trace::read(line, event),
            Self::Combined => combined::read(line, event),
            Self::Json => access::read(line, event),
        }
    }

    /// Returns true if a line that cannot be parsed is skipped. Access logs contain input of untrusted
    /// clients, so invalid lines are expected; a trace is written deliberately.
    pub fn skips(self) -> bool {
        self != Self::Trace
    }
}

impl fmt::Display for InputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace => "a trace",
            Self::Combined => "an access log in the common or combined format",
            Self::Json => "an access log in JSON",
        })
    }
}
