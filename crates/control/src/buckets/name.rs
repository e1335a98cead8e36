//! From a bucket's name, or a key in Redis, to its policy, limit and subject.

use super::pattern;
use crate::failure::Failure;
use tidegate_config::Config;
use tidegate_policy::{Policy, SlotTag};

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
                "`{text}` is not a bucket: it is the list of instances"
            )));
        }
        if rest == "seal" {
            return Err(Failure::input(format!(
                "`{text}` is not a bucket: it is the secret of reservation ids"
            )));
        }
        if rest.starts_with("{#") || rest.contains("/#") {
            return Err(Failure::input(format!(
                "`{text}` is the hash of a long bucket name\n   help: select the bucket with \
                 --limit and --key"
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
            "`{text}` holds many buckets, one per field\n   help: select one: --limit {limit} \
             --key …"
        )));
    }
    let mut parts = text.splitn(3, '/');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(policy), Some(limit), Some(subject)) => Ok(BucketName::new(policy, limit, subject)),
        _ => Err(Failure::input(format!(
            "`{text}` is neither the name of a bucket, such as `api/per-client/ip:192.0.2.1`, \
             nor a Redis key of this configuration\n   help: select the bucket with --limit and \
             --key"
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
