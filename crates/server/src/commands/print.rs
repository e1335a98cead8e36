//! Prints the output of a command.

use std::io::{self, ErrorKind, Write};
use tidegate_control::failure::Failure;

/// Prints `text` and ends the line.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints `text` and ends the line. Its styles are removed unless standard output shows colours.
pub(super) fn styled_line(text: &str) -> Result<(), Failure> {
    let mut out = anstream::stdout().lock();
    printed(writeln!(out, "{text}").and_then(|()| out.flush()))
}

/// Prints `bytes` as they are.
pub(super) fn bytes(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    printed(out.write_all(bytes).and_then(|()| out.flush()))
}

fn printed(written: io::Result<()>) -> Result<(), Failure> {
    match written {
        // The reader has closed the pipe.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| Failure::runtime(format!("cannot print: {error}"))),
    }
}
