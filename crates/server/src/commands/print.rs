//! Prints the output of a command.

use crate::failure::Failure;
use std::io::{self, ErrorKind, Write};

/// Prints `text` and ends the line.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{text}").and_then(|()| out.flush()) {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::runtime(format!("cannot print: {error}"))),
    }
}
