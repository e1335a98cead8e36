//! From a bucket's name to a key in Redis: prefix, hash tag, slot.
//!
//! A bucket is named `policy/limit/subject`. Under [`HashTag::Subject`] its key is
//! `tg:{subject}policy/limit`, so that all buckets of a subject share a slot of a Cluster; under
//! [`HashTag::Policy`] it is `tg:{policy}limit/subject`, so that all buckets of a policy do.

use crate::layout::{Layout, OpenKey, OpenLayout};
use crate::request::RedisKey;
use arc_swap::ArcSwapOption;
use tidegate_core::Quota;

/// The longest part of a name. Longer ones are hashed, so that no client can fill the store with names.
const PART_BYTES_MAX: usize = 512;

/// The hash tag that keeps keys of a Cluster together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashTag {
    /// The subject: keys spread over all nodes, and a request with limits of several subjects is decided
    /// by reserve and refund.
    #[default]
    Subject,
    /// The policy: every request is one step, and the policy lives on one node.
    Policy,
}

/// The naming of keys.
#[derive(Debug)]
pub(crate) struct KeyNaming {
    prefix: Box<[u8]>,
    tag: HashTag,
    /// The naming of keys in the open layout, if that is the layout.
    open: ArcSwapOption<OpenLayout>,
}

impl KeyNaming {
    /// Returns the naming of the packed layout. [`set_layout`](Self::set_layout) changes it.
    pub(crate) fn new(prefix: &str, tag: HashTag) -> Self {
        Self {
            prefix: prefix.as_bytes().into(),
            tag,
            open: ArcSwapOption::empty(),
        }
    }

    /// Returns the hash tag.
    pub(crate) fn tag(&self) -> HashTag {
        self.tag
    }

    /// Returns the beginning of all keys.
    pub(crate) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Names keys by `layout` from now on. A store that begins packed stays packed.
    pub(crate) fn set_layout(&self, layout: Layout) {
        if let Layout::Open(open) = layout {
            self.open.store(Some(open.into()));
        }
    }

    /// The key of `bucket` under `quota`.
    pub(crate) fn key(&self, bucket: &[u8], quota: &Quota) -> RedisKey {
        match &*self.open.load() {
            None => self.tagged(bucket),
            Some(open) => open
                .key(&self.prefix, bucket, quota)
                .unwrap_or_else(|| OpenKey::packed(&self.tagged(&open.hashed(bucket))).write()),
        }
    }

    /// Returns true if all bands of a bucket share its key.
    pub(crate) fn is_packed(&self) -> bool {
        self.open.load().is_none()
    }

    /// The name of a key in Redis, and its field there.
    pub(crate) fn name<'k>(&self, key: &'k RedisKey) -> OpenKey<'k> {
        if self.is_packed() {
            OpenKey::packed(key)
        } else {
            OpenKey::read(key)
        }
    }

    /// The key of `bucket` in the packed layout.
    pub(crate) fn packed(&self, bucket: &[u8]) -> RedisKey {
        match &*self.open.load() {
            None => self.tagged(bucket),
            Some(open) => self.tagged(&open.hashed(bucket)),
        }
    }

    /// Returns the key of a bucket in the packed layout, with its hash tag in front.
    fn tagged(&self, bucket: &[u8]) -> RedisKey {
        let mut key = RedisKey::new();
        key.extend_from_slice(&self.prefix);
        let (limit, subject) = split(bucket);
        key.push(b'{');
        match self.tag {
            HashTag::Subject => {
                push_part(&mut key, subject);
                key.push(b'}');
                push_part(&mut key, limit);
            }
            HashTag::Policy => {
                let (policy, name) = cut(limit).unwrap_or((NO_POLICY, limit));
                push_part(&mut key, policy);
                key.push(b'}');
                push_part(&mut key, name);
                if !limit.is_empty() {
                    key.push(b'/');
                }
                push_part(&mut key, subject);
            }
        }
        key
    }
}

/// `policy/limit` and the subject; a name of another form is all subject.
fn split(bucket: &[u8]) -> (&[u8], &[u8]) {
    let mut slashes = bucket.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    let second = slashes.nth(1).map(|(at, _)| at);
    second
        .and_then(|at| Some((bucket.get(..at)?, bucket.get(at.checked_add(1)?..)?)))
        .unwrap_or((&[], bucket))
}

/// Splits at the first slash.
fn cut(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = text.iter().position(|byte| *byte == b'/')?;
    Some((text.get(..at)?, text.get(at.checked_add(1)?..)?))
}

/// Stands for the policy where the name has none; an empty tag would be no tag.
const NO_POLICY: &[u8] = b"-";

/// A part of a key; as a hash where it is too long, or has a brace, which would steer the slot. (No
/// name that policies make has one.) What belongs together still does: the same part, the same hash.
fn push_part(key: &mut RedisKey, part: &[u8]) {
    let has_brace = part.iter().any(|byte| matches!(byte, b'{' | b'}'));
    if part.len() <= PART_BYTES_MAX && !has_brace {
        key.extend_from_slice(part);
        return;
    }
    let hash = blake3::hash(part);
    key.push(b'#');
    key.extend_from_slice(hash.to_hex().as_bytes().get(..32).unwrap_or_default());
}

#[cfg(test)]
mod tests {
    use super::{HashTag, KeyNaming};
    use tidegate_redis_client::slot;

    fn name(tag: HashTag, bucket: &str) -> String {
        let key = KeyNaming::new("tg:", tag).packed(bucket.as_bytes());
        String::from_utf8(key.to_vec()).unwrap()
    }

    #[test]
    fn a_key_is_readable_and_tagged() {
        let bucket = "api/per-client/ip:192.0.2.1";
        assert_eq!(
            name(HashTag::Subject, bucket),
            "tg:{ip:192.0.2.1}api/per-client"
        );
        assert_eq!(
            name(HashTag::Policy, bucket),
            "tg:{api}per-client/ip:192.0.2.1"
        );
        assert_eq!(name(HashTag::Subject, "plain"), "tg:{plain}");
        assert_eq!(name(HashTag::Policy, "plain"), "tg:{-}plain");
        assert_eq!(name(HashTag::Subject, "one/slash"), "tg:{one/slash}");
        assert_eq!(name(HashTag::Subject, "a/b/c/d"), "tg:{c/d}a/b");
    }

    #[test]
    fn no_client_name_chooses_its_slot_or_grows_without_bound() {
        for tag in [HashTag::Subject, HashTag::Policy] {
            for bucket in ["a{b}c", "}{", &"x".repeat(10_000)] {
                let key = name(tag, bucket);
                assert!(key.len() < 48 && key.contains('#'), "{key}");
                assert_eq!(key.matches('{').count(), 1, "{key}");
            }
        }
        assert_ne!(name(HashTag::Subject, "a{b"), name(HashTag::Subject, "a{c"));
    }

    #[test]
    fn a_shortened_long_name_keeps_its_slot() {
        let long = "user:".to_owned() + &"x".repeat(1_000);
        let key = |tag, limit: &str, subject: &str| {
            let bucket = format!("api/{limit}/{subject}");
            KeyNaming::new("tg:", tag).packed(bucket.as_bytes())
        };
        let by_subject = |limit, subject| slot(&key(HashTag::Subject, limit, subject));
        assert_eq!(by_subject("reads", &long), by_subject("writes", &long));
        let by_policy = |subject| slot(&key(HashTag::Policy, "reads", subject));
        assert_eq!(by_policy(&long), by_policy("user:ann"));
    }
}
