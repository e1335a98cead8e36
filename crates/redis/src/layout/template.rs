//! The name of a key, piece by piece, from the name of its bucket: `policy/limit/part,part`, each
//! part a label and a value.

use super::literal::push_unescaped;

/// The longest name. Longer ones are hashed, so that no client can fill the store with names.
const NAME_BYTES_MAX: usize = 512;

/// A piece of a key's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPiece {
    /// Text as it is.
    Text(String),
    /// The name of the policy.
    Policy,
    /// The name of the limit.
    Limit,
    /// The values of the subject, joined by `:`.
    Key,
    /// The subject: labels and values.
    Subject,
    /// The label of the band.
    Band,
    /// The value of the part of the subject that has this label.
    Part(String),
}

impl KeyPiece {
    /// Appends this piece of a bucket's key to `name`.
    pub(super) fn push(
        &self,
        name: &mut Vec<u8>,
        whose: &BucketParts<'_>,
        subject: &KeySubject<'_>,
        band: &str,
    ) {
        match self {
            Self::Text(text) => name.extend_from_slice(text.as_bytes()),
            Self::Policy => name.extend_from_slice(whose.policy),
            Self::Limit => name.extend_from_slice(whose.limit),
            Self::Band => name.extend_from_slice(band.as_bytes()),
            Self::Key => subject.push_key(name),
            Self::Subject => subject.push(name),
            Self::Part(label) => subject.push_part(name, label.as_bytes()),
        }
    }
}

/// The name of a bucket in parts. A name of another form is all subject.
pub(super) struct BucketParts<'a> {
    bucket: &'a [u8],
    policy: &'a [u8],
    limit: &'a [u8],
    subject: &'a [u8],
}

impl<'a> BucketParts<'a> {
    /// Splits the name of a bucket.
    pub(super) fn of(bucket: &'a [u8]) -> Self {
        let mut parts = bucket.splitn(3, |byte| *byte == b'/');
        match (parts.next(), parts.next(), parts.next()) {
            (Some(policy), Some(limit), Some(subject)) => Self {
                bucket,
                policy,
                limit,
                subject,
            },
            _ => Self {
                bucket,
                policy: &[],
                limit: &[],
                subject: bucket,
            },
        }
    }

    /// `policy/limit`; nothing where the name is of another form.
    pub(super) fn policy_and_limit(&self) -> &'a [u8] {
        let length = self.bucket.len().saturating_sub(self.subject.len());
        let end = length.saturating_sub(1);
        self.bucket.get(..end).unwrap_or_default()
    }

    /// Appends the whole name.
    pub(super) fn push(&self, name: &mut Vec<u8>) {
        push_plain(name, self.bucket);
    }

    /// Appends `policy/limit`.
    pub(super) fn push_limit(&self, name: &mut Vec<u8>) {
        push_plain(name, self.policy_and_limit());
    }

    /// Appends the subject.
    pub(super) fn push_subject(&self, name: &mut Vec<u8>) {
        push_plain(name, self.subject);
    }
}

/// The subject; one that no policy makes is hashed.
pub(super) enum KeySubject<'a> {
    /// Its text, and the characters that stand for themselves in its values.
    Parts(&'a [u8], &'a str),
    Hash(&'a [u8]),
}

impl<'a> KeySubject<'a> {
    /// Returns the subject of a bucket. `literal` are the characters that are not escaped in its values.
    pub(super) fn of(whose: &BucketParts<'a>, literal: &'a str) -> Self {
        if is_plain(whose.subject) {
            Self::Parts(whose.subject, literal)
        } else {
            Self::Hash(whose.subject)
        }
    }

    /// Appends the subject with its labels.
    fn push(&self, name: &mut Vec<u8>) {
        match self {
            Self::Parts(subject, _) => name.extend_from_slice(subject),
            Self::Hash(subject) => push_hash(name, subject),
        }
    }

    /// The values of all parts, joined by `:`.
    pub(super) fn push_key(&self, name: &mut Vec<u8>) {
        let Self::Parts(subject, literal) = self else {
            return self.push(name);
        };
        // A comma within a value is escaped.
        for (i, part) in subject.split(|byte| *byte == b',').enumerate() {
            if i > 0 {
                name.push(b':');
            }
            push_value(name, part, literal);
        }
    }

    /// Appends the value of the part with this label, if the subject has it.
    fn push_part(&self, name: &mut Vec<u8>, label: &[u8]) {
        let Self::Parts(subject, literal) = self else {
            return self.push(name);
        };
        let mut parts = subject.split(|byte| *byte == b',');
        let is_it = |part: &&[u8]| {
            let rest = part.strip_prefix(label);
            matches!(rest.and_then(<[u8]>::first), Some(b':' | b'~'))
        };
        if let Some(part) = parts.find(is_it) {
            push_value(name, part, literal);
        }
    }
}

/// Appends the value of a part, or the placeholder of an absent one, with its `~`. No client can pose as
/// one whose identity is absent, or as a hash.
fn push_value(name: &mut Vec<u8>, part: &[u8], literal: &str) {
    let end = part.iter().position(|byte| matches!(byte, b':' | b'~'));
    let value = match end.and_then(|end| part.split_at_checked(end)) {
        Some((_, [b':', b'~', rest @ ..])) => {
            name.extend_from_slice(b"%7E");
            rest
        }
        Some((_, [b':', b'%', b'2', b'3', rest @ ..])) => {
            name.extend_from_slice(b"%23");
            rest
        }
        Some((_, [b':', value @ ..])) => value,
        Some((_, stand_in)) => stand_in,
        // One bucket for all has a label and no value.
        None => part,
    };
    push_unescaped(name, value, |byte| literal.as_bytes().contains(&byte));
}

/// A brace would steer the slot in a Cluster. No name that policies make is like this.
fn is_plain(name: &[u8]) -> bool {
    name.len() <= NAME_BYTES_MAX && !name.iter().any(|byte| matches!(byte, b'{' | b'}'))
}

/// Appends a text as it is, or its hash if it is too long or has braces.
fn push_plain(name: &mut Vec<u8>, text: &[u8]) {
    if is_plain(text) {
        name.extend_from_slice(text);
    } else {
        push_hash(name, text);
    }
}

/// Appends the hash of a text.
fn push_hash(name: &mut Vec<u8>, text: &[u8]) {
    let hash = blake3::hash(text).to_hex();
    name.push(b'#');
    name.extend_from_slice(hash.as_bytes().get(..32).unwrap_or_default());
}
