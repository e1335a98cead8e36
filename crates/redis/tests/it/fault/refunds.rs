//! A paused node while refunds are sent to it.

use super::load::alone;
use crate::world;
use std::sync::Arc;
use std::task::{Context, Wake};
use std::time::Duration;
use tidegate_core::{Ask, Bucket, BucketState, Op, Quota, Store, Timestamp};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_testkit::history::model_of;
use tidegate_testkit::model::ModelBucket;
use tidegate_testkit::redis::{Cluster, Server, until};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

const DEADLINE: Duration = Duration::from_millis(50);

/// Returns a subject whose bucket is on another node than `other`.
fn elsewhere(cluster: &Cluster, store: &RedisBuckets, other: &str) -> String {
    let port = |bucket: &str| {
        let key = String::from_utf8(store.key(bucket.as_bytes())).expect("a plain name");
        cluster.owner_of(cluster.slot_of(&key)).port()
    };
    let mut names = (0..1_000).map(|nth| format!("elsewhere {nth}"));
    let found = names.find(|name| port(name) != port(other));
    found.expect("there are three nodes")
}

fn owner<'a>(cluster: &'a Cluster, store: &RedisBuckets, bucket: &str) -> &'a Server {
    let key = String::from_utf8(store.key(bucket.as_bytes())).expect("a plain name");
    cluster.owner_of(cluster.slot_of(&key))
}

/// Returns the instant of the only charge in a bucket, of `cost` units.
fn charged_at(bucket: &Bucket, quota: &Quota, cost: u64) -> Timestamp {
    let (drain, price) = quota.drain_and_price();
    let paid_off = bucket.fresh_at(quota).as_micros();
    Timestamp::from_micros(paid_off - cost * price / drain)
}

/// Regression: a request over two slots dated all its receipts by the slower node. A charge at the
/// other node seemed that much younger, so units that the clock had already paid off were refunded
/// at the expense of others.
#[test]
fn receipts_were_dated_by_the_slowest_node() {
    let _alone = alone();
    let cluster = Cluster::start(3, 0);
    let options = RedisOptions::default().deny_cache(0);
    let store = world::runtime()
        .block_on(RedisBuckets::connect(world::cluster(&cluster), options))
        .expect("the server is up");
    let (quick, (amount, second_us, burst)) = ("quick", (100, 1_000_000, 1_000));
    let slow = elsewhere(&cluster, &store, quick);
    let quota = Quota::new(amount, second_us).burst(burst).refundable(true);
    let quota = quota.build().expect("a valid quota");
    let mut model = ModelBucket::new(model_of(&quota));
    let stalled = owner(&cluster, &store, &slow);
    let inspect = || {
        let kept = world::runtime().block_on(store.inspect(quick.as_bytes(), &quota));
        kept.expect("it answers").map(|it| it.bucket)
    };
    let decide = |ask: Ask<'_>| {
        let reply = world::runtime().block_on(store.decide(&[ask]));
        reply.expect("it answers")
    };
    stalled.stop();
    let asked = {
        let (store, slow) = (store.clone(), slow.clone());
        world::runtime().spawn(async move {
            let asks = [quick, &slow].map(|bucket| Ask::take(bucket.as_bytes(), &quota, 20));
            store.decide(&asks).await
        })
    };
    until("one node has charged it", || inspect().is_some());
    let charged_at = charged_at(&inspect().expect("for a fifth of a second"), &quota, 20);
    until("the clock has paid it off", || inspect().is_none());
    let other = decide(Ask::take(quick.as_bytes(), &quota, 500));
    stalled.cont();
    let reply = world::runtime().block_on(asked).expect("it ends");
    let reply = reply.expect("it answers, late");
    assert!(reply.passed && reply.at > other.at, "{reply:?}, {other:?}");
    let receipt = reply.receipt(0, Op::Take(20)).expect("it was charged");
    assert_eq!(receipt.at, charged_at, "by the step that made it");
    let back = decide(Ask {
        op: Op::GiveBack(receipt),
        ..Ask::look(quick.as_bytes(), &quota)
    });
    model.take(charged_at.as_micros(), 20);
    model.take(other.at.as_micros(), 500);
    let now_us = back.at.as_micros();
    model.give_back(now_us, charged_at.as_micros(), 20);
    let exact = model.would(now_us, 0).remaining;
    assert_eq!(back.outcomes[0].remaining, exact);
    // The charge at the slow node found no debt either, and is refunded in full.
    let back = decide(Ask {
        op: Op::GiveBack(reply.receipt(1, Op::Take(20)).expect("it was charged")),
        ..Ask::look(slow.as_bytes(), &quota)
    });
    assert_eq!(back.outcomes[0].remaining, burst);
}

/// Regression: once a partial reply had been sent, the refund was left to the caller, even if it
/// had disconnected.
#[test]
fn a_caller_leaving_at_a_partial_reply_left_a_charge() {
    struct WakeNotifier(Notify);
    impl Wake for WakeNotifier {
        fn wake(self: Arc<Self>) {
            self.0.notify_one();
        }
    }
    let _alone = alone();
    let cluster = Cluster::start(3, 0);
    let settings = world::cluster(&cluster).timeout(DEADLINE);
    let options = RedisOptions::default().deny_cache(0);
    let store = world::runtime()
        .block_on(RedisBuckets::connect(settings, options))
        .expect("the server is up");
    let quota = Quota::new(100, 3_600_000_000).refundable(true);
    let quota = quota.build().expect("a valid quota");
    let slow = elsewhere(&cluster, &store, "quick");
    let stalled = owner(&cluster, &store, &slow);
    stalled.stop();
    world::runtime().block_on(async {
        let asks = ["quick", &slow].map(|bucket| Ask::take(bucket.as_bytes(), &quota, 20));
        let woken = Arc::new(WakeNotifier(Notify::new()));
        let waker = Arc::clone(&woken).into();
        let mut decision = Box::pin(store.decide(&asks));
        let polled = decision.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending(), "a node stands still");
        let woken = tokio::time::timeout(Duration::from_secs(60), woken.0.notified());
        woken.await.expect("a part of the answer comes");
    });
    until("it was given back", || store.stats().refunds.get() > 0);
    stalled.cont();
    let look = Ask::look(b"quick", &quota);
    let reply = world::runtime().block_on(store.decide(&[look]));
    assert_eq!(reply.expect("it answers").outcomes[0].remaining, 100);
}

/// Regression: a refund had a timeout of a second, and delayed all requests behind it in the same
/// lane.
#[test]
fn a_paused_node_with_refunds_in_flight_delayed_other_requests() {
    let _alone = alone();
    let cluster = Cluster::start(3, 0);
    let settings = world::cluster(&cluster).timeout(DEADLINE);
    let options = RedisOptions::default().deny_cache(0);
    let store = world::runtime()
        .block_on(RedisBuckets::connect(settings, options))
        .expect("the server is up");
    let shared = "shared";
    let refusing = elsewhere(&cluster, &store, shared);
    let hour_us = 3_600_000_000;
    let quota = Quota::new(1_000_000, hour_us).refundable(true);
    let quota = quota.build().expect("a valid quota");
    let none = Quota::new(0, hour_us).build().expect("a valid quota");
    let stalled = owner(&cluster, &store, shared);
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
            until("refunds are under way", || {
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
    // It was a second with the bug.
    assert!(slowest < timer * 4, "{slowest:?}, timer {timer:?}");
}
