//! What is wrong with a document of plans.

use std::fmt;

/// Errors beyond this many are counted, not kept.
const KEPT_MAX: usize = 20;

/// Everything that is wrong with a document of plans: each names its entry, and none shows a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanErrors {
    messages: Vec<String>,
    /// Those beyond what is kept.
    more: usize,
}

impl PlanErrors {
    /// A document that cannot be read at all, or not be had.
    pub fn one(message: impl Into<String>) -> Self {
        Self {
            messages: vec![message.into()],
            more: 0,
        }
    }

    pub(super) fn add(&mut self, message: String) {
        if self.messages.len() < KEPT_MAX {
            self.messages.push(message);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    /// What is wrong, one after the other.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// How much is wrong, including what is too much to keep.
    pub fn count(&self) -> usize {
        self.messages.len().saturating_add(self.more)
    }

    /// `value`, if nothing is wrong.
    pub(super) fn or<T>(self, value: T) -> Result<T, Self> {
        if self.count() == 0 {
            Ok(value)
        } else {
            Err(self)
        }
    }
}

impl fmt::Display for PlanErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
