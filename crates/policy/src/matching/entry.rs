//! The patterns by which conditions know descriptors.

use super::wildcard::Wildcard;

/// What a descriptor looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorPattern {
    /// Exactly these entries, in this order. All such patterns of a policy make a tree, in which a
    /// descriptor finds one place.
    Exactly(Vec<EntryPattern>),
    /// These among its entries, in any order.
    Holds(Vec<EntryPattern>),
}

/// What an entry of a descriptor looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPattern {
    /// Its key; case counts.
    pub name: String,
    /// Its value.
    pub value: ValuePattern,
}

/// What the value of an entry looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePattern {
    /// Whatever it is, even empty.
    Any,
    /// Exactly this; case counts.
    Is(String),
    /// Text with `*` in it.
    Like(Wildcard),
}

// === impl DescriptorPattern ===

impl DescriptorPattern {
    /// The patterns of its entries.
    pub fn entries(&self) -> &[EntryPattern] {
        match self {
            Self::Exactly(entries) | Self::Holds(entries) => entries,
        }
    }

    /// Whether the entries are exactly the descriptor, in this order.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Exactly(_))
    }
}

// === impl EntryPattern ===

impl EntryPattern {
    /// An entry of this key with a value as it is written: `*` stands for anything, and nothing at all
    /// for any value.
    pub fn new(name: impl Into<String>, value: &str) -> Self {
        Self {
            name: name.into(),
            value: ValuePattern::parse(value),
        }
    }

    /// Whether an entry looks like this.
    pub(super) fn matches(&self, name: &str, value: &str) -> bool {
        self.name == name && self.value.matches(value)
    }
}

// === impl ValuePattern ===

impl ValuePattern {
    /// A value as it is written.
    fn parse(text: &str) -> Self {
        if text.is_empty() {
            Self::Any
        } else if text.contains('*') {
            Self::Like(Wildcard::new(text))
        } else {
            Self::Is(text.to_owned())
        }
    }

    fn matches(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Is(wanted) => wanted == value,
            // Whoever sends the pattern itself means it.
            Self::Like(wildcard) => wildcard.matches(value),
        }
    }
}
