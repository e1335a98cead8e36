//! Other data in the store's Redis, and the commands that it requires: config sources, plans, and the
//! audit stream.

use super::acl::CommandNeed::{Comfort, Sources};
use super::acl::{AclCommand, CommandNeed, need};
use tidegate_config::Config;
use tidegate_config::source::{PolicyOrigin, RuleSets};
use tidegate_control::buckets::escape_glob;
use tidegate_policy::documents::{DocumentLocation, DocumentStoreSettings};
use tidegate_policy::store::{RedisMode, RedisSettings, StoreSettings};

const CHANGES: CommandNeed = Comfort("changing policies and plans through the admin API");
const HEARING: CommandNeed = Comfort("immediate notification of source changes");
const AUDIT: CommandNeed = Comfort("the audit log stream");
const BUCKETS: CommandNeed = Comfort("inspecting and resetting buckets through the admin API");

/// For reading a hash of documents: configuration, or plans.
const READ: [AclCommand; 4] = [
    need("hget", Sources, &["HGET", "KEY", "x"]),
    need("hlen", Sources, &["HLEN", "KEY"]),
    need("hgetall", Sources, &["HGETALL", "KEY"]),
    need("hscan", Sources, &["HSCAN", "KEY", "0"]),
];

/// For changing one: the commands of its script, and of its call.
const WRITE: [AclCommand; 6] = [
    need("eval", CHANGES, &["EVAL", "return 1", "0"]),
    need("time", CHANGES, &["TIME"]),
    // An invalid number is rejected after the permission check, as is an odd number of arguments.
    need("hincrby", CHANGES, &["HINCRBY", "KEY", "x", "none"]),
    need("hset", CHANGES, &["HSET", "KEY", "a", "1", "b"]),
    need("hdel", CHANGES, &["HDEL", "KEY", "x"]),
    // It cannot be tried without publishing a message.
    need("publish", CHANGES, &[]),
];

/// For reading rule sets: a set of ids, and a hash for each.
const RULE_SETS: [AclCommand; 3] = [
    need("scard", Sources, &["SCARD", "KEY"]),
    need("sscan", Sources, &["SSCAN", "KEY", "0"]),
    need("hgetall", Sources, &["HGETALL", "KEY"]),
];

/// For inspecting buckets, and for resetting all of a limit.
const OPERATED: [AclCommand; 3] = [
    need("pttl", BUCKETS, &["PTTL", "KEY"]),
    need("exists", BUCKETS, &["EXISTS", "KEY"]),
    need("scan", BUCKETS, &["SCAN", "0", "COUNT", "1"]),
];

/// The other data in the store's Redis.
#[derive(Debug, Default)]
pub(super) struct StoredDocuments {
    /// The keys whose names are known.
    pub(super) keys: Vec<String>,
    /// The prefixes of keys whose names are known only when they are read.
    beginnings: Vec<String>,
    channels: Vec<String>,
    pub(super) needs: Vec<AclCommand>,
}

impl StoredDocuments {
    /// Returns the data that this configuration keeps in `redis`, its store, as the store's own user.
    pub(super) fn of(config: &Config, redis: &RedisSettings) -> Self {
        let mut shelves = Self::default();
        let is_administered = config.admin.is_some();
        let is_here = |at: &StoreSettings| {
            let at = at.target.redis();
            at.is_some_and(|at| at.is_same_place(redis) && at.user == redis.user)
        };
        for source in &config.sources {
            match &source.origin {
                PolicyOrigin::Shelf(place) => shelves.add(place, is_administered, &is_here),
                PolicyOrigin::RuleSets(sets) if is_here(&sets.redis) => shelves.add_rules(sets),
                _ => {}
            }
        }
        if !shelves.channels.is_empty() {
            // For plans only the version is polled. The command cannot be tried on a shared connection.
            shelves.needs.push(need("subscribe", HEARING, &[]));
        }
        for place in config.plans.iter().filter_map(|plans| plans.shelf()) {
            shelves.add(place, is_administered, &is_here);
        }
        if !shelves.keys.is_empty() && redis.mode == RedisMode::Cluster {
            // In a Cluster, reading a key begins with a check whether it is being moved.
            let exists = need("exists", Sources, &["EXISTS", "KEY"]);
            shelves.needs.push(exists);
        }
        if let Some(admin) = &config.admin {
            shelves.needs.extend(OPERATED);
            shelves.add_audit(admin.audit.stream.as_deref());
        }
        shelves
    }

