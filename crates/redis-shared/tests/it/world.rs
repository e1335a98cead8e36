//! Settings of real servers that all tests of this binary share.

use std::time::Duration;
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology};
pub(crate) use tidegate_testkit::redis::shared::{
    cluster as shared_cluster, flavour as shared_flavour, own_prefix, runtime,
    server as shared_server,
};
use tidegate_testkit::redis::{Cluster, Server, TestLogin};

/// The commands that a user needs to count and ban addresses, in addition to those for buckets.
pub(crate) const COUNTING: [&str; 25] = [
    "type",
    "exists",
    "scard",
    "sscan",
    "sadd",
    "srem",
    "sismember",
    "zadd",
    "zrem",
    "zscan",
    "zrangebyscore",
    "hlen",
    "hexists",
    "hincrby",
    "hset",
    "hmget",
    "hscan",
    "rename",
    "unlink",
    "pexpire",
    "get",
    "set",
    "del",
    "time",
    "evalsha",
];

pub(crate) fn address(server: &Server) -> Address {
    Address::new("127.0.0.1", server.port())
}

/// Long enough for a busy machine: these tests do not measure time.
pub(crate) fn patient(settings: ConnectionSettings) -> ConnectionSettings {
    let patience = Duration::from_secs(10);
    settings.timeout(patience).connect_timeout(patience)
}

pub(crate) fn standalone(server: &Server) -> ConnectionSettings {
    patient(ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![address(server)],
    ))
}

pub(crate) fn cluster(cluster: &Cluster) -> ConnectionSettings {
    let addresses = cluster.nodes().iter().map(address).collect();
    patient(ConnectionSettings::new(RedisTopology::Cluster, addresses))
}

pub(crate) fn with_login(settings: ConnectionSettings) -> ConnectionSettings {
    let TestLogin { user, password } = TestLogin::limiter();
    settings.user(user).password(password)
}
