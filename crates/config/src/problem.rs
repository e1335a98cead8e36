//! Errors and warnings of a configuration, formatted for people.

use super::excerpt::Excerpt;
use super::syntax::TextSpan;
use std::fmt;
use std::sync::Arc;
use tidegate_policy::text::{ConfigFault, counted};

/// An error or a warning, with its position.
///
/// Its `Display` shows the file, the line (without its secrets) and a suggestion.
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
    /// Further lines on which the same variables cause the same problem, up to [`LINES_MAX`].
    more_lines: Vec<usize>,
}

/// The maximum number of lines listed for one problem.
const LINES_MAX: usize = 5;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is rejected.
    Error,
    /// The configuration is valid, but this is probably not intended.
    Warning,
}

/// All errors of a configuration, in the order of the file. At most 100 are kept; further ones are only
/// counted.
///
/// Its `Debug` equals its `Display`, because a program whose `main` returns it prints `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigErrors {
    file: Arc<str>,
    problems: Vec<ConfigProblem>,
    /// The number of further problems that are not kept.
    more: usize,
}

// === impl ConfigProblem ===

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

    /// Adds the line of the text that the problem points at.
    pub(crate) fn with_excerpt(self, excerpt: Option<Excerpt>) -> Self {
        Self { excerpt, ..self }
    }

    pub(crate) fn place(&self) -> TextSpan {
        self.place
    }

    /// Returns true if another problem need not be reported: it is the same fault at the same place
    /// through another alias, or it is caused by the same variable. Adds the line of the other problem
    /// to this one if it differs.
    pub(crate) fn covers(&mut self, other: &Self) -> bool {
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

    /// Returns true if both concern the same setting, or items of the same list.
    fn is_same_setting(&self, other: &Self) -> bool {
        let setting = |path: &str| {
            path.trim_end_matches(|c: char| "[]".contains(c) || c.is_ascii_digit())
                .to_owned()
        };
        setting(&self.path) == setting(&other.path)
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the severity.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Returns the line, from 1; `None` if an environment variable is at fault.
    pub fn line(&self) -> Option<usize> {
        match self.place {
            TextSpan::File { line, .. } => Some(line),
            TextSpan::Variable(_) => None,
        }
    }

    /// Returns the column in characters, from 1; `None` if an environment variable is at fault.
    pub fn column(&self) -> Option<usize> {
        match self.place {
            TextSpan::File { column, .. } => Some(column),
            TextSpan::Variable(_) => None,
        }
    }

    /// Returns the environment variable at fault; `None` if the file is.
    pub fn variable(&self) -> Option<&str> {
        match self.place {
            TextSpan::File { .. } => None,
            TextSpan::Variable(name) => Some(name),
        }
    }

    /// Returns the path of the setting, such as `policies[0].limits[1].key`; empty for the file as a
    /// whole.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the description of the problem.
    pub fn message(&self) -> &str {
        &self.fault.message
    }

    /// Returns the suggestion, if there is one.
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
    /// Creates the errors of a file. `more` are those that are not listed.
    pub fn new(file: Arc<str>, problems: Vec<ConfigProblem>, more: usize) -> Self {
        Self {
            file,
            problems,
            more,
        }
    }

    /// Returns the problems, in the order of the file. Those of environment variables come last.
    pub fn problems(&self) -> &[ConfigProblem] {
        &self.problems
    }

    /// Returns the total number of problems, including those not kept.
    pub fn count(&self) -> usize {
        self.problems.len().saturating_add(self.more)
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            writeln!(f, "{problem}")?;
        }
        let errors = counted(self.count(), "error", "errors");
        write!(f, "{}: {errors}", self.file)?;
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
