//! Prints what a command was asked for.

use crate::failure::Failure;
use std::io::{self, ErrorKind, Write};

/// Prints `text` and ends the line.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // Whoever reads it has had enough.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::runtime(format!("cannot print: {error}"))),
    }
}
