//! Findings: the judgement of an observation.

use serde::Serialize;

/// The level of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FindingLevel {
    /// Correct.
    Ok,
    /// A guarantee is weaker than it could be.
    Warn,
    /// A guarantee is broken, or will be.
    Fail,
    /// The user lacks the permission to query, so the result is unknown.
    Unseen,
}

impl FindingLevel {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
            Self::Unseen => "?",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Finding {
    pub(super) check: &'static str,
    /// The node that it is about, if it is about one.
    pub(super) node: Option<String>,
    pub(super) mark: FindingLevel,
    /// The observation.
    pub(super) text: String,
    /// The recommended action.
    pub(super) help: Option<String>,
}

impl Finding {
    fn new(check: &'static str, mark: FindingLevel, text: impl Into<String>) -> Self {
        Self {
            check,
            node: None,
            mark,
            text: text.into(),
            help: None,
        }
    }

    pub(super) fn ok(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, FindingLevel::Ok, text)
    }

    pub(super) fn warn(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, FindingLevel::Warn, text)
    }

    pub(super) fn fail(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, FindingLevel::Fail, text)
    }

    pub(super) fn unseen(check: &'static str, text: impl Into<String>) -> Self {
        Self::new(check, FindingLevel::Unseen, text)
    }

    pub(super) fn at(mut self, node: &impl ToString) -> Self {
        self.node = Some(node.to_string());
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
