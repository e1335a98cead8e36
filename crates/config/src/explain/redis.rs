//! Describes a Redis store: the server, the names of keys, and the cost of a request.

use super::words::{self, list};
use crate::config::Config;
use std::time::Duration;
use tidegate_core::{Algorithm, LimitMode};
use tidegate_policy::limit::{KeyPart, Limit};
use tidegate_policy::policy::{Evaluate, Policy};
use tidegate_policy::slot_group::{SlotGroup, SlotTag, subject_of};
use tidegate_policy::store::{LayoutWord, RedisMode, RedisSettings};
use tidegate_policy::template::{KeyOf, band_name, push_key};

/// Describes the round trips and groups that a request costs, and how to save one: a sentence or two
/// for each policy. Empty if the store is in memory.
///
/// ```
/// use tidegate_config::Config;
/// use tidegate_config::NoEnvironment;
/// use tidegate_config::costs;
///
/// let text = "
/// store: { url: \"redis://a:6379,b:6379\" }
/// policies:
///   - name: api
///     limits:
///       - { name: per-ip, key: ip, rate: 10/s }
///       - { name: per-user, key: user, rate: 10/s }
/// ";
/// let config = Config::parse(text, "limits.yaml", &NoEnvironment)?;
/// assert!(costs(&config)[0].contains("up to 2 groups"));
/// # Ok::<(), tidegate_config::ConfigErrors>(())
/// ```
pub fn costs(config: &Config) -> Vec<String> {
    let Some(redis) = config.store.target.redis() else {
        return Vec::new();
    };
    let policies = config.policies.iter();
    policies
        .map(|policy| format!("Policy `{}`: {}", policy.name, cost(redis, policy)))
        .collect()
}

/// Describes the store and its contents.
pub(super) fn store(config: &Config, redis: &RedisSettings) -> String {
    let what = match &redis.mode {
        RedisMode::Standalone => "one server".to_owned(),
        RedisMode::Sentinel { master, .. } => {
            format!("the server that sentinels know as `{master}`")
        }
        RedisMode::Cluster => "a Cluster".to_owned(),
    };
    let connections = match redis.connections {
        1 => "One connection".to_owned(),
        count => format!("{count} connections"),
    };
    let without = if redis.required_at_start {
        "Tidegate does not start until the store is reachable."
    } else {
        "Tidegate starts without the store and applies `on_failure`."
    };
    [
        format!(
            "Buckets are in {redis}, {what}, with a timeout of {}.",
            period(config.store.timeout)
        ),
        format!(
            "{connections} to each node, with a connect timeout of {}. {without}",
            period(redis.connect_timeout)
        ),
        layout(redis),
        "A key expires when all of its bands are full again.".to_owned(),
    ]
    .join("\n  ")
}

fn layout(redis: &RedisSettings) -> String {
    let prefix = &redis.prefix;
    match redis.layout {
        LayoutWord::Packed => {
            format!(
                "Keys start with `{prefix}`; one key holds all bands of a limit for one \
                subject."
            )
        }
        LayoutWord::Open => format!(
            "Keys are named by templates, one per band; algorithms without an open form use \
             packed keys under `{prefix}`."
        ),
    }
}

fn period(time: Duration) -> String {
    words::time(time)
}

/// Describes the cost of a request, and how to reduce it.
pub(super) fn cost(redis: &RedisSettings, policy: &Policy) -> String {
    let most = policy.groups_at_most(redis.tag);
    if policy.evaluate == Evaluate::Each {
        return "a request costs one round trip, and each limit is decided separately: if one \
            refuses, the others stay charged."
            .to_owned();
    }
    if redis.mode != RedisMode::Cluster {
        return "a request costs one round trip for all its limits.".to_owned();
    }
    if most < 2 {
        return "a request costs one round trip to one group (hash slot).".to_owned();
    }
    let groups = policy.groups(redis.tag);
    if policy.spreads(redis.tag) {
        return format!(
            "a request costs one round trip, in parallel to each group (hash slot) of its \
             descriptors and limits; if one refuses, the others are refunded.\n  {}",
            described_advice(redis.tag)
        );
    }
    let shown: Vec<String> = groups
        .iter()
        .map(|group| format!("{} by `{}`", names(policy, group), group.by))
        .collect();
    let are = match groups.len() {
        all if all == most => "They are:".to_owned(),
        all => format!("The policy has {all}:"),
    };
    format!(
        "a request costs one round trip, in parallel to up to {most} groups (hash slots); if one \
         refuses, the others are refunded. {are} {}.\n  {}",
        shown.join("; "),
        advice(redis.tag, policy, &groups)
    )
}

fn names(policy: &Policy, group: &SlotGroup) -> String {
    let limits = group.limits.iter();
    let names: Vec<String> = limits
        .filter_map(|index| Some(format!("`{}`", policy.limits.get(*index)?.name)))
        .collect();
    list(&names, "and")
}

