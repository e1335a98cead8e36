//! Prints the output of a command.

use anstream::AutoStream;
use std::io::{self, ErrorKind, Write};
use tidegate_control::failure::Failure;

/// Prints `text` and ends the line.
pub(super) fn line(text: &str) -> Result<(), Failure> {
    bytes(format!("{text}\n").as_bytes())
}

/// Prints `text` and ends the line. Its styles are removed unless standard output shows colours.
///
/// It is one write, so that a line of the log cannot stand inside a line of the output.
pub(super) fn styled_line(text: &str) -> Result<(), Failure> {
    let choice = AutoStream::choice(&io::stdout());
    let mut shown = AutoStream::new(Vec::new(), choice);
    printed(writeln!(shown, "{text}"))?;
    bytes(&shown.into_inner())
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
