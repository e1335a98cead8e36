//! The required commands, and the ACL line that grants them and nothing else.

use super::info::ServerVersion;
use super::shelves::StoredDocuments;
use tidegate_control::buckets::{escape_glob, glob};

use tidegate_config::Config;
use tidegate_policy::KeyPart;
use tidegate_policy::guard::{GuardEffect, ListOrigin};
use tidegate_policy::store::{LayoutWord, RedisMode, RedisSettings};
use tidegate_redis_shared::key_in_same_slot;

/// The purpose of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CommandNeed {
    /// Decisions: without it every one of them fails.
    Decisions,
    /// Config sources and plans: without it they cannot be read, and `serve` may not start.
    Sources,
    /// Decisions work without it; another feature does not.
    Comfort(&'static str),
    /// `inspect`, `reset` and `doctor`.
    Operator,
}

/// A command, in the syntax of `ACL SETUSER`, and a call of it that changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct AclCommand {
    pub(super) name: &'static str,
    pub(super) whose: CommandNeed,
    /// The call. `KEY` stands for a key that does not exist. Empty if a call would change something.
    pub(super) probe: &'static [&'static str],
}

pub(super) const fn need(
    name: &'static str,
    whose: CommandNeed,
    probe: &'static [&'static str],
) -> AclCommand {
    AclCommand { name, whose, probe }
}

use CommandNeed::{Comfort, Decisions, Operator, Sources};

const INSTANCES: CommandNeed =
    Comfort("exchanging heartbeats with other instances, for `local_share: auto`");
const LISTS: CommandNeed = Comfort("reading the lists of guards");
const MEMBERSHIP: CommandNeed = Comfort("changing the lists of guards through the admin API");
const ADDRESSES: CommandNeed = Comfort("counting addresses");
const BANS: CommandNeed = Comfort("banning addresses");
const ENDS: CommandNeed = Comfort("ending bans of addresses");
const NAMED: CommandNeed = Comfort("a name in CLIENT LIST");

/// Required in every layout and topology.
const ALWAYS: [AclCommand; 11] = [
    need(
        "evalsha",
        Decisions,
        &["EVALSHA", "0000000000000000000000000000000000000000", "0"],
    ),
    need("script|load", Decisions, &["SCRIPT", "LOAD", "return 1"]),
    need("time", Decisions, &["TIME"]),
    need("get", Decisions, &["GET", "KEY"]),
    need("mget", Decisions, &["MGET", "KEY"]),
    need("set", Decisions, &["SET", "KEY", "", "XX"]),
    need("del", Decisions, &["DEL", "KEY"]),
    need(
        "ping",
        Comfort("checking that a server responds"),
        &["PING"],
    ),
    need(
        "role",
        Comfort("noticing that a master has become a replica"),
        &["ROLE"],
    ),
    need(
        "info",
        Comfort("checking the server version"),
        &["INFO", "server"],
    ),
    need(
        "client|setname",
        NAMED,
        &["CLIENT", "SETNAME", "tidegate-doctor"],
    ),
];

/// For the list of instances.
const LISTED_INSTANCES: [AclCommand; 5] = [
    need("zadd", INSTANCES, &["ZADD", "KEY", "XX", "1", "x"]),
    need("zcard", INSTANCES, &["ZCARD", "KEY"]),
    need(
        "zremrangebyscore",
        INSTANCES,
        &["ZREMRANGEBYSCORE", "KEY", "1", "0"],
    ),
    need("pexpire", INSTANCES, &["PEXPIRE", "KEY", "1"]),
    need("zrange", INSTANCES, &["ZRANGE", "KEY", "0", "0"]),
];

/// For guards whose lists are sets in the store's Redis.
const LISTED: [AclCommand; 2] = [
    need("scard", LISTS, &["SCARD", "KEY"]),
    need("sscan", LISTS, &["SSCAN", "KEY", "0"]),
];

/// For those, if the admin API is enabled.
const MEMBERS: [AclCommand; 2] = [
    // It cannot be tried without adding a member.
    need("sadd", MEMBERSHIP, &[]),
    need("srem", MEMBERSHIP, &["SREM", "KEY", "x"]),
];

/// For guards that ban the addresses in such a set: some bans may expire.
const ENDING: [AclCommand; 7] = [
    need("type", ENDS, &["TYPE", "KEY"]),
    need("exists", ENDS, &["EXISTS", "KEY"]),
    need("zscan", ENDS, &["ZSCAN", "KEY", "0"]),
    need("zrangebyscore", ENDS, &["ZRANGEBYSCORE", "KEY", "0", "0"]),
    need("zrem", ENDS, &["ZREM", "KEY", "x"]),
    need("srem", ENDS, &["SREM", "KEY", "x"]),
    need("sismember", ENDS, &["SISMEMBER", "KEY", "x"]),
];

