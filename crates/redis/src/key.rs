//! From a bucket's name to a key in Redis: prefix, hash tag, slot.
//!
//! A bucket is named `policy/limit/subject`. Under [`HashTag::Subject`] its key is
//! `tg:{subject}policy/limit`, so that all buckets of a subject share a slot of a Cluster; under
//! [`HashTag::Policy`] it is `tg:{policy}limit/subject`, so that all buckets of a policy do.

use crate::layout::{Layout, OpenKey, OpenLayout};
use crate::request::RedisKey;
use arc_swap::ArcSwapOption;
use tidegate_core::Quota;

/// How many slots a Cluster has.
pub(crate) const SLOTS: u16 = 16_384;

/// Parts of a name longer than this stand as a hash, so that nobody can fill the store with names.
const PART_BYTES_MAX: usize = 512;

/// What holds keys of a Cluster together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HashTag {
    /// Whose bucket it is: keys spread over all nodes, and a request that meets limits of several
    /// subjects is decided by reserve and refund.
    #[default]
    Subject,
    /// The policy: every request is one step, and the policy lives on one node.
    Policy,
}

/// How keys are named.
#[derive(Debug)]
pub(crate) struct KeyNaming {
    prefix: Box<[u8]>,
    tag: HashTag,
    /// How keys of the open layout are named, if that is the layout.
    open: ArcSwapOption<OpenLayout>,
}

impl KeyNaming {
    pub(crate) fn new(prefix: &str, tag: HashTag) -> Self {
        Self {
            prefix: prefix.as_bytes().into(),
            tag,
            open: ArcSwapOption::empty(),
        }
    }

    pub(crate) fn tag(&self) -> HashTag {
        self.tag
    }

    /// What every key begins with.
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

    /// Whether all bands of a bucket share its key.
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

/// What is before the first slash, and what is behind it.
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

/// The slot of a key: of its hash tag, if it has one.
pub fn slot(key: &[u8]) -> u16 {
    crc16(hash_tag(key)) % SLOTS
}

/// What is between the first `{` and the next `}`, if that is anything; else the whole key.
fn hash_tag(key: &[u8]) -> &[u8] {
    let inside = || {
        let open = key.iter().position(|byte| *byte == b'{')?;
        let rest = key.get(open.checked_add(1)?..)?;
        let close = rest.iter().position(|byte| *byte == b'}')?;
        rest.get(..close).filter(|tag| !tag.is_empty())
    };
    inside().unwrap_or(key)
}

/// CRC-16/XMODEM, as the Cluster specification has it.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc: u16, byte| {
        let at = usize::from((crc >> 8) as u8 ^ byte);
        (crc << 8) ^ CRC_TABLE.get(at).copied().unwrap_or_default()
    })
}

static CRC_TABLE: [u16; 256] = crc_table();

const fn crc_table() -> [u16; 256] {
    let mut table = [0_u16; 256];
    let mut byte = 0_u16;
    while byte < 256 {
        let mut crc = byte << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        #[expect(clippy::indexing_slicing, reason = "a constant; it would not compile")]
        {
            table[byte as usize] = crc;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::{HashTag, KeyNaming, crc16, slot};

    fn name(tag: HashTag, bucket: &str) -> String {
        let key = KeyNaming::new("tg:", tag).packed(bucket.as_bytes());
        String::from_utf8(key.to_vec()).unwrap()
    }

    #[test]
    fn the_slot_is_that_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"), "an empty tag is no tag");
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
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
    fn no_name_steers_its_slot_or_fills_the_store() {
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
    fn a_long_name_stays_with_those_it_belongs_to() {
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
