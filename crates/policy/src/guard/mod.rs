//! Guards: lists of those who may not pass at all, or whom no limit applies to. They are asked before
//! any limit.
//!
//! | module | what it is |
//! |---|---|
//! | this one | a guard as compiled |
//! | `reason` | why a request is answered as it is |
//! | `list` | who is listed; with `texts` and `addresses` to find out at once, however many there are |
//! | `ask` | all guards of a configuration, asked about one request |

mod addresses;
mod ask;
mod list;
mod reason;
#[cfg(test)]
mod tests;
mod texts;

pub(crate) use addresses::AddressMember;
pub use ask::{GuardOutcome, GuardScratch, GuardVerdict, Guards};
pub use list::{Building, GuardMembers};
pub use reason::AnswerReason;
pub(crate) use texts::MEMBER_BYTES_MAX;

use crate::config::RedisSettings;
use crate::limit::KeyPart;
use crate::respond::RefusalStyle;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_core::LimitMode;

/// A guard: whose value is looked up, in which list, and what follows if it is there.
#[derive(Clone, Debug)]
pub struct Guard {
    /// Its name, unique in its configuration.
    pub name: String,
    /// Whether it is asked at all.
    pub enabled: bool,
    /// Whose value is looked up.
    pub subject: KeyPart,
    /// What follows if it is listed.
    pub effect: GuardEffect,
    /// Why, in one word.
    pub reason: AnswerReason,
    /// Where the list comes from.
    pub origin: ListOrigin,
    /// How often it is read again, where it comes from elsewhere.
    pub refresh: Duration,
    /// How long reading it may take.
    pub timeout: Duration,
    /// Enforced, or only watched.
    pub mode: LimitMode,
    /// What its refusals look like; as the policy says where absent.
    pub refusal: Option<Arc<RefusalStyle>>,
}

impl Guard {
    /// How often a list is read again, unless told.
    pub const REFRESH: Duration = Duration::from_secs(5);
    /// How long reading it may take, unless told.
    pub const TIMEOUT: Duration = Duration::from_secs(5);
    /// The most guards of a configuration: which of them only watched and would have acted is told in
    /// the bits of a word.
    pub const MOST: usize = 64;

    /// Whether it decides: it is asked, and not only watched.
    pub fn is_enforced(&self) -> bool {
        self.enabled && self.mode == LimitMode::Enforce
    }

    /// Whether what a list holds for this guard, it holds for `other` as well.
    pub fn shares_list(&self, other: &Self) -> bool {
        self.name == other.name && self.subject == other.subject && self.origin == other.origin
    }
}

/// What follows if somebody is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardEffect {
    /// The request is refused, and no limit is asked.
    Refuse,
    /// The request passes, and no limit is asked; nor is any guard that refuses.
    Exempt,
}

/// Where a list comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListOrigin {
    /// It is written in the configuration.
    List(ListMembers),
    /// A file: a member a line; `#` begins a comment.
    File(String),
    /// A set in Redis.
    Redis {
        /// Its key.
        set: String,
        /// Which Redis; that of the store where absent.
        at: Option<Box<RedisSettings>>,
    },
}

impl ListOrigin {
    /// Whether it may say something else later.
    pub fn changes(&self) -> bool {
        !matches!(self, Self::List(_))
    }

    /// Whether it is where `other` is: the same members are there, whatever else is said of how they are
    /// reached.
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

/// The members of a list, as written. They may be API keys, and are never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ListMembers(Vec<String>);

impl ListMembers {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The members themselves.
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
