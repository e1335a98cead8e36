//! Policies and limits before they are written as text.

use tidegate_policy::limit::ChargeTime;

/// A policy.
#[derive(Debug)]
pub(super) struct PolicyDraft {
    pub(super) name: String,
    /// The name of the policy in the other limiter.
    pub(super) domain: String,
    /// The evaluation mode: `all`, `first` or `each`.
    pub(super) evaluate: &'static str,
    /// The time at which its limits charge a cost that does not fit.
    pub(super) charge: ChargeTime,
    pub(super) limits: Vec<LimitDraft>,
}

/// A limit.
#[derive(Debug)]
pub(super) struct LimitDraft {
    pub(super) name: String,
    /// A comment above the limit, such as the setting that it comes from.
    pub(super) comment: Option<String>,
    pub(super) whom: RequestScope,
    pub(super) key: KeyDraft,
    /// The bands; without any, the limit is unlimited.
    pub(super) rates: Vec<RateDraft>,
    pub(super) counting: AlgorithmDraft,
    /// True for shadow mode.
    pub(super) shadow: bool,
    /// True if one limit of several that allows is enough.
    pub(super) combines_any: bool,
    /// The limits that do not apply if this one does.
    pub(super) replaces: Vec<String>,
    pub(super) enabled: bool,
    /// The waiting rules, if requests that do not fit wait.
    pub(super) waiting: Option<WaitDraft>,
    /// The template for the names of its keys in Redis, if it has its own.
    pub(super) template: Option<String>,
    /// The status of its refusals, if it differs from that of the other limits.
    pub(super) status: Option<u16>,
}

/// The algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AlgorithmDraft {
    /// Fixed windows with the alignment `clock` or `first-request`.
    Windows(&'static str),
    /// A window that slides in parts.
    Bucketed,
    /// A token bucket.
    Tokens,
}

/// The waiting rules of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaitDraft {
    /// The longest wait, in milliseconds.
    pub(super) max_wait: u64,
    /// The maximum number of waiting requests.
    pub(super) max_waiting: u64,
}

/// The requests that a limit applies to.
#[derive(Debug)]
pub(super) enum RequestScope {
    /// No request: the limit exists only because a policy needs one.
    Nobody,
    /// Every request.
    Everybody,
    /// Descriptors with exactly these entries.
    Path(Vec<DescriptorStep>),
    /// Calls with a descriptor that contains these entries.
    Holds(Vec<(String, String)>),
    /// Requests that match any of these conditions.
    Any(Vec<ConditionDraft>),
}

/// A condition. All its parts must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ConditionDraft {
    /// Hosts, of which one must match; any host if there are none.
    pub(super) hosts: Vec<String>,
    /// Methods, of which one must match; any method if there are none.
    pub(super) methods: Vec<String>,
    /// Addresses and networks, of which one must match; any client if there are none.
    pub(super) clients: Vec<String>,
    /// A path pattern.
    pub(super) path: Option<String>,
    /// A header and its value.
    pub(super) header: Option<(String, String)>,
    /// An attribute and its value.
    pub(super) attribute: Option<(String, String)>,
}

/// An entry of a descriptor: its key, and its required value, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DescriptorStep {
    pub(super) key: String,
    pub(super) value: Option<String>,
}

/// The bucket key.
#[derive(Debug)]
pub(super) enum KeyDraft {
    /// One bucket for all requests.
    Global,
    /// One bucket for each descriptor.
    Descriptor,
    /// One bucket for each combination of these parts, in the syntax of the configuration.
    Parts {
        parts: Vec<String>,
        /// True if the limit does not apply when a part is missing.
        or_skip: bool,
    },
}

/// A band.
#[derive(Debug)]
pub(super) struct RateDraft {
    /// The rate, such as `5/day`.
    pub(super) text: String,
    pub(super) label: Option<String>,
}

// === impl LimitDraft ===

impl LimitDraft {
    /// Returns a limit for all requests, in one bucket, without a rate. The caller fills in the rest.
    pub(super) fn new(name: String, counting: AlgorithmDraft) -> Self {
        Self {
            name,
            comment: None,
            whom: RequestScope::Everybody,
            key: KeyDraft::Global,
            rates: Vec::new(),
            counting,
            shadow: false,
            combines_any: false,
            replaces: Vec::new(),
            enabled: true,
            waiting: None,
            template: None,
            status: None,
        }
    }

    /// Returns a limit for no request, for policies without limits: a policy needs at least one.
    pub(super) fn for_no_request() -> Self {
        Self {
            whom: RequestScope::Nobody,
            ..Self::new("none".to_owned(), AlgorithmDraft::Tokens)
        }
    }
}

// === impl KeyDraft ===

impl KeyDraft {
    /// Returns a key with this part.
    pub(super) fn part(part: impl Into<String>) -> Self {
        Self::Parts {
            parts: vec![part.into()],
            or_skip: false,
        }
    }
}
