//! The sources of an identity.

use std::fmt;

/// The source of an identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IdentitySource {
    /// A header, by lower-case name.
    Header {
        /// The name.
        name: String,
        /// The senders whose value is trusted.
        trust: Trust,
    },
    /// A cookie.
    Cookie(String),
    /// A parameter of the query.
    Query(String),
    /// A segment of the normalised path, counted from 1.
    Segment(usize),
    /// A claim of the request's token.
    Claim(String),
}

/// The senders whose value of a header is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Any sender: the value proves itself, or nothing depends on it.
    Anyone,
    /// Trusted proxies only. The value does not count if another peer sends it.
    Proxies,
}

impl IdentitySource {
    /// Returns a header as a source, by lower-case name.
    pub fn header(name: &str, trust: Trust) -> Self {
        Self::Header {
            name: name.to_owned(),
            trust,
        }
    }
}

/// Describes the source without its trust.
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
