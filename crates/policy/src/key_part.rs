//! A part of a bucket's key.

use crate::patterns::escape::push_name;
use crate::patterns::is_secret_name;

/// A part of a bucket's key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KeyPart {
    /// The client's address; IPv6 by prefix.
    Ip,
    /// The user.
    User,
    /// The API key: a secret, kept as a hash unless `store.redis.key_names` is `literal`.
    ApiKey,
    /// A header's value, by lower-case name.
    Header(String),
    /// An attribute's value.
    Attr(String),
    /// The route that a gateway chose.
    Route,
    /// The host.
    Host,
    /// The method.
    Method,
    /// The normalised path.
    Path,
    /// All entries of the descriptor that matches the limit.
    Descriptor,
    /// The value of one entry of that descriptor.
    DescriptorEntry {
        /// The key of the entry, case-sensitive.
        name: String,
        /// The position among entries with this key, counted from 1. Where absent, the key must be unique.
        nth: Option<u8>,
    },
    /// The group that the subject of the limit's plan belongs to.
    Group,
    /// Nothing: one bucket for all.
    Global,
}

impl KeyPart {
    /// Returns true if its value is read from a descriptor.
    pub fn is_of_descriptor(&self) -> bool {
        matches!(self, Self::Descriptor | Self::DescriptorEntry { .. })
    }

    /// Returns true if its value is a secret, such as an API key.
    pub fn is_secret(&self) -> bool {
        match self {
            Self::ApiKey => true,
            Self::Header(name) | Self::Attr(name) | Self::DescriptorEntry { name, .. } => {
                is_secret_name(name)
            }
            _ => false,
        }
    }
}

/// Returns the label before the value of a part.
pub(crate) fn part_label(part: &KeyPart) -> String {
    let (kind, name) = match part {
        KeyPart::Ip => ("ip", None),
        KeyPart::User => ("user", None),
        KeyPart::ApiKey => ("api-key", None),
        KeyPart::Header(name) => ("header.", Some(name.to_ascii_lowercase())),
        KeyPart::Attr(name) => ("attr.", Some(name.clone())),
        KeyPart::Route => ("route", None),
        KeyPart::Host => ("host", None),
        KeyPart::Method => ("method", None),
        KeyPart::Path => ("path", None),
        KeyPart::Descriptor => ("descriptor", None),
        KeyPart::DescriptorEntry { name, nth: None } => ("descriptor.", Some(name.clone())),
        KeyPart::DescriptorEntry {
            name,
            nth: Some(nth),
        } => ("descriptor.", Some(format!("{name}#{nth}"))),
        KeyPart::Group => ("group", None),
        KeyPart::Global => ("global", None),
    };
    let mut label = kind.to_owned();
    if let Some(name) = &name {
        push_name(&mut label, name);
    }
    label
}
