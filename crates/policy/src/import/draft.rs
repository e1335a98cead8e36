//! Policies and limits on their way to text.

use crate::limit::ChargeTime;

/// A policy.
#[derive(Debug)]
pub(super) struct PolicyDraft {
    pub(super) name: String,
    /// What the other limiter calls it.
    pub(super) domain: String,
    /// How limits that one request meets are decided: `all`, `first` or `each`.
    pub(super) evaluate: &'static str,
    /// When its limits charge a cost that does not fit.
    pub(super) charge: ChargeTime,
    pub(super) limits: Vec<LimitDraft>,
}

/// A limit.
#[derive(Debug)]
pub(super) struct LimitDraft {
    pub(super) name: String,
    pub(super) whom: Whom,
    pub(super) key: KeyDraft,
    /// None is unlimited; several are bands.
    pub(super) rates: Vec<RateDraft>,
    pub(super) counting: AlgorithmDraft,
    /// `shadow` or `quota`, if it does not simply enforce.
    pub(super) mode: Option<&'static str>,
    /// Limits that do not count where this one is met.
    pub(super) replaces: Vec<String>,
    pub(super) enabled: bool,
    /// How long requests that do not fit wait, and how many of them, if they do.
    pub(super) waiting: Option<WaitDraft>,
    /// How its keys are named in Redis, if it says so itself.
    pub(super) template: Option<String>,
}

/// By which algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlgorithmDraft {
    /// Fixed windows that begin by `clock` or with the `first-request`.
    Windows(&'static str),
    /// A window that slides in parts.
    Bucketed,
    /// A token bucket.
    Tokens,
}

/// What is held back instead of refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitDraft {
    /// For how long, in milliseconds.
    pub(super) max_wait: u64,
    /// How many at once.
    pub(super) max_waiting: u64,
}

/// Whom a limit applies to.
#[derive(Debug)]
pub(super) enum Whom {
    /// Nobody: it is there so that its policy is.
    Nobody,
    /// Everybody.
    Everybody,
    /// Descriptors with exactly these entries.
    Path(Vec<DescriptorStep>),
    /// Calls with a descriptor that holds these entries.
    Holds(Vec<(String, String)>),
    /// Requests that any of these is true of.
    Any(Vec<ConditionDraft>),
}

/// What is true of a request.
#[derive(Debug)]
pub(super) struct ConditionDraft {
    /// A pattern of paths.
    pub(super) path: Option<String>,
    /// A header and its value.
    pub(super) header: Option<(String, String)>,
    /// An attribute and its value.
    pub(super) attribute: Option<(String, String)>,
}

/// An entry of a descriptor: its key, and which value it must have, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DescriptorStep {
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// Whose bucket.
#[derive(Debug)]
pub(super) enum KeyDraft {
    /// One for all.
    Global,
    /// One for each descriptor.
    Descriptor,
    /// One for each combination of these parts, as the language writes them.
    Parts {
        parts: Vec<String>,
        /// Whether the limit does not apply where one is missing.
        or_skip: bool,
    },
}

/// A band.
#[derive(Debug)]
pub(super) struct RateDraft {
    /// Such as `5/day`.
    pub(super) text: String,
    pub(super) label: Option<String>,
}

// === impl LimitDraft ===

impl LimitDraft {
    /// A limit for everybody, in one bucket, that lets everything pass: what more it says is filled
    /// in.
    pub(super) fn new(name: String, counting: AlgorithmDraft) -> Self {
        Self {
            name,
            whom: Whom::Everybody,
            key: KeyDraft::Global,
            rates: Vec::new(),
            counting,
            mode: None,
            replaces: Vec::new(),
            enabled: true,
            waiting: None,
            template: None,
        }
    }

    /// A policy needs a limit to be one: this is for those that have none.
    pub(super) fn nobody() -> Self {
        Self {
            whom: Whom::Nobody,
            ..Self::new("none".to_owned(), AlgorithmDraft::Tokens)
        }
    }
}

// === impl KeyDraft ===

impl KeyDraft {
    /// One for each of this.
    pub(super) fn part(part: impl Into<String>) -> Self {
        Self::Parts {
            parts: vec![part.into()],
            or_skip: false,
        }
    }
}
