//! Policies and limits on their way to text.

/// A policy.
#[derive(Debug)]
pub(super) struct PolicyDraft {
    pub(super) name: String,
    /// What the other limiter calls it.
    pub(super) domain: String,
    /// Whether each limit counts for itself, whatever the others say.
    pub(super) each: bool,
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
    /// Where its windows begin: `clock` or `first-request`.
    pub(super) align: &'static str,
    /// `shadow` or `quota`, if it does not simply enforce.
    pub(super) mode: Option<&'static str>,
    /// Limits that do not count where this one is met.
    pub(super) replaces: Vec<String>,
}

/// Whom a limit applies to.
#[derive(Debug)]
pub(super) enum Whom {
    /// Nobody: it is there so that its policy is.
    Nobody,
    /// Everybody.
    Everybody,
    /// Descriptors with exactly these entries.
    Path(Vec<Step>),
    /// Calls with a descriptor that holds these entries.
    Holds(Vec<(String, String)>),
}

/// An entry of a descriptor: its key, and which value it must have, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
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
    /// One for each combination of these entries, as the language writes them.
    Entries {
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
