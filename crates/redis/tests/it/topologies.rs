//! Decisions when a master dies, a slot moves, or a server requires authentication.

use crate::world::{self, World};
use std::thread;
use std::time::Duration;
use tidegate_core::{Ask, Quota, Reply, Store, StoreError};
use tidegate_redis::{HashTag, RedisBuckets, RedisOptions};
use tidegate_redis_client::ConnectionSettings;
use tidegate_testkit::redis::{
    Acl, Certificates, Cluster, SentinelGroup, Server, ServerOptions as Servers, ServerProgram,
    audit, until_some,
};
use tokio::task::JoinSet;

/// Virtual time does not advance in these tests, so exactly this many pass.
const CAPACITY: u64 = 3_000;

/// The timeout of a production limiter. These tests retry instead of waiting longer.
const DEADLINE: Duration = Duration::from_millis(200);

fn quota() -> Quota {
    let hour_us = 3_600_000_000;
    Quota::new(CAPACITY, hour_us)
        .build()
        .expect("a valid quota")
}

fn decide(store: &RedisBuckets, asks: &[Ask<'_>]) -> Result<Reply, StoreError> {
    world::runtime().block_on(store.decide(asks))
}

/// Retries until there is a reply.
fn decide_in_the_end(store: &RedisBuckets, bucket: &str) -> Reply {
    let quota = quota();
    until_some("the store decides", || {
        decide(store, &[Ask::take(bucket.as_bytes(), &quota, 1)]).ok()
    })
}

/// Several tasks take from both buckets concurrently until they are refused. Returns the number
/// that passed.
fn take_all(store: &RedisBuckets, buckets: [&'static str; 2]) -> u64 {
    world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            tasks.spawn(take_until_refused(store.clone(), buckets));
        }
        tasks.join_all().await.into_iter().sum()
    })
}

