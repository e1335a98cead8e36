//! Whose bucket: `policy/limit/part,part`, written so that no two subjects share one.
//!
//! Each part is a label and a value, `user:ann`. Whatever a client can choose is escaped, so that
//! no value can pose as another part, and what is long or secret stands as a hash, `api-key:#…`.
//! Where an identity is absent, the address stands in for it, apart from those who have it:
//! `user~ip:192.0.2.1`.

use super::address::push_address;
use super::entry::DescriptorPattern;
use super::escape::{push_name, push_value};
use super::facts::MatchInput;
use super::secret::{is_secret_name, push_fingerprint, replace_by_fingerprint};
use crate::limit::AddressRules;
use crate::{KeyPart, Limit, Missing};
use std::fmt;
use std::ops::Range;

/// Values of more bytes than this stand as a hash, so that clients cannot fill the store with
/// names.
pub(super) const VALUE_BYTES_MAX: usize = 64;

/// The same where names are kept as other systems know them.
const LITERAL_BYTES_MAX: usize = 256;

/// The same for all entries of a descriptor together, as they stand in a key.
const ENTRIES_BYTES_MAX: usize = 128;

/// How keys are made: the same on every instance that shares a store.
#[derive(Clone, Copy, Default)]
pub struct KeyRules {
    /// What an address counts as.
    pub address: AddressRules,
    /// Keys the hashes of secrets and of long values (`store.key_secret`).
    pub secret: Option<[u8; 32]>,
    /// Keeps secrets and values of up to 256 bytes as they are sent, in the names of buckets whose keys
    /// have a template (`store.key_names`): another system knows them by these names. They are shown as
    /// hashes all the same, and stand as hashes in keys that no template names ([`hash`](Self::hash)).
    pub literal: bool,
}

/// The key of one limit, prepared.
#[derive(Debug)]
pub(super) struct PreparedKey {
    /// `policy/limit/`
    prefix: String,
    parts: Vec<PreparedKeyPart>,
    missing: Missing,
    /// Whether a template names its keys in Redis.
    is_open: bool,
}

/// The text that a key was written to: where its pieces are.
pub(super) struct WrittenKey {
    /// The end of the name of the bucket, which begins where the text was appended.
    pub(super) end: usize,
    /// The length of the part of that name which all subjects of the limit share.
    pub(super) scope: usize,
    /// The subject as people are shown it.
    pub(super) subject: Range<usize>,
}

#[derive(Debug)]
struct PreparedKeyPart {
    of: KeyPart,
    /// What stands before the value; without `:` and `~`.
    label: String,
    is_secret: bool,
    /// Whether what it names may be a secret, and only a request tells.
    may_be_secret: bool,
}

/// What stands before the value of a part.
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

// === impl KeyRules ===

impl KeyRules {
    /// Returns the hash that stands for a value after `label` wherever names are not literal; `None`
    /// where the value itself does.
    pub fn hash(&self, label: &str, value: &str) -> Option<String> {
        (is_secret_name(label) || value.len() > VALUE_BYTES_MAX).then(|| {
            let mut hash = String::new();
            push_fingerprint(&mut hash, label, value, self.secret.as_ref());
            hash
        })
    }
}

impl fmt::Debug for KeyRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyRules")
            .field("address", &self.address)
            .field("secret", &self.secret.map(|_| "***"))
            .field("literal", &self.literal)
            .finish()
    }
}

/// `policy/limit`, as the names of the limit's buckets begin.
pub fn bucket_scope(policy: &str, limit: &str) -> String {
    let mut scope = String::new();
    push_name(&mut scope, policy);
    scope.push('/');
    push_name(&mut scope, limit);
    scope
}

// === impl Key ===

impl PreparedKey {
    pub(super) fn new(policy: &str, limit: &Limit) -> Self {
        let mut prefix = bucket_scope(policy, &limit.name);
        prefix.push('/');
        let mut parts: Vec<PreparedKeyPart> = limit
            .key
            .iter()
            .map(|it| PreparedKeyPart::new(it, limit))
            .collect();
        if parts.is_empty() {
            parts.push(PreparedKeyPart::new(&KeyPart::Global, limit));
        }
        Self {
            prefix,
            parts,
            missing: limit.missing,
            is_open: limit.template.is_some(),
        }
    }

