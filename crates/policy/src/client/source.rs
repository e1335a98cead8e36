//! Where an identity comes from.

use std::fmt;

/// Where an identity comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IdentitySource {
    /// A header, by lower-case name.
    Header { name: String, trust: Trust },
    /// A cookie.
    Cookie(String),
    /// A parameter of the query.
    Query(String),
    /// A segment of the normalised path, counted from 1.
    Segment(usize),
    /// A claim of the request's token.
    Claim(String),
}

/// Whose word a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Anyone's: it proves itself, or nothing hangs on it.
    Anyone,
    /// A trusted proxy's: from others it does not count.
    Proxies,
}

impl IdentitySource {
    pub(crate) fn header(name: &str, trust: Trust) -> Self {
        Self::Header {
            name: name.to_owned(),
            trust,
        }
    }
}

/// Where to look; not whose word it is.
impl fmt::Display for IdentitySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, .. } => write!(f, "the header `{name}`"),
            Self::Cookie(name) => write!(f, "the cookie `{name}`"),
            Self::Query(name) => write!(f, "the query parameter `{name}`"),
            Self::Segment(nth) => write!(f, "segment {nth} of the path"),
            Self::Claim(name) => write!(f, "the claim `{name}`"),
        }
    }
}