/// For `addresses`.
const CENSUS: [AclCommand; 12] = [
    need("type", ADDRESSES, &["TYPE", "KEY"]),
    need("exists", ADDRESSES, &["EXISTS", "KEY"]),
    need("hlen", ADDRESSES, &["HLEN", "KEY"]),
    need("hexists", ADDRESSES, &["HEXISTS", "KEY", "x"]),
    // An invalid number is rejected after the permission check, as is an odd number of arguments.
    need("hincrby", ADDRESSES, &["HINCRBY", "KEY", "x", "none"]),
    need("hset", ADDRESSES, &["HSET", "KEY", "a", "1", "b"]),
    need("hmget", ADDRESSES, &["HMGET", "KEY", "x"]),
    need("hscan", ADDRESSES, &["HSCAN", "KEY", "0"]),
    // A key that does not exist cannot be renamed.
    need("rename", ADDRESSES, &["RENAME", "KEY", "KEY"]),
    need("unlink", ADDRESSES, &["UNLINK", "KEY"]),
    need("pexpire", ADDRESSES, &["PEXPIRE", "KEY", "1"]),
    need("del", ADDRESSES, &["DEL", "KEY"]),
];

/// For `addresses.ban`.
const BANNING: [AclCommand; 2] = [
    // It cannot be tried without adding a member.
    need("sadd", BANS, &[]),
    need("zadd", BANS, &["ZADD", "KEY", "XX", "1", "x"]),
];

const IN_A_CLUSTER: [AclCommand; 2] = [
    need("cluster|slots", Decisions, &["CLUSTER", "SLOTS"]),
    need("asking", Decisions, &["ASKING"]),
];

/// The additional commands of the scripts for the open layout.
const OPEN: [AclCommand; 14] = [
    need("hmget", Decisions, &["HMGET", "KEY", "x"]),
    need("hget", Decisions, &["HGET", "KEY", "x"]),
    // An odd number of arguments is rejected after the permission check.
    need("hset", Decisions, &["HSET", "KEY", "a", "1", "b"]),
    need("hdel", Decisions, &["HDEL", "KEY", "x"]),
    need("hlen", Decisions, &["HLEN", "KEY"]),
    need("hrandfield", Decisions, &["HRANDFIELD", "KEY"]),
    need("zadd", Decisions, &["ZADD", "KEY", "XX", "1", "x"]),
    need("zrange", Decisions, &["ZRANGE", "KEY", "0", "0"]),
    need("zrem", Decisions, &["ZREM", "KEY", "x"]),
    need("zcount", Decisions, &["ZCOUNT", "KEY", "0", "0"]),
    need(
        "zremrangebyrank",
        Decisions,
        &["ZREMRANGEBYRANK", "KEY", "1", "0"],
    ),
    need("exists", Decisions, &["EXISTS", "KEY"]),
    need("pttl", Decisions, &["PTTL", "KEY"]),
    need("pexpireat", Decisions, &["PEXPIREAT", "KEY", "1"]),
];

const OPERATOR: [AclCommand; 5] = [
    need("pttl", Operator, &["PTTL", "KEY"]),
    need("exists", Operator, &["EXISTS", "KEY"]),
    need("scan", Operator, &["SCAN", "0", "COUNT", "1"]),
    need("config|get", Operator, &["CONFIG", "GET", "maxmemory"]),
    need("acl|whoami", Operator, &["ACL", "WHOAMI"]),
];

/// Returns the required commands, each once.
pub(super) fn needs(
    config: &Config,
    redis: &RedisSettings,
    version: Option<&ServerVersion>,
) -> Vec<AclCommand> {
    let mut needs = ALWAYS.to_vec();
    if redis.layout == LayoutWord::Open {
        needs.extend(OPEN);
    }
    needs.extend(LISTED_INSTANCES);
    needs.extend(StoredDocuments::of(config, redis).needs);
    if sets(config).next().is_some() {
        needs.extend(LISTED);
        if redis.mode == RedisMode::Cluster {
            // In a Cluster, reading a set begins with a check whether it is being moved.
            needs.push(need("exists", LISTS, &["EXISTS", "KEY"]));
        }
        if config.admin.is_some() {
            needs.extend(MEMBERS);
        }
    }
    if bans(config).next().is_some() {
        needs.extend(ENDING);
    }
    if let Some(counted) = &config.addresses {
        needs.extend(CENSUS);
        needs.extend(BANNING.iter().filter(|_| counted.ban.is_some()));
    }
    if redis.mode == RedisMode::Cluster {
        needs.extend(IN_A_CLUSTER);
    }
    if redis.database != 0 {
        // It cannot be tried without leaving the database.
        needs.push(need("select", Decisions, &[]));
    }
    if version.is_some_and(ServerVersion::has_setinfo) {
        needs.push(need("client|setinfo", NAMED, &[]));
    }
    needs.extend(OPERATOR);
    // Commands for decisions come before those for other features.
    needs.sort_by_key(|need| match need.whose {
        Decisions => 0,
        Sources => 1,
        Comfort(_) => 2,
        Operator => 3,
    });
    let mut once: Vec<AclCommand> = Vec::new();
    for need in needs {
        if !once.iter().any(|other| other.name == need.name) {
            once.push(need);
        }
    }
    once
}

