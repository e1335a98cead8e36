//! The figures that are taken from a node's `INFO`.

use super::info::Info;

/// The figures that a node reported about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFigures {
    /// The product and its version.
    pub version: String,
    /// `master` or `slave`.
    pub role: String,
    pub memory_used: Option<u64>,
    /// The memory that it may use: its own bound, or the machine's if it has none.
    pub memory_max: Option<u64>,
    pub keys: u64,
    pub(crate) keys_expiring: u64,
    pub clients: Option<u64>,
    pub(crate) clients_blocked: Option<u64>,
    pub(crate) clients_max: Option<u64>,
    pub replicas: Option<u64>,
    pub operations_per_second: Option<u64>,
    pub(crate) uptime: Option<u64>,
    pub(crate) commands: Option<u64>,
    pub(crate) hits: Option<u64>,
    pub(crate) misses: Option<u64>,
    pub(crate) evicted: Option<u64>,
    pub(crate) expired: Option<u64>,
    pub(crate) rejected: Option<u64>,
}

impl ServerFigures {
    /// Reads the figures from `info`, with the keys in `database`.
    pub(crate) fn of(info: &Info, database: u32) -> Self {
        let version = info.version().map(|version| version.to_string());
        let keyspace = info.get(&format!("db{database}")).unwrap_or_default();
        let within = |name: &str| {
            let mut parts = keyspace.split(',');
            let found = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            found.and_then(|count| count.parse().ok()).unwrap_or(0)
        };
        let bound = info.number("maxmemory").filter(|max| *max > 0);
        Self {
            version: version.unwrap_or_default(),
            role: info.get("role").unwrap_or_default().to_owned(),
            memory_used: info.number("used_memory"),
            memory_max: bound.or_else(|| info.number("total_system_memory")),
            keys: within("keys"),
            keys_expiring: within("expires"),
            clients: info.number("connected_clients"),
            clients_blocked: info.number("blocked_clients"),
            clients_max: info.number("maxclients"),
            replicas: info.number("connected_slaves"),
            operations_per_second: info.number("instantaneous_ops_per_sec"),
            uptime: info.number("uptime_in_seconds"),
            commands: info.number("total_commands_processed"),
            hits: info.number("keyspace_hits"),
            misses: info.number("keyspace_misses"),
            evicted: info.number("evicted_keys"),
            expired: info.number("expired_keys"),
            rejected: info.number("rejected_connections"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_of_the_configured_database() {
        let info = Info::new(
            "redis_version:7.0.15\r\nrole:master\r\nused_memory:80\r\nmaxmemory:100\r\n\
             total_system_memory:1000\r\nconnected_clients:3\r\nkeyspace_hits:7\r\n\
             # Keyspace\r\ndb0:keys=5,expires=4,avg_ttl=9\r\ndb1:keys=1,expires=0,avg_ttl=0\r\n",
        );
        let figures = ServerFigures::of(&info, 0);
        assert_eq!(figures.version, "Redis 7.0.15");
        assert_eq!((figures.keys, figures.keys_expiring), (5, 4));
        assert_eq!(
            (figures.memory_used, figures.memory_max),
            (Some(80), Some(100))
        );
        assert_eq!((figures.hits, figures.misses), (Some(7), None));
        assert_eq!(ServerFigures::of(&info, 1).keys, 1);
        assert_eq!(
            ServerFigures::of(&info, 2).keys,
            0,
            "an empty one is not listed"
        );
    }

    #[test]
    fn without_a_memory_limit_that_of_the_machine_applies() {
        let info = Info::new("maxmemory:0\r\ntotal_system_memory:1000\r\n");
        assert_eq!(ServerFigures::of(&info, 0).memory_max, Some(1000));
    }
}