    /// Adds a document store, if it is in this Redis.
    fn add(
        &mut self,
        place: &DocumentStoreSettings,
        is_administered: bool,
        is_here: &dyn Fn(&StoreSettings) -> bool,
    ) {
        let DocumentLocation::Redis { redis, key } = &place.place else {
            return;
        };
        if !is_here(redis) {
            return;
        }
        self.keys.push(key.clone());
        self.channels.push(format!("{key}:changed"));
        self.needs.extend(READ);
        if place.writable && is_administered {
            self.needs.extend(WRITE);
        }
    }

    fn add_rules(&mut self, sets: &RuleSets) {
        self.keys.push(format!("{}:rulesets", sets.prefix));
        self.beginnings.push(format!("{}:ruleset:", sets.prefix));
        self.channels.push(sets.channel.clone());
        self.needs.extend(RULE_SETS);
    }

    fn add_audit(&mut self, stream: Option<&str>) {
        let Some(stream) = stream else {
            return;
        };
        self.keys.push(stream.to_owned());
        // An invalid id is rejected after the permission check.
        let add = need("xadd", AUDIT, &["XADD", "KEY", "none", "a", "b"]);
        self.needs.push(add);
    }

    /// Returns their keys, in the syntax of `ACL SETUSER`.
    pub(super) fn patterns(&self) -> Vec<String> {
        let keys = self.keys.iter().map(|key| format!("~{}", escape_glob(key)));
        let beginnings = self.beginnings.iter();
        keys.chain(beginnings.map(|it| format!("~{}*", escape_glob(it))))
            .collect()
    }

    /// Returns their channels, in the syntax of `ACL SETUSER`; some servers grant all of them by default.
    pub(super) fn channels(&self) -> Vec<String> {
        let channels = self.channels.iter();
        let mut channels: Vec<String> =
            channels.map(|it| format!("&{}", escape_glob(it))).collect();
        channels.sort();
        channels.dedup();
        if !channels.is_empty() {
            channels.insert(0, "resetchannels".to_owned());
        }
        channels
    }
}

#[cfg(test)]
mod tests {
    use crate::commands::doctor::acl::lines;
    use tidegate_config::Config;

    const REST: &str = "policies: [{ name: p, limits: [{ name: l, key: ip, rate: 1/s }] }]";

    fn line(text: &str) -> String {
        let text = format!("store: {{ url: 'redis://a' }}\n{text}\n{REST}");
        let config = Config::from_yaml(&text).unwrap_or_else(|errors| panic!("{errors}"));
        let redis = config.store.target.redis().unwrap();
        lines(&config, redis, None).limiter
    }

    fn has(line: &str, words: &str) {
        for word in words.split(' ') {
            assert!(line.split(' ').any(|it| it == word), "{word}: {line}");
        }
    }

    #[test]
    fn sources_and_plans_are_granted_their_keys_channels_and_commands() {
        let text = "
sources:
  - redis: { key: 'our*:policies' }
  - { name: sets, redis: { rulesets: flux } }
plans: [{ name: consumers, redis: { key: 'our:plans' } }]";
        let acl = line(text);
        has(
            &acl,
            r"~our\*:policies ~our:plans ~flux:rulesets ~flux:ruleset:*",
        );
        has(&acl, r"resetchannels &our\*:policies:changed +subscribe");
        has(&acl, "+hget +hlen +hgetall +hscan +scard +sscan");
        assert!(!acl.contains("+hset") && !acl.contains("+publish"), "{acl}");
    }

    #[test]
    fn write_permissions_are_granted_only_with_administrators() {
        let hash = tidegate_policy::text::Sha256::of(b"one");
        let admin = format!(
            "admin: {{ tokens: [{{ name: a, role: admin, hash: '{hash}' }}], audit: {{ stream: told }} }}"
        );
        let acl = line(&format!("sources: [{{ redis: {{ key: k }} }}]\n{admin}"));
        has(
            &acl,
            "~k ~told &k:changed +eval +hset +hdel +hincrby +publish +xadd +scan",
        );
        let acl = line(&format!(
            "sources: [{{ redis: {{ key: k, writable: false }} }}]\n{admin}"
        ));
        assert!(!acl.contains("+hset") && !acl.contains("+eval "), "{acl}");
    }

    #[test]
    fn keys_of_other_servers_or_users_are_not_granted() {
        for url in ["redis://b", "redis://other:pass@a"] {
            let acl = line(&format!(
                "sources: [{{ redis: {{ key: k, url: '{url}' }} }}]"
            ));
            assert!(!acl.contains("~k") && !acl.contains("+hget"), "{acl}");
        }
    }
}
