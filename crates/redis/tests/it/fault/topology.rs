//! Masters that die and slots that move, under load.

use super::load::{DEADLINE, Load, RECOVERY, alone, bucket, forgetful, instances, tokens};
use crate::world;
use std::sync::OnceLock;
use std::time::Duration;
use tidegate_testkit::redis::{Cluster, SentinelGroup, audit};
use tokio::time::Instant;

const CAPACITY: u64 = 200;

/// The time without a reply after which a server counts as dead in these tests.
const DEAD_AFTER: Duration = Duration::from_millis(500);

fn load() -> Load {
    Load {
        quotas: vec![tokens(100, CAPACITY)],
        subjects: 3,
        tasks: 4,
    }
}

/// The tests of this file use this Cluster one after the other.
fn cluster() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start(3, 3))
}

fn slot_of(store: &tidegate_redis::RedisBuckets, subject: usize) -> u16 {
    let key = store.key(bucket(subject).as_bytes());
    cluster().slot_of(std::str::from_utf8(&key).expect("a plain name"))
}

/// Row 6: writes that the new master has not received are lost: at most one capacity per bucket.
#[test]
fn row_6_a_failover_of_sentinels_costs_at_most_a_capacity() {
    let _alone = alone();
    let (group, load) = (SentinelGroup::start(), load());
    let stores = instances(&world::sentinel(&group).timeout(DEADLINE), 2);
    let (recorded, away) = load.run(&stores, |progress| {
        progress.await_answers(600);
        let dead = group.kill_master();
        let killed = Instant::now();
        progress.await_failures(10);
        group.await_master_other_than(dead);
        progress.await_answers(1);
        let away = killed.elapsed();
        progress.await_answers(1_000);
        away
    });
    recorded.report("failover of sentinels", &load);
    println!("nothing was decided for {away:?}");
    let over = recorded.over(&load);
    assert!(over <= CAPACITY, "{over}");
    assert!(away < DEAD_AFTER + RECOVERY, "{away:?}");
    let master = group.master();
    assert_eq!(audit(&mut master.client(), &[]), Vec::<String>::new());
}

/// Row 6, in a Cluster.
#[test]
fn row_6_a_failover_of_a_cluster_costs_at_most_a_capacity() {
    let _alone = alone();
    let (cluster, load) = (cluster(), load());
    let stores = instances(&world::cluster(cluster).timeout(DEADLINE), 2);
    let slot = slot_of(&stores[0], 0);
    let (recorded, away) = load.run(&stores, |progress| {
        progress.await_answers(600);
        let dead = cluster.kill_master_of(slot);
        let killed = Instant::now();
        progress.await_failures(10);
        cluster.await_owner_other_than(slot, dead);
        let away = killed.elapsed();
        dead.restart();
        cluster.await_healthy();
        progress.await_answers(1_000);
        away
    });
    recorded.report("failover of a cluster", &load);
    println!("the slot was without a master for {away:?}");
    for history in &recorded.histories {
        let over = history.over(&load.quotas[0]);
        println!("over {over}, unknown {}", history.unknown().len());
        assert!(over <= CAPACITY, "{over}");
    }
    assert!(away < DEAD_AFTER + RECOVERY, "{away:?}");
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

/// Row 14: a slot that moves under load admits no more, and hardly less.
#[test]
fn row_14_a_reshard_under_load_never_exceeds_the_limit() {
    let _alone = alone();
    let (cluster, load) = (cluster(), load());
    let settings = world::cluster(cluster).timeout(DEADLINE * 10);
    let stores = forgetful(&settings, 2);
    let slot = slot_of(&stores[0], 0);
    let (recorded, moves) = load.run(&stores, |progress| {
        progress.await_answers(300);
        for _ in 0..6 {
            let migration = cluster.begin_migration(slot, cluster.stranger_to(slot));
            progress.await_answers(20);
            while migration.move_keys(1) > 0 {}
            progress.await_answers(20);
            migration.finish();
            progress.await_answers(100);
        }
        6
    });
    recorded.report("reshard", &load);
    let answers = recorded.took.len();
    println!(
        "{moves} moves, {} of {answers} without an answer",
        recorded.unknown()
    );
    assert_eq!(recorded.over(&load), 0);
    assert!(recorded.unknown() * 50 <= answers, "too many errors");
    // No charges were lost: the admitted units equal the capacity and its refill.
    let history = &recorded.histories[0];
    let (first, last) = history.span_us().expect("at least one request passed");
    let there_was = CAPACITY + 100 * (last - first) / 1_000_000;
    let admitted = history.admitted() + u64::try_from(history.unknown().len()).unwrap_or(0);
    assert!(
        admitted * 100 >= there_was * 97,
        "{admitted} of {there_was}"
    );
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}