/// Suggests how to turn several groups into one.
fn advice(tag: SlotTag, policy: &Policy, groups: &[SlotGroup]) -> String {
    let is_open = |group: &SlotGroup| {
        let mut limits = group
            .limits
            .iter()
            .filter_map(|index| policy.limits.get(*index));
        limits.any(|limit| limit.template.is_some())
    };
    if groups.iter().any(is_open) {
        return "To save a group, put a hash tag into the templates, such as {{{key}}}: keys with the same text in braces share a slot; or use `layout: packed`.".to_owned();
    }
    if policy.is_joined() {
        return joined_advice(tag, policy, groups);
    }
    let same_key = match groups {
        [a, b] => format!(
            "; or give {} and {} the same key",
            names(policy, a),
            names(policy, b)
        ),
        _ => "; or let more limits have the same key".to_owned(),
    };
    format!(
        "To save all but one, write `tag: policy` in `store.redis`: it keeps each policy in one slot, and so on one node{same_key}."
    )
}

/// Suggests the same if each descriptor may be in a separate group.
fn described_advice(tag: SlotTag) -> &'static str {
    match tag {
        SlotTag::Subject => {
            "To save all but one, write `tag: policy` in `store.redis`: it keeps each policy in one slot, and so on one node."
        }
        SlotTag::Policy => "To save a group, use `layout: packed`.",
    }
}

/// Suggests the same for joined policies. With `tag: policy`, each of them has its own slot.
fn joined_advice(tag: SlotTag, policy: &Policy, groups: &[SlotGroup]) -> String {
    if tag == SlotTag::Policy {
        return "To save all but one, write these limits into one policy: each policy has its own \
            slot."
            .to_owned();
    }
    let by_policy = match policy.groups(SlotTag::Policy).len() {
        fewer if fewer < groups.len() => {
            "; or write `tag: policy` in `store.redis`: it keeps each of these policies in one slot, and so on one node"
        }
        _ => "",
    };
    format!("To save a group, let more limits have the same key{by_policy}.")
}

/// Returns "Its keys look like …".
#[deny(clippy::wildcard_enum_match_arm)]
pub(super) fn keys(
    config: &Config,
    redis: &RedisSettings,
    policy: &Policy,
    limit: &Limit,
) -> String {
    let is_literal = limit.template.is_some() && config.has_literal_keys();
    let hashed = subject_of(&limit.key, |part| sample(part).to_owned());
    let subject = subject_of(&limit.key, |part| match sample(part) {
        HASH if is_literal => "value".to_owned(),
        sample => sample.to_owned(),
    });
    let (policy, name) = (&policy.name, &limit.name);
    let prefix = &redis.prefix;
    let packed = match redis.tag {
        SlotTag::Subject => format!("`{prefix}{{{hashed}}}{policy}/{name}`"),
        SlotTag::Policy => format!("`{prefix}{{{policy}}}{name}/{hashed}`"),
    };
    let Some(template) = &limit.template else {
        return format!("Key in Redis: {packed}.");
    };
    let block = match limit.block {
        Some(_) if limit.mode == LimitMode::Enforce => format!(" Its block: {packed}."),
        _ => String::new(),
    };
    let names = limit.shapes().iter().map(|band| {
        let name = template.render(&KeyOf {
            policy,
            limit: name,
            subject: &subject,
            band: band_name(band),
        });
        match band.quota.reset_number() {
            Some(number) => format!("`{name}~{number:08x}`"),
            None => format!("`{name}`"),
        }
    });
    let names = list(&names.collect::<Vec<_>>(), "and");
    let keys = if limit.shapes().len() == 1 {
        "Key"
    } else {
        "Keys"
    };
    match limit.algorithm {
        Algorithm::FixedWindow(_) => {
            let mut field = String::new();
            push_key(&mut field, &subject);
            format!("{keys} in Redis: {names} (a hash, field `{field}`).{block}")
        }
        Algorithm::SlidingLog => format!("{keys} in Redis: {names} (a sorted set).{block}"),
        Algorithm::TokenBucket
        | Algorithm::SlidingWindow
        | Algorithm::BucketedWindow
        | Algorithm::CalendarWindow
        | Algorithm::Concurrent => {
            format!("{keys} in Redis: {names} (a hash).{block}")
        }
    }
}

/// A placeholder for the hash of a secret.
const HASH: &str = "#<hash>";

/// Returns an example value of a key part.
fn sample(part: &KeyPart) -> &'static str {
    match part {
        KeyPart::Ip => "192.0.2.1",
        KeyPart::User => "ann",
        KeyPart::ApiKey => HASH,
        KeyPart::Header(name) | KeyPart::Attr(name) | KeyPart::DescriptorEntry { name, .. }
            if tidegate_policy::matching::is_secret_name(name) =>
        {
            HASH
        }
        KeyPart::Header(_) | KeyPart::Attr(_) | KeyPart::DescriptorEntry { .. } => "value",
        KeyPart::Route => "orders",
        KeyPart::Host => "example.com",
        KeyPart::Method => "GET",
        KeyPart::Path => "%2Forders",
        KeyPart::Descriptor => "to=1",
        KeyPart::Group => "acme",
        KeyPart::Global => "",
    }
}
