//! A node that stands still while charges are to be given back to it.

use super::load::alone;
use crate::world;
use std::time::Duration;
use tidegate_core::{Ask, Quota, Store};
use tidegate_redis::{Options, RedisStore};
use tidegate_testkit::redis::Cluster;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const DEADLINE: Duration = Duration::from_millis(50);

/// A subject whose bucket lies with another node than that of `other`.
fn elsewhere(cluster: &Cluster, store: &RedisStore, other: &str) -> String {
    let port = |bucket: &str| {
        let key = String::from_utf8(store.key(bucket.as_bytes())).expect("a plain name");
        cluster.owner_of(cluster.slot_of(&key)).port()
    };
    let mut names = (0..1_000).map(|nth| format!("elsewhere {nth}"));
    let found = names.find(|name| port(name) != port(other));
    found.expect("there are three nodes")
}

/// It was: a refund had a second, and held up everybody who waited in the same lane behind it.
#[test]
fn a_node_that_stands_still_with_refunds_under_way_holds_nobody_up() {
    let _alone = alone();
    let cluster = Cluster::start(3, 0);
    let settings = world::cluster(&cluster).timeout(DEADLINE);
    let options = Options::default().deny_cache(0);
    let store = world::runtime()
        .block_on(RedisStore::connect(settings, options))
        .expect("it is there");
    let shared = "shared";
    let refusing = elsewhere(&cluster, &store, shared);
    let hour_us = 3_600_000_000;
    let quota = Quota::new(1_000_000, hour_us).refundable(true);
    let quota = quota.build().expect("it fits");
    let none = Quota::new(0, hour_us).build().expect("it fits");
    let stalled = {
        let key = String::from_utf8(store.key(shared.as_bytes())).expect("a plain name");
        cluster.owner_of(cluster.slot_of(&key))
    };
    let (slowest, timer) = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..16 {
            let (store, refusing) = (store.clone(), refusing.clone());
            tasks.spawn(async move {
                let asks = [
                    Ask::take(shared.as_bytes(), &quota, 1),
                    Ask::take(refusing.as_bytes(), &none, 1),
                ];
                let mut slowest = Duration::ZERO;
                for _ in 0..40 {
                    let asked = Instant::now();
                    store.decide(&asks).await.ok();
                    slowest = slowest.max(asked.elapsed());
                }
                slowest
            });
        }
        let mut timer = JoinSet::new();
        timer.spawn(async {
            let mut slowest = Duration::ZERO;
            for _ in 0..10 {
                let began = Instant::now();
                sleep(DEADLINE).await;
                slowest = slowest.max(began.elapsed());
            }
            slowest
        });
        tokio::task::block_in_place(|| {
            tidegate_testkit::redis::until("refunds are under way", || {
                store.stats().refunds_due.get() > 20
            });
            stalled.stop();
        });
        let slowest = tasks.join_all().await.into_iter().max();
        let timer = timer.join_all().await.into_iter().max();
        stalled.cont();
        (slowest.expect("there are tasks"), timer.expect("it sleeps"))
    });
    println!("slowest decision {slowest:?}, a bare timer of {DEADLINE:?} took up to {timer:?}");
    // A second, when it was wrong.
    assert!(slowest < timer * 4, "{slowest:?}, timer {timer:?}");
}
