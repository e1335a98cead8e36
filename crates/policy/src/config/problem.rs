//! What is wrong with a configuration, shown to people.

use super::excerpt::Excerpt;
use super::fault::ConfigFault;
use super::syntax::TextSpan;
use std::fmt;
use std::sync::Arc;

/// One thing that is wrong, or odd, and where.
///
/// It displays with the file, the line as written (without its secrets) and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    file: Arc<str>,
    severity: Severity,
    place: TextSpan,
    path: String,
    fault: ConfigFault,
    excerpt: Option<Excerpt>,
    /// The variables that the value refers to.
    variables: Vec<String>,
    /// More lines on which the same variables cause the same problem, up to [`LINES_MAX`].
    more_lines: Vec<usize>,
}

/// The most lines that are listed of one problem.
const LINES_MAX: usize = 5;

/// Whether a problem stops the configuration from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// It does.
    Error,
    /// It does not, but is unlikely to be meant.
    Warning,
}

/// Everything that is wrong with a configuration, in the order of the file.
///
/// Its `Debug` is its `Display`, because that is what a program prints whose `main` returns it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    file: Arc<str>,
    problems: Vec<ConfigProblem>,
    /// Problems beyond those that are kept.
    more: usize,
}

// === impl Problem ===

impl ConfigProblem {
    pub(crate) fn new(
        file: Arc<str>,
        severity: Severity,
        (place, path): (TextSpan, String),
        fault: ConfigFault,
        variables: Vec<String>,
    ) -> Self {
        Self {
            file,
            severity,
            place,
            path,
            fault,
            excerpt: None,
            variables,
            more_lines: Vec::new(),
        }
    }

    /// Adds the line that it points at.
    pub(super) fn with_excerpt(self, excerpt: Option<Excerpt>) -> Self {
        Self { excerpt, ..self }
    }

    pub(super) fn place(&self) -> TextSpan {
        self.place
    }

    /// Returns true if another problem need not be reported, and adds its line to this one if it has
    /// another. It is the same fault at the same place through another alias, or caused by the same
    /// variable.
    pub(super) fn covers(&mut self, other: &Self) -> bool {
        if self.file != other.file {
            return false;
        }
        if let (TextSpan::Variable(one), TextSpan::Variable(two)) = (self.place, other.place) {
            let is_same = self.fault == other.fault || !self.is_same_setting(other);
            return one == two && is_same;
        }
        if self.place.written() == other.place.written() {
            return self.fault == other.fault;
        }
        let covers = !self.variables.is_empty()
            && self.variables == other.variables
            && self.fault.message == other.fault.message;
        if let (true, Some(line)) = (covers, other.line())
            && self.more_lines.len() < LINES_MAX
            && self.line() != Some(line)
            && !self.more_lines.contains(&line)
        {
            self.more_lines.push(line);
        }
        covers
    }

    /// Returns true for the same setting, and for items of the same list.
    fn is_same_setting(&self, other: &Self) -> bool {
        let setting = |path: &str| {
            path.trim_end_matches(|c: char| "[]".contains(c) || c.is_ascii_digit())
                .to_owned()
        };
        setting(&self.path) == setting(&other.path)
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
            TextSpan::File { line, .. } => Some(line),
            TextSpan::Variable(_) => None,
        }
    }

    /// The column in characters, from 1, unless an environment variable is at fault.
    pub fn column(&self) -> Option<usize> {
        match self.place {
            TextSpan::File { column, .. } => Some(column),
            TextSpan::Variable(_) => None,
        }
    }

    /// The environment variable at fault, if it is not the file.
    pub fn variable(&self) -> Option<&str> {
        match self.place {
            TextSpan::File { .. } => None,
            TextSpan::Variable(name) => Some(name),
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

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            TextSpan::File { line, column, .. } => write!(f, "{}:{line}:{column}: ", self.file)?,
            TextSpan::Variable(name) => write!(f, "environment variable {name}: ")?,
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
        if let [first, more @ ..] = self.more_lines.as_slice() {
            let lines = if more.is_empty() { "line" } else { "lines" };
            write!(f, "   note: the same on {lines} {first}")?;
            more.iter().try_for_each(|line| write!(f, ", {line}"))?;
            let is_all = self.more_lines.len() < LINES_MAX;
            writeln!(f, "{}", if is_all { "" } else { " …" })?;
        }
        if let Some(help) = self.help() {
            writeln!(f, "   help: {help}")?;
        }
        Ok(())
    }
}

// === impl ConfigErrors ===

impl ConfigErrors {
    pub(crate) fn new(file: Arc<str>, problems: Vec<ConfigProblem>, more: usize) -> Self {
        Self {
            file,
            problems,
            more,
        }
    }

    /// The problems, in the order of the file; those of environment variables come last.
    pub fn problems(&self) -> &[ConfigProblem] {
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

impl fmt::Debug for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ConfigErrors {}
