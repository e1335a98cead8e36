//! The patterns for descriptors in conditions.

use super::wildcard::Wildcard;

/// A pattern for a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DescriptorPattern {
    /// Exactly these entries, in this order. All such patterns of a policy form a tree, in which a descriptor
    /// has one position.
    Exactly(Vec<EntryPattern>),
    /// These entries among others, in any order.
    Holds(Vec<EntryPattern>),
}

/// A pattern for an entry of a descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPattern {
    /// The key, case-sensitive.
    pub name: String,
    /// The pattern for the value.
    pub value: ValuePattern,
}

/// A pattern for the value of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValuePattern {
    /// Any value, even an empty one.
    Any,
    /// Exactly this value, case-sensitive.
    Is(String),
    /// Text with `*`.
    Like(Wildcard),
}

// === impl DescriptorPattern ===

impl DescriptorPattern {
    /// Returns the patterns of its entries.
    pub fn entries(&self) -> &[EntryPattern] {
        match self {
            Self::Exactly(entries) | Self::Holds(entries) => entries,
        }
    }

    /// Returns true if the descriptor must have exactly these entries, in this order.
    pub fn is_exact(&self) -> bool {
        matches!(self, Self::Exactly(_))
    }
}

// === impl EntryPattern ===

impl EntryPattern {
    /// Creates a pattern for an entry with this key. In `value`, `*` stands for any text; an empty `value`
    /// accepts any value.
    pub fn new(name: impl Into<String>, value: &str) -> Self {
        Self {
            name: name.into(),
            value: ValuePattern::parse(value),
        }
    }

    /// Returns true if the entry matches.
    pub(crate) fn matches(&self, name: &str, value: &str) -> bool {
        self.name == name && self.value.matches(value)
    }
}

// === impl ValuePattern ===

impl ValuePattern {
    /// Parses a value of the configuration.
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
            // A value that equals the text of the pattern matches too.
            Self::Like(wildcard) => wildcard.matches(value),
        }
    }
}
