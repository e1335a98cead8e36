//! The members of a guard's list.

use super::addresses::AddressTable;
use super::texts::TextSet;
use crate::address_rules::{AddressMember, AddressRules};
use crate::digest::DigestedText;
use crate::key_part::KeyPart;
use crate::patterns::{canonical_host, normalise};
use std::fmt;
use std::net::IpAddr;

/// The members of a guard's list. Immutable: reading a list again replaces it as a whole.
///
/// ```
/// use tidegate_policy::guard::GuardMembers;
/// use tidegate_policy::limit::{AddressRules, KeyPart};
///
/// let members = ["192.0.2.7", "198.51.100.0/24", "2001:db8::1", "no address"];
/// let list = GuardMembers::new(&KeyPart::Ip, AddressRules::default(), members);
/// assert_eq!((list.len(), list.skipped()), (3, 1));
/// assert!(list.contains_address("198.51.100.9".parse()?));
/// // An address of IPv6 counts by its first 64 bits, here as in limits.
/// assert!(list.contains_address("2001:db8::2".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
pub struct GuardMembers {
    members: Kind,
    skipped: usize,
}

/// A list under construction, member by member.
#[derive(Debug)]
pub struct GuardMembersBuilder {
    spelling: Spelling,
    rules: AddressRules,
    list: GuardMembers,
    buffer: String,
}

enum Kind {
    Texts(TextSet),
    Addresses(AddressTable),
}

/// The normalised form in which members are compared.
#[derive(Clone, Copy, Debug)]
enum Spelling {
    Address,
    Host,
    Method,
    Path,
    AsIs,
}

// === impl GuardMembers ===

impl GuardMembers {
    /// The maximum number of members. Further members are skipped.
    pub const MOST: usize = 10_000_000;

    /// Creates an empty list.
    pub fn empty(subject: &KeyPart) -> Self {
        let members = match subject {
            KeyPart::Ip => Kind::Addresses(AddressTable::default()),
            _ => Kind::Texts(TextSet::default()),
        };
        Self {
            members,
            skipped: 0,
        }
    }

    /// Creates a list of values of `subject`. Invalid values are skipped and counted.
    pub fn new<'t>(
        subject: &KeyPart,
        rules: AddressRules,
        members: impl IntoIterator<Item = &'t str>,
    ) -> Self {
        let mut building = GuardMembersBuilder::new(subject, rules);
        for member in members {
            building.push(member);
        }
        building.finish()
    }

    /// Returns the number of distinct members.
    pub fn len(&self) -> usize {
        match &self.members {
            Kind::Texts(texts) => texts.len(),
            Kind::Addresses(addresses) => addresses.len(),
        }
    }

    /// Returns true if there are no members.
    #[inline]
    pub fn is_empty(&self) -> bool {
        match &self.members {
            Kind::Texts(texts) => texts.len() == 0,
            Kind::Addresses(addresses) => addresses.is_empty(),
        }
    }

    /// Returns the number of members that were skipped because they are not valid values of the subject.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Returns true if exactly this text is listed. Always false for a list of addresses.
    ///
    /// ```
    /// use tidegate_policy::guard::GuardMembers;
    /// use tidegate_policy::limit::{AddressRules, KeyPart};
    ///
    /// let list = GuardMembers::new(&KeyPart::Host, AddressRules::default(), ["API.example.com"]);
    /// assert!(list.contains("api.example.com"), "members are stored in normalized form");
    /// assert!(!list.contains("example.com"));
    /// ```
    #[inline]
    pub fn contains(&self, text: &str) -> bool {
        self.contains_marked(text, None)
    }

    /// Like [`contains`](Self::contains), for a text whose digest may be known already.
    #[inline]
    pub(super) fn contains_marked(&self, text: &str, made: Option<DigestedText<'_>>) -> bool {
        match &self.members {
            Kind::Texts(texts) => texts.contains(text, made),
            Kind::Addresses(_) => false,
        }
    }

    /// Returns true if this address is listed, or a network that contains it.
    #[inline]
    pub fn contains_address(&self, address: IpAddr) -> bool {
        match &self.members {
            Kind::Texts(_) => false,
            Kind::Addresses(addresses) => addresses.contains(address),
        }
    }

    /// Returns the time at which this address leaves the list, as passed to [`GuardMembersBuilder::push_until`]. Returns
    /// `None` if it is not listed, or if a member that contains it does not expire.
    pub fn end_of(&self, address: IpAddr) -> Option<u64> {
        match &self.members {
            Kind::Texts(_) => None,
            Kind::Addresses(addresses) => addresses.end_of(address),
        }
    }
}

