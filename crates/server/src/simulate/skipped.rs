//! Lines of an access log that cannot be read.

use crate::wire::fault::WireFault;
use std::fmt;

/// How many of them are shown.
const SHOWN_MAX: u64 = 3;

/// Counts lines that were passed over, and has something to say about the first few.
#[derive(Debug, Default)]
pub(super) struct SkippedLines {
    count: u64,
}

impl SkippedLines {
    /// Counts one, and says whether it should be shown.
    pub(super) fn add(&mut self) -> bool {
        self.count += 1;
        self.count <= SHOWN_MAX
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// What is wrong with a line, and where that is.
#[derive(Debug)]
pub(super) struct BadLine {
    line: u64,
    /// From 1; absent where it is the line as a whole.
    column: Option<usize>,
    message: String,
}

impl BadLine {
    /// Something is wrong with the line as a whole.
    #[cold]
    pub(super) fn whole(line: u64, message: String) -> Self {
        Self {
            line,
            column: None,
            message,
        }
    }

    /// Something is wrong at one place of the line.
    #[cold]
    pub(super) fn at(line: u64, text: &[u8], fault: &WireFault) -> Self {
        Self {
            line,
            column: Some(fault.column(text)),
            message: fault.to_string(),
        }
    }
}

impl fmt::Display for BadLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.line)?;
        if let Some(column) = self.column {
            write!(f, ":{column}")?;
        }
        write!(f, ": {}", self.message)
    }
}
