//! Values as clients send them: literal in a name if possible, else hashed.

use super::template::BucketParts;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// A function from label and value to the hash of the value; `None` if it stays literal.
type ValueHash = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

/// Hashes values in names that no template makes.
#[derive(Clone)]
pub(super) struct Hashing(Arc<ValueHash>);

impl Hashing {
    /// Returns the rule that hashes values by `hash`.
    pub(super) fn new(hash: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(hash))
    }

    /// Returns the name of a bucket with hashes in place of values that have one.
    pub(super) fn apply<'b>(&self, bucket: &'b [u8]) -> Cow<'b, [u8]> {
        let limit = BucketParts::of(bucket).policy_and_limit().len();
        let (Some(subject), true) = (bucket.get(limit.saturating_add(1)..), limit > 0) else {
            return Cow::Borrowed(bucket);
        };
        let mut name = bucket.get(..limit).unwrap_or_default().to_vec();
        let mut before = b'/';
        for part in subject.split(|byte| *byte == b',') {
            name.push(std::mem::replace(&mut before, b','));
            match self.hash(part) {
                Some((label, hash)) => {
                    name.extend_from_slice(label.as_bytes());
                    name.push(b':');
                    name.extend_from_slice(hash.as_bytes());
                }
                None => name.extend_from_slice(part),
            }
        }
        Cow::Owned(name)
    }

    /// Returns the label of a part and the hash of its value, unless it stays literal.
    fn hash<'p>(&self, part: &'p [u8]) -> Option<(&'p str, String)> {
        let (label, value) = str::from_utf8(part).ok()?.split_once(':')?;
        // It is a placeholder for an absent one, is a hash already, or is a descriptor, whose entries are
        // hashed as a whole if necessary.
        if label.contains('~') || value.starts_with('#') || value.contains('=') {
            return None;
        }
        let mut sent = Vec::with_capacity(value.len());
        push_unescaped(&mut sent, value.as_bytes(), |_| true);
        Some((label, (self.0)(label, str::from_utf8(&sent).ok()?)?))
    }
}

impl fmt::Debug for Hashing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Hashing").finish_non_exhaustive()
    }
}

/// Appends a value, with the characters for which `is_plain` is true not escaped.
pub(super) fn push_unescaped(name: &mut Vec<u8>, value: &[u8], is_plain: impl Fn(u8) -> bool) {
    let mut rest = value;
    while let Some((first, after)) = rest.split_first() {
        let escaped = (*first == b'%').then(|| after.split_first_chunk::<2>());
        let escaped = escaped.flatten().and_then(|(digits, after)| {
            let digits = str::from_utf8(digits).ok()?;
            Some((u8::from_str_radix(digits, 16).ok()?, after))
        });
        let plain = escaped.filter(|(byte, _)| is_plain(*byte));
        let (byte, after) = plain.unwrap_or((*first, after));
        name.push(byte);
        rest = after;
    }
}

#[cfg(test)]
mod tests {
    use super::{Hashing, push_unescaped};

    #[test]
    fn only_values_that_have_a_hash_are_replaced() {
        let hashing = Hashing::new(|label, value| {
            (label == "api-key" || value.len() > 64).then(|| format!("#{}", value.len()))
        });
        let long = "x".repeat(65);
        for (bucket, expected) in [
            ("p/l/api-key:a%3Ab", "p/l/api-key:#3".to_owned()),
            (
                "p/l~m/api-key:abc,ip:::1/64",
                "p/l~m/api-key:#3,ip:::1/64".to_owned(),
            ),
            ("p/l/api-key:#0", "p/l/api-key:#0".to_owned()),
            (
                "p/l/api-key~ip:192.0.2.1",
                "p/l/api-key~ip:192.0.2.1".to_owned(),
            ),
            ("p/l/global", "p/l/global".to_owned()),
            ("api-key:abc", "api-key:abc".to_owned()),
            (&format!("p/l/user:{long}"), "p/l/user:#65".to_owned()),
            (
                &format!("p/l/descriptor:a={long}"),
                format!("p/l/descriptor:a={long}"),
            ),
        ] {
            let hashed = hashing.apply(bucket.as_bytes());
            assert_eq!(str::from_utf8(&hashed), Ok(expected.as_str()));
        }
    }

    #[test]
    fn only_whole_escapes_of_wanted_characters_are_undone() {
        for (value, expected) in [
            ("a%3Ab%7Bc", "a:b%7Bc"),
            ("%253A", "%253A"),
            ("%3", "%3"),
            ("%", "%"),
            ("%zz", "%zz"),
        ] {
            let mut name = Vec::new();
            push_unescaped(&mut name, value.as_bytes(), |byte| byte == b':');
            assert_eq!(str::from_utf8(&name), Ok(expected));
        }
    }
}
