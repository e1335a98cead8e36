//! What is wrong with a configuration, shown to people.

use super::excerpt::Excerpt;
use super::fault::Fault;
use super::syntax::Place;
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong, or odd, and where.
///
/// It displays with the file, the line as written (without its secrets) and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    file: Arc<str>,
    severity: Severity,
    place: Place,
    path: String,
    fault: Fault,
    excerpt: Option<Excerpt>,
}

/// Whether a problem stops the configuration from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, but is unlikely to be meant.
    Warning,
}

/// Everything that is wrong with a configuration, in the order of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    file: Arc<str>,
    problems: Vec<Problem>,
    /// Problems beyond those that are kept.
    more: usize,
}

// === impl Problem ===

impl Problem {
    pub(crate) fn new(
        file: Arc<str>,
        severity: Severity,
        (place, path): (Place, String),
        fault: Fault,
        excerpt: Option<Excerpt>,
    ) -> Self {
        Self {
            file,
            severity,
            place,
            path,
            fault,
            excerpt,
        }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Returns true if it is this fault at this place, through whichever alias.
    pub(super) fn is(&self, file: &str, place: Place, fault: &Fault) -> bool {
        self.fault == *fault && &*self.file == file && self.place.written() == place.written()
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Whether it stops the configuration from being used.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The line, from 1, unless an environment variable is at fault.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            Place::File { line, .. } => Some(line),
            Place::Variable(_) => None,
        }
    }

    /// The column in characters, from 1, unless an environment variable is at fault.
    pub fn column(&self) -> Option<usize> {
        match self.place {
            Place::File { column, .. } => Some(column),
            Place::Variable(_) => None,
        }
    }

    /// The environment variable at fault, if it is not the file.
    pub fn variable(&self) -> Option<&str> {
        match self.place {
            Place::File { .. } => None,
            Place::Variable(name) => Some(name),
        }
    }

    /// Which setting it is, such as `policies[0].limits[1].key`; empty for the file as a whole.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What is wrong.
    pub fn message(&self) -> &str {
        &self.fault.message
    }

    /// What to do about it.
    pub fn help(&self) -> Option<&str> {
        self.fault.help.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::File { line, column, .. } => write!(f, "{}:{line}:{column}: ", self.file)?,
            Place::Variable(name) => write!(f, "environment variable {name}: ")?,
        }
        if self.severity == Severity::Warning {
            f.write_str("warning: ")?;
        }
        writeln!(f, "{}", self.fault.message)?;
        if let (Some(excerpt), Some(line)) = (&self.excerpt, self.line()) {
            writeln!(f, "{line:>5} | {}", excerpt.line)?;
            writeln!(f, "      | {}", excerpt.underline)?;
        }
        if let Some(line) = self.place.alias() {
            writeln!(f, "   note: repeated by the alias on line {line}")?;
        }
        if let Some(help) = self.help() {
            writeln!(f, "   help: {help}")?;
        }
        Ok(())
    }
}

// === impl ConfigErrors ===

impl ConfigErrors {
    pub(crate) fn new(file: Arc<str>, problems: Vec<Problem>, more: usize) -> Self {
        Self {
            file,
            problems,
            more,
        }
    }

    /// The problems, in the order of the file; those of environment variables come last.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// How many there are, including those that are too many to keep.
    pub fn count(&self) -> usize {
        self.problems.len().saturating_add(self.more)
    }

    /// The name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        let errors = if self.count() == 1 { "error" } else { "errors" };
        write!(f, "{}: {} {errors}", self.file, self.count())?;
        if self.more > 0 {
            write!(f, ", of which the first {} are shown", self.problems.len())?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