// Written by hand because members may be secrets.
impl fmt::Debug for GuardMembers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("List")
            .field("members", &self.len())
            .field("skipped", &self.skipped)
            .finish()
    }
}

// === impl Building ===

impl GuardMembersBuilder {
    /// Starts a list of values of `subject`.
    pub fn new(subject: &KeyPart, rules: AddressRules) -> Self {
        Self {
            spelling: match subject {
                KeyPart::Ip => Spelling::Address,
                KeyPart::Host => Spelling::Host,
                KeyPart::Method => Spelling::Method,
                KeyPart::Path => Spelling::Path,
                _ => Spelling::AsIs,
            },
            rules,
            list: GuardMembers::empty(subject),
            buffer: String::new(),
        }
    }

    /// Reserves room for `more` members, if their number is known in advance.
    pub fn reserve(&mut self, more: usize) {
        if let Kind::Texts(texts) = &mut self.list.members {
            texts.reserve(more.min(GuardMembers::MOST));
        }
    }

    /// Adds a member. An invalid one is skipped and counted.
    pub fn push(&mut self, member: &str) {
        self.push_until(member, None);
    }

    /// Like [`push`](Self::push), for a member that expires at `end`, in any unit that the caller uses. Only
    /// addresses expire. If a network is listed several times in different notations, the latest expiry
    /// applies.
    ///
    /// ```
    /// use tidegate_policy::guard::GuardMembersBuilder;
    /// use tidegate_policy::limit::{AddressRules, KeyPart};
    ///
    /// let mut list = GuardMembersBuilder::new(&KeyPart::Ip, AddressRules::default());
    /// list.push_until("192.0.2.1", Some(17));
    /// list.push_until("198.51.100.7", Some(17));
    /// list.push("198.51.100.0/24");
    /// let list = list.finish();
    /// assert_eq!(list.end_of("192.0.2.1".parse()?), Some(17));
    /// assert_eq!(list.end_of("198.51.100.7".parse()?), None);
    /// # Ok::<(), std::net::AddrParseError>(())
    /// ```
    pub fn push_until(&mut self, member: &str, end: Option<u64>) {
        if self.list.len() >= GuardMembers::MOST || !self.insert(member, end) {
            self.skip();
        }
    }

    /// Counts a skipped member, such as one that is not text.
    pub fn skip(&mut self) {
        self.list.skipped = self.list.skipped.saturating_add(1);
    }

    /// Returns the finished list.
    pub fn finish(mut self) -> GuardMembers {
        if let Kind::Texts(texts) = &mut self.list.members {
            texts.finish();
        }
        self.list
    }

    fn insert(&mut self, member: &str, end: Option<u64>) -> bool {
        let buffer = &mut self.buffer;
        let text = match self.spelling {
            Spelling::Host => canonical_host(member, buffer),
            Spelling::Path => normalise(member, buffer),
            Spelling::Method => {
                buffer.clear();
                buffer.push_str(member);
                buffer.make_ascii_uppercase();
                Some(buffer.as_str())
            }
            Spelling::Address | Spelling::AsIs => Some(member),
        };
        match (&mut self.list.members, text) {
            (Kind::Texts(texts), Some(text)) => texts.insert(text),
            (Kind::Addresses(addresses), Some(text)) => {
                let member = AddressMember::parse(text.trim(), self.rules);
                member.map(|member| addresses.insert(member, end)).is_some()
            }
            (_, None) => false,
        }
    }
}
