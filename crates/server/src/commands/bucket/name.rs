//! From a bucket's name, or a key in Redis, to its policy, limit and subject.

use super::pattern;
use crate::failure::Failure;
use tidegate_policy::{Config, Policy, SlotTag};

/// The parts of a name.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BucketName {
    pub(super) policy: String,
    pub(super) limit: String,
    pub(super) subject: String,
}

impl BucketName {
    fn new(policy: &str, limit: &str, subject: &str) -> Self {
        Self {
            policy: policy.to_owned(),
            limit: limit.to_owned(),
            subject: subject.to_owned(),
        }
    }

    fn is_known(&self, config: &Config) -> bool {
        let of = |policy: &Policy| policy.limits.iter().any(|limit| limit.name == self.limit);
        config.policy(Some(&self.policy)).is_some_and(of)
    }
}

/// Parses a bucket's name or a key in Redis.
pub(super) fn read(config: &Config, text: &str) -> Result<BucketName, Failure> {
    if let Some(redis) = config.store.target.redis()
        && let Some(rest) = text.strip_prefix(redis.prefix.as_str())
    {
        if rest == "instances" {
            return Err(Failure::input(format!(
                "`{text}` is no bucket, but the list of the instances that share this store"
            )));
        }
        if rest == "seal" {
            return Err(Failure::input(format!(
                "`{text}` is no bucket, but the secret by which ids of reservations are sealed"
            )));
        }
        if rest.starts_with("{#") || rest.contains("/#") {
            return Err(Failure::input(format!(
                "`{text}` is the key of a bucket whose name was too long, and a hash does not \
                 tell which\n   help: say whose it is, with --limit and --key"
            )));
        }
        if let Some(name) = packed(rest, redis.tag).filter(|name| name.is_known(config)) {
            return Ok(name);
        }
    }
    if let Some(name) = pattern::find(config, text) {
        return Ok(name);
    }
    if let Some(limit) = pattern::hash_of(config, text) {
        return Err(Failure::input(format!(
            "`{text}` holds many buckets, a field for each\n   help: say whose is meant: \
             --limit {limit} --key …"
        )));
    }
    let mut parts = text.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(policy), Some(limit), Some(subject)) => Ok(BucketName::new(policy, limit, subject)),
        _ => Err(Failure::input(format!(
            "`{text}` is neither the name of a bucket, such as `api/per-client/ip:192.0.2.1`, \
             nor a key that this configuration makes\n   help: say whose it is, with --limit \
             and --key"
        ))),
    }
}

/// Parses `{subject}policy/limit` or `{policy}limit/subject`.
fn packed(rest: &str, tag: SlotTag) -> Option<BucketName> {
    let (tagged, rest) = rest.strip_prefix('{')?.split_once('}')?;
    let (first, second) = rest.split_once('/')?;
    Some(match tag {
        SlotTag::Subject => BucketName::new(first, second, tagged),
        SlotTag::Policy => BucketName::new(tagged, first, second),
    })
}

pub(super) fn named(policy: &str, limit: &str, subject: &str) -> BucketName {
    BucketName::new(policy, limit, subject)
}
