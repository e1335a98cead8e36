//! Guards: allowlists and blocklists, evaluated before any limit.
//!
//! | module | contents |
//! |---|---|
//! | this one | a compiled guard |
//! | `list` | the members of a list, with fast lookup by `texts` and `addresses` for lists of any size |
//! | `ask` | the evaluation of all guards of a configuration for one request |

mod addresses;
mod ask;
mod list;
#[cfg(test)]
mod tests;
mod texts;

pub use ask::{GuardOutcome, GuardScratch, GuardVerdict, Guards};
pub use list::{GuardMembers, GuardMembersBuilder};
pub use texts::MEMBER_BYTES_MAX;

pub use crate::address_rules::AddressMember;
use crate::key_part::KeyPart;
pub use crate::respond::AnswerReason;
use crate::respond::RefusalStyle;
use crate::store::RedisSettings;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::LimitMode;

/// A guard: the value that is looked up, the list, and the effect if the value is listed.
#[derive(Clone, Debug)]
pub struct Guard {
    /// The name, unique in the configuration.
    pub name: String,
    /// True if it is evaluated.
    pub enabled: bool,
    /// The value that is looked up.
    pub subject: KeyPart,
    /// The effect if the value is listed.
    pub effect: GuardEffect,
    /// The reason, in one word.
    pub reason: AnswerReason,
    /// The source of the list.
    pub origin: ListOrigin,
    /// The interval at which an external list is read again.
    pub refresh: Duration,
    /// The timeout for reading the list.
    pub timeout: Duration,
    /// Enforce or shadow.
    pub mode: LimitMode,
    /// The form of its refusals; the policy's form applies where absent.
    pub refusal: Option<Arc<RefusalStyle>>,
}

impl Guard {
    /// The default interval at which a list is read again.
    pub const REFRESH: Duration = Duration::from_secs(5);
    /// The default timeout for reading a list.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// The maximum number of guards in a configuration: the bits of one word record which guards in shadow
    /// mode would have acted.
    pub const MOST: usize = 64;

    /// Returns true if it decides: it is enabled and not in shadow mode.
    pub fn is_enforced(&self) -> bool {
        self.enabled && self.mode == LimitMode::Enforce
    }

    /// Returns true if the list of this guard is also valid for `other`.
    pub fn shares_list(&self, other: &Self) -> bool {
        self.name == other.name && self.subject == other.subject && self.origin == other.origin
    }
}

/// The effect of a guard on a listed client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardEffect {
    /// The request is refused and no limit is evaluated.
    Refuse,
    /// The request is allowed. No limit is evaluated, and no guard that refuses.
    Exempt,
}

/// The source of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOrigin {
    /// The configuration contains the members.
    List(ListMembers),
    /// A file with one member per line; `#` starts a comment.
    File(String),
    /// A set in Redis.
    Redis {
        /// Its key.
        set: String,
        /// The Redis to connect to; that of the store where absent.
        at: Option<Box<RedisSettings>>,
    },
}

impl ListOrigin {
    /// Returns true if the list may change without a change of the configuration.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::List(_))
    }

    /// Returns true if `other` refers to the same members, regardless of the settings for reaching them.
    pub fn is_same_source(&self, other: &Self) -> bool {
        let (
            Self::Redis { set: one, at: here },
            Self::Redis {
                set: two,
                at: there,
            },
        ) = (self, other)
        else {
            return self == other;
        };
        let is_same_server = match (here, there) {
            (None, None) => true,
            (Some(here), Some(there)) => here.is_same_place(there),
            _ => false,
        };
        one == two && is_same_server
    }
}

/// The members of a list, as written. They may be API keys and are never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ListMembers(Vec<String>);

impl ListMembers {
    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if there are no members.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the members in the order written.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl From<Vec<String>> for ListMembers {
    fn from(members: Vec<String>) -> Self {
        Self(members)
    }
}

impl fmt::Debug for ListMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} members", self.len())
    }
}
