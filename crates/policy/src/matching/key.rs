//! Bucket keys: `policy/limit/part,part`, written so that no two subjects share one.
//!
//! Each part is a label and a value, `user:ann`. All text that a client can choose is escaped, so no value
//! can pose as another part. Long or secret values are replaced by a hash, `api-key:#…`. Where an identity is
//! absent, the address replaces it, in a form that no client with that identity has: `user~ip:192.0.2.1`.

use super::address::push_address;
use super::facts::MatchInput;
use super::secret::{push_fingerprint, replace_by_fingerprint};
use crate::address_rules::AddressRules;
use crate::key_part::part_label;
use crate::patterns::escape::{push_name, push_value};
use crate::patterns::{DescriptorPattern, is_secret_name};
use crate::{KeyPart, Limit, MissingIdentity};
use std::fmt;
use std::ops::Range;

/// The maximum length of a value in a key. Longer values are hashed, so that clients cannot fill the store
/// with long names.
pub(super) const VALUE_BYTES_MAX: usize = 64;

/// The maximum length of a value in a literal name, as other systems know it.
const LITERAL_BYTES_MAX: usize = 256;

/// The maximum length of all entries of a descriptor together, as written in a key.
const ENTRIES_BYTES_MAX: usize = 128;

/// The value of a part by address, if the address is absent.
const UNKNOWN_ADDRESS: &str = ":unknown";

/// The value of another part, if the identity and the address are absent.
const UNKNOWN_CLIENT: &str = "~unknown";

/// The rules for writing keys. They must be the same on every instance that shares a store.
#[derive(Clone, Copy, Default)]
pub struct KeyRules {
    /// The rules for addresses.
    pub address: AddressRules,
    /// The key for hashes of secrets and of long values (`store.key_secret`).
    pub secret: Option<[u8; 32]>,
    /// True if secrets and values of up to 256 bytes stay as sent in the names of buckets with a template
    /// (`store.redis.key_names`), because another system uses these names. Output still shows them as hashes, and
    /// keys without a template contain them as hashes ([`hash`](Self::hash)).
    pub literal: bool,
}

/// The key of one limit, prepared for writing.
#[derive(Debug)]
pub(crate) struct PreparedKey {
    /// `policy/limit/`
    prefix: String,
    parts: Vec<PreparedKeyPart>,
    missing: MissingIdentity,
    /// True if a template names its keys in Redis.
    is_open: bool,
}

/// The positions of a key's pieces in the text that it was written to.
pub(crate) struct WrittenKey {
    /// The end of the bucket's name, which starts where the text was appended.
    pub(crate) end: usize,
    /// The number of leading bytes of that name that all subjects of the limit share.
    pub(crate) scope: usize,
    /// The subject as shown to operators.
    pub(crate) subject: Range<usize>,
}

#[derive(Debug)]
struct PreparedKeyPart {
    of: KeyPart,
    /// The text before the value, without `:` and `~`.
    label: String,
    is_secret: bool,
    /// True if only the request shows whether the value is a secret.
    may_be_secret: bool,
}

// === impl KeyRules ===

impl KeyRules {
    /// Returns the hash that replaces a value after `label` in names that are not literal, or `None` if the
    /// value needs no hash.
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

/// Returns `policy/limit`, the prefix of the limit's bucket names.
pub fn bucket_scope(policy: &str, limit: &str) -> String {
    let mut scope = String::new();
    push_name(&mut scope, policy);
    scope.push('/');
    push_name(&mut scope, limit);
    scope
}

// === impl PreparedKey ===

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

    /// Appends the name of the bucket to `text`, and the subject for output if that differs.
    ///
    /// Returns `None` if an identity is absent and has no replacement. The caller must then remove the text
    /// that was already appended.
    #[inline]
    pub(crate) fn write(
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

    /// Returns true if a key with this subject is that of all requests without the identity and without an
    /// address.
    pub(crate) fn is_unknown_client(&self, subject: &str) -> bool {
        // Most keys have one part, and most requests to a library have no address.
        if let [part] = &*self.parts {
            return part.is_unknown(subject);
        }
        let mut parts = subject.split(',').zip(&self.parts);
        parts.any(|(text, part)| part.is_unknown(text))
    }

    /// Appends all parts. With `is_literal`, secrets and long values are written as they are.
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
                if self.missing != MissingIdentity::Address {
                    return None;
                }
                part.write_missing(facts, rules, text);
            }
        }
        Some(())
    }
}

// === impl PreparedKeyPart ===

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

    /// Appends the part. Returns false, and appends nothing, if its value is absent.
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
                    // Conditions treat `get` as `GET`, and so do applications.
                    push_value(text, &value.to_ascii_uppercase());
                } else {
                    push_value(text, value);
                }
            }
        }
        true
    }

    /// Appends all entries of a descriptor, `descriptor:to=1&kind=sms`. Separators inside names and values
    /// are escaped.
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

    /// Returns true if `text` replaces this part because the identity and the address are absent. No present
    /// value looks like that: it follows the label and a `:`, and none is an address called `unknown`.
    fn is_unknown(&self, text: &str) -> bool {
        let unknown = match self.of {
            KeyPart::Ip => UNKNOWN_ADDRESS,
            _ => UNKNOWN_CLIENT,
        };
        text.ends_with(unknown) && text.strip_prefix(self.label.as_str()) == Some(unknown)
    }

    /// Appends the replacement for an absent part: the address, or `unknown` if the address is absent too.
    fn write_missing(&self, facts: &MatchInput<'_>, rules: &KeyRules, text: &mut String) {
        text.push_str(&self.label);
        match (&self.of, facts.ip) {
            (KeyPart::Ip, _) => text.push_str(UNKNOWN_ADDRESS),
            (_, Some(ip)) => {
                text.push_str("~ip:");
                push_address(text, ip, rules.address);
            }
            (_, None) => text.push_str(UNKNOWN_CLIENT),
        }
    }
}

/// Returns the names of all entries that the descriptors of a limit can have, or `None` if its conditions do
/// not determine them.
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