    /// Appends the name of the bucket to `text`, and the subject as it is shown where that differs.
    ///
    /// `None` where an identity is absent and nothing is to stand in for it; what was appended
    /// until then is left to the caller.
    #[inline]
    pub(super) fn write(
        &self,
        facts: &MatchInput<'_>,
        rules: &KeyRules,
        text: &mut String,
    ) -> Option<WrittenKey> {
        text.push_str(&self.prefix);
        let start = text.len();
        let is_literal = rules.literal && self.is_open;
        self.write_parts(facts, rules, is_literal, text)?;
        let end = text.len();
        let subject = if is_literal && self.parts.iter().any(|part| part.is_secret) {
            self.write_parts(facts, rules, false, text)?;
            end..text.len()
        } else {
            start..end
        };
        Some(WrittenKey {
            end,
            scope: self.prefix.len(),
            subject,
        })
    }

    /// Appends all parts. With `is_literal`, secrets and long values stand as they are.
    #[inline]
    fn write_parts(
        &self,
        facts: &MatchInput<'_>,
        rules: &KeyRules,
        is_literal: bool,
        text: &mut String,
    ) -> Option<()> {
        for (i, part) in self.parts.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            if !part.write(facts, rules, is_literal, text) {
                if self.missing != Missing::Address {
                    return None;
                }
                part.write_missing(facts, rules, text);
            }
        }
        Some(())
    }
}

// === impl Part ===

impl PreparedKeyPart {
    fn new(part: &KeyPart, limit: &Limit) -> Self {
        let names = entry_names(limit);
        let is_secret = match part {
            KeyPart::Descriptor => names.iter().flatten().any(|name| is_secret_name(name)),
            part => part.is_secret(),
        };
        Self {
            of: part.clone(),
            label: part_label(part),
            is_secret,
            may_be_secret: *part == KeyPart::Descriptor && names.is_none(),
        }
    }

    /// Appends the part, or nothing and `false` where what it names is absent.
    fn write(
        &self,
        facts: &MatchInput<'_>,
        rules: &KeyRules,
        is_literal: bool,
        text: &mut String,
    ) -> bool {
        match (&self.of, facts.ip) {
            (KeyPart::Global, _) => text.push_str(&self.label),
            (KeyPart::Ip, Some(ip)) => {
                text.push_str("ip:");
                push_address(text, ip, rules.address);
            }
            (KeyPart::Descriptor, _) => match facts.descriptor {
                Some(it) if !it.entries.is_empty() => self.write_entries(it.entries, rules, text),
                _ => return false,
            },
            (part, _) => {
                let Some(value) = facts.identity(part) else {
                    return false;
                };
                text.push_str(&self.label);
                text.push(':');
                let longest = if is_literal {
                    LITERAL_BYTES_MAX
                } else {
                    VALUE_BYTES_MAX
                };
                if (self.is_secret && !is_literal) || value.len() > longest {
                    push_fingerprint(text, &self.label, value, rules.secret.as_ref());
                } else if *part == KeyPart::Method && value.contains(char::is_lowercase) {
                    // Conditions take `get` for `GET`, and so do applications.
                    push_value(text, &value.to_ascii_uppercase());
                } else {
                    push_value(text, value);
                }
            }
        }
        true
    }

    /// Appends all entries of a descriptor, `descriptor:to=1&kind=sms`. What separates them is escaped
    /// wherever else it stands.
    fn write_entries(&self, entries: &[(&str, &str)], rules: &KeyRules, text: &mut String) {
        text.push_str(&self.label);
        text.push(':');
        let start = text.len();
        for (i, (name, value)) in entries.iter().enumerate() {
            if i > 0 {
                text.push('&');
            }
            push_value(text, name);
            text.push('=');
            push_value(text, value);
        }
        let is_long = text.len().saturating_sub(start) > ENTRIES_BYTES_MAX;
        let holds_secret = || entries.iter().any(|(name, _)| is_secret_name(name));
        if is_long || self.is_secret || (self.may_be_secret && holds_secret()) {
            replace_by_fingerprint(text, start, &self.label, rules.secret.as_ref());
        }
    }

    /// Appends what stands in for an absent part: the address, or that not even that is known.
    fn write_missing(&self, facts: &MatchInput<'_>, rules: &KeyRules, text: &mut String) {
        text.push_str(&self.label);
        match (&self.of, facts.ip) {
            (KeyPart::Ip, _) => text.push_str(":unknown"),
            (_, Some(ip)) => {
                text.push_str("~ip:");
                push_address(text, ip, rules.address);
            }
            (_, None) => text.push_str("~unknown"),
        }
    }
}

/// The names of all entries that the descriptors of a limit can have, where its conditions tell.
fn entry_names(limit: &Limit) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for condition in &limit.conditions {
        match &condition.descriptor {
            Some(DescriptorPattern::Exactly(entries)) => {
                names.extend(entries.iter().map(|entry| entry.name.as_str()));
            }
            _ => return None,
        }
    }
    (!limit.conditions.is_empty()).then_some(names)
}
