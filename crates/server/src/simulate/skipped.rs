//! Lines of an access log that cannot be parsed.

use std::fmt;
use tidegate_frontends::wire::fault::WireFault;

/// The number of skipped lines to show.
const SHOWN_MAX: u64 = 3;

/// Counts skipped lines, and selects the first few to show.
#[derive(Debug, Default)]
pub(super) struct SkippedLines {
    count: u64,
}

impl SkippedLines {
    /// Counts a line. Returns true if it should be shown.
    pub(super) fn add(&mut self) -> bool {
        self.count += 1;
        self.count <= SHOWN_MAX
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }
}

/// The error of a line, and its position.
#[derive(Debug)]
pub(super) struct BadLine {
    line: u64,
    /// The column, from 1; `None` if the whole line is invalid.
    column: Option<usize>,
    message: String,
}

impl BadLine {
    /// Returns an error of the whole line.
    #[cold]
    pub(super) fn whole(line: u64, message: String) -> Self {
        Self {
            line,
            column: None,
            message,
        }
    }

    /// Returns an error at one position of the line.
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
