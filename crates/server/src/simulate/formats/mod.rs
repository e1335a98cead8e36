//! What the lines of an input look like.
//!
//! | module | what it reads |
//! |---|---|
//! | [`trace`] | questions with their time, as Tidegate defines them |
//! | [`combined`] | the access logs of nginx and Apache |
//! | [`access`] | access logs in JSON: Traefik, Envoy, Caddy |
//! | [`detect`] | which of them an input is |
//!
//! Each reads one line from bytes, whatever they are, and never panics.

pub mod access;
pub mod combined;
pub mod detect;
mod target;
#[cfg(test)]
mod tests;
pub mod trace;

use super::event::Event;
use crate::wire::json::JsonResult;
use std::fmt;

/// What the lines of an input look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputFormat {
    /// Questions with their time. A line that cannot be read is an error.
    Trace,
    /// The common or combined log format of nginx and Apache.
    Combined,
    /// An access log in JSON.
    Json,
}

impl InputFormat {
    /// Reads one line into `event`, which has to be as new.
    #[inline]
    pub fn read<'a>(self, line: &'a [u8], event: &mut Event<'a>) -> JsonResult<()> {
        match self {
            Self::Trace => trace::read(line, event),
            Self::Combined => combined::read(line, event),
            Self::Json => access::read(line, event),
        }
    }

    /// Whether a line that cannot be read is passed over. Access logs hold what strangers sent, so
    /// odd lines are to be expected; a trace is written on purpose.
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