/// The ACL lines that grant the required commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AclLines {
    /// For `serve`.
    pub(super) limiter: String,
    /// For `inspect`, `reset` and `doctor` as well.
    pub(super) operator: String,
}

/// Returns the lines for this configuration.
pub(super) fn lines(
    config: &Config,
    redis: &RedisSettings,
    version: Option<&ServerVersion>,
) -> AclLines {
    let needs = needs(config, redis, version);
    let mut places = patterns(config, redis);
    places.extend(StoredDocuments::of(config, redis).channels());
    let user = redis.user.as_deref().unwrap_or("tidegate");
    let line = |user: &str, is_granted: &dyn Fn(CommandNeed) -> bool| {
        let granted = needs.iter().filter(|need| is_granted(need.whose));
        let commands: Vec<String> = granted.map(|need| format!("+{}", need.name)).collect();
        format!(
            "ACL SETUSER {user} reset on >PASSWORD {} {}",
            places.join(" "),
            commands.join(" ")
        )
    };
    AclLines {
        limiter: line(user, &|whose| whose != Operator),
        operator: line(&format!("{user}-operator"), &|_| true),
    }
}

/// Returns the sets in the store's Redis that are lists of guards.
fn sets(config: &Config) -> impl Iterator<Item = &str> {
    config
        .guards
        .iter()
        .filter_map(|guard| match &guard.origin {
            ListOrigin::Redis { set, at: None } => Some(set.as_str()),
            _ => None,
        })
}

/// Returns those of them whose members are banned addresses, some perhaps with an expiry.
fn bans(config: &Config) -> impl Iterator<Item = &str> {
    config
        .guards
        .iter()
        .filter_map(|guard| match (&guard.origin, guard.effect) {
            (ListOrigin::Redis { set, at: None }, GuardEffect::Refuse)
                if guard.subject == KeyPart::Ip =>
            {
                Some(set.as_str())
            }
            _ => None,
        })
}

/// Returns the name of a companion key, in the syntax of `ACL SETUSER`.
fn named(key: &str, suffix: &str) -> String {
    let beside = key_in_same_slot(key.as_bytes(), suffix);
    format!("~{}", escape_glob(&String::from_utf8_lossy(&beside)))
}

/// Returns the keys of counts by address and their companions, in the syntax of `ACL SETUSER`.
fn counts(config: &Config) -> Vec<String> {
    let Some(counted) = &config.addresses else {
        return Vec::new();
    };
    let mut patterns = Vec::new();
    for map in [&counted.period_map, &counted.total_map] {
        patterns.push(format!("~{}", escape_glob(map)));
        patterns.push(named(map, ":batch:") + "*");
    }
    for suffix in [":period", ":closing"] {
        patterns.push(named(&counted.period_map, suffix));
    }
    patterns
}

/// Returns the keys, in the syntax of `ACL SETUSER`.
fn patterns(config: &Config, redis: &RedisSettings) -> Vec<String> {
    let mut patterns = vec![format!("~{}*", escape_glob(&redis.prefix))];
    let limits = config.written().flat_map(|policy| {
        let limits = policy.limits.iter();
        limits.map(move |limit| (policy.name.as_str(), limit))
    });
    for (policy, limit) in limits {
        patterns.extend(glob(policy, limit, None).map(|glob| format!("~{glob}")));
    }
    patterns.extend(sets(config).map(|set| format!("~{}", escape_glob(set))));
    patterns.extend(bans(config).map(|set| named(set, ":until")));
    patterns.extend(counts(config));
    patterns.extend(StoredDocuments::of(config, redis).patterns());
    patterns.sort();
    patterns.dedup();
    patterns
}

#[cfg(test)]
mod tests;