async fn take_until_refused(store: RedisBuckets, buckets: [&'static str; 2]) -> u64 {
    let quota = quota();
    let asks = buckets.map(|bucket| Ask::take(bucket.as_bytes(), &quota, 1));
    for passed in 0..=CAPACITY {
        let reply = store.decide(&asks).await;
        if !reply.expect("a slot on its way is served").passed {
            return passed;
        }
    }
    // More than the capacity.
    CAPACITY + 1
}

fn slot_of(cluster: &Cluster, store: &RedisBuckets, bucket: &str) -> u16 {
    let key = store.key(bucket.as_bytes());
    cluster.slot_of(std::str::from_utf8(&key).expect("a plain name"))
}

#[test]
fn a_reshard_under_load_admits_exactly_the_limit() {
    let cluster = Cluster::start(3, 0);
    // Keys in different nodes during a migration (TRYAGAIN) are together again in a few
    // milliseconds.
    let settings = world::cluster(&cluster).retries(10);
    let world = World::new(settings, RedisOptions::default());
    let buckets = ["p/one/subject", "p/two/subject"];
    let slot = slot_of(&cluster, &world.store, buckets[0]);
    assert_eq!(slot, slot_of(&cluster, &world.store, buckets[1]));
    let passed = thread::scope(|scope| {
        let load = scope.spawn(|| take_all(&world.store, buckets));
        let mut moves = 0;
        while !load.is_finished() || moves == 0 {
            let migration = cluster.begin_migration(slot, cluster.stranger_to(slot));
            while migration.move_keys(1) > 0 {}
            migration.finish();
            moves += 1;
        }
        load.join().expect("no task panicked")
    });
    assert_eq!(passed, CAPACITY);
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

#[test]
fn a_slot_in_a_stalled_migration_is_served_key_by_key() {
    let cluster = Cluster::start(3, 0);
    let settings = world::cluster(&cluster).timeout(DEADLINE);
    let world = World::new(settings, RedisOptions::default());
    let (quota, buckets) = (quota(), ["p/one/subject", "p/two/subject"]);
    let both = buckets.map(|bucket| Ask::take(bucket.as_bytes(), &quota, 1));
    assert!(
        decide(&world.store, &both)
            .expect("the store answers")
            .passed
    );

    let slot = slot_of(&cluster, &world.store, buckets[0]);
    let migration = cluster.begin_migration(slot, cluster.stranger_to(slot));
    assert_eq!(migration.move_keys(1), 1);
    for bucket in ["p/one/subject", "p/two/subject", "p/new/subject"] {
        assert!(decide_in_the_end(&world.store, bucket).passed);
    }
    // One key on each node: the request cannot be decided, and nothing may be written.
    decide(&world.store, &both).expect_err("the keys are apart");
    migration.finish();
    let reply = until_some("the store decides", || decide(&world.store, &both).ok());
    let left: Vec<_> = reply
        .outcomes
        .iter()
        .map(|outcome| outcome.remaining)
        .collect();
    assert_eq!(left, [CAPACITY - 3, CAPACITY - 3]);
}

#[test]
fn after_a_failover_of_a_cluster_decisions_go_on() {
    let cluster = Cluster::start(3, 3);
    for tag in [HashTag::Subject, HashTag::Policy] {
        let settings = world::cluster(&cluster).timeout(DEADLINE);
        let world = World::new(settings, RedisOptions::default().tag(tag));
        let bucket = "p/one/subject";
        decide_in_the_end(&world.store, bucket);
        let slot = slot_of(&cluster, &world.store, bucket);
        let dead = cluster.kill_master_of(slot);
        decide_in_the_end(&world.store, bucket);
        let heir = cluster.await_owner_other_than(slot, dead);
        decide_in_the_end(&world.store, bucket);
        let key = world.store.key(bucket.as_bytes());
        assert_eq!(heir.command(&[&b"EXISTS"[..], &key]).int(), 1);
        dead.restart();
        cluster.await_healthy();
    }
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

#[test]
fn after_a_failover_of_sentinels_decisions_go_on() {
    let group = SentinelGroup::start();
    let settings = world::sentinel(&group).timeout(DEADLINE);
    let world = World::new(settings, RedisOptions::default());
    let bucket = "p/one/subject";
    decide_in_the_end(&world.store, bucket);
    let dead = group.kill_master();
    let heir = group.await_master_other_than(dead);
    // Back as a replica of the new master, it must not be called any more.
    dead.restart();
    decide_in_the_end(&world.store, bucket);
    let key = world.store.key(bucket.as_bytes());
    assert_eq!(heir.command(&[&b"EXISTS"[..], &key]).int(), 1);
    assert_eq!(audit(&mut heir.client(), &[]), Vec::<String>::new());
}

/// Starts each topology with these servers, and decides once on each.
fn every_topology(servers: &Servers, prepare: impl Fn(ConnectionSettings) -> ConnectionSettings) {
    let server = servers.clone().start();
    let group = servers.clone().start_sentinels("limits");
    let cluster = servers.clone().start_cluster(3, 0);
    for settings in [
        world::standalone(&server),
        world::sentinel(&group),
        world::cluster(&cluster),
    ] {
        let world = World::new(prepare(settings), RedisOptions::default());
        assert!(decide_in_the_end(&world.store, "p/one/subject").passed);
    }
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
    assert_eq!(
        audit(&mut group.master().client(), &[]),
        Vec::<String>::new()
    );
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

#[test]
fn every_topology_with_tls_and_users() {
    let certificates = Certificates::make();
    let servers = Server::builder()
        .tls(&certificates)
        .ask_clients()
        .acl(Acl::limiter(world::RULES));
    every_topology(&servers, |settings| {
        world::with_login(world::with_tls(settings, &certificates))
    });
}

#[test]
fn every_topology_of_redis_8() {
    if ServerProgram::Redis8.available() {
        every_topology(
            &Server::builder().flavour(ServerProgram::Redis8),
            |settings| settings,
        );
    }
}

#[test]
fn every_topology_of_valkey_9() {
    if ServerProgram::Valkey9.available() {
        every_topology(
            &Server::builder().flavour(ServerProgram::Valkey9),
            |settings| settings,
        );
    }
}
