//! The errors in a document of plans.

use crate::text::TextSpan;
use std::fmt;

/// The maximum number of errors that are kept. Further errors are only counted.
const KEPT_MAX: usize = 20;

/// All errors in a document of plans. Each names its entry, and none shows a secret.
///
/// At most 20 messages are kept, and the others are counted: a document of a million subjects may have a million
/// errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanErrors {
    /// Name of the file or other text with the errors, if it has one.
    text: Option<String>,
    messages: Vec<String>,
    /// The number of errors that are not kept.
    more: usize,
}

impl PlanErrors {
    /// Creates the error of a document that cannot be read or fetched at all.
    pub fn one(message: impl Into<String>) -> Self {
        Self {
            messages: vec![message.into()],
            ..Self::default()
        }
    }

    /// Adds an error on `line`. Calls `message` only if the error is kept: there may be millions.
    pub(super) fn add(&mut self, line: PlanLine, message: impl FnOnce() -> String) {
        if self.messages.len() < KEPT_MAX {
            self.messages.push(format!("{line}{}", message()));
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// Adds an error at a position. Calls `message` only if the error is kept.
    pub fn add_at(&mut self, place: TextSpan, message: impl FnOnce() -> String) {
        self.add(place.into(), message);
    }

    /// Sets the name of the text with the errors, such as the path of a file.
    pub(super) fn set_text(&mut self, name: &str) {
        self.text = Some(name.to_owned());
    }

    /// Returns the name of the file or other text with the errors, if it has one.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the messages that are kept, in order.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Returns the number of errors, including those that are not kept.
    pub fn count(&self) -> usize {
        self.messages.len().saturating_add(self.more)
    }

    /// Returns `value` if there are no errors.
    ///
    /// # Errors
    ///
    /// These errors, if there are any.
    pub fn or<T>(self, value: T) -> Result<T, Self> {
        if self.count() == 0 {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(text) = &self.text {
            write!(f, "{text}: ")?;
        }
        for (nth, message) in self.messages.iter().enumerate() {
            if nth > 0 {
                f.write_str("; ")?;
            }
            f.write_str(message)?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for PlanErrors {}

/// A line number in a text; 0 if there is no such text. Displays as the prefix of a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PlanLine(u32);

impl From<TextSpan> for PlanLine {
    fn from(place: TextSpan) -> Self {
        match place {
            TextSpan::File { line, .. } => Self(u32::try_from(line).unwrap_or(0)),
            TextSpan::Variable(_) => Self::default(),
        }
    }
}

impl fmt::Display for PlanLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => Ok(()),
            line => write!(f, "line {line}: "),
        }
    }
}
