//! Bugs and guarantees of the systems that Tidegate replaces: one test each, on a real server. In
//! virtual time where instants matter.

#![expect(
    clippy::indexing_slicing,
    reason = "helpers of tests fail by panicking, as tests do"
)]

/// Documented guarantees that users rely on.
mod promises;
/// Logs and windows.
mod windows;

use crate::fault::load::{connect, instances, tokens};
use crate::world::{self, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tidegate_core::{Algorithm, Ask, Clock, Quota, QuotaSpec, Reply, Store, Timestamp, Wait};
use tidegate_redis::RedisOptions;
use tidegate_testkit::history::{History, model_of};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::model::ModelBucket;
use tidegate_testkit::redis::{Server, audit};

const SECOND_US: u64 = 1_000_000;
const MINUTE_US: u64 = 60 * SECOND_US;
const HOUR_US: u64 = 60 * MINUTE_US;
const DAY_US: u64 = 24 * HOUR_US;

fn built(spec: QuotaSpec<'_>) -> Quota {
    spec.build().expect("a valid quota")
}

fn virtual_time() -> World {
    World::new(
        world::standalone(world::shared_server()),
        RedisOptions::default(),
    )
}

fn take(world: &World, bucket: &str, quota: &Quota, cost: u64) -> Reply {
    world.decide(&[Ask::take(bucket.as_bytes(), quota, cost)])
}

/// Returns the number of requests that pass before the first refusal.
fn drain(world: &World, bucket: &str, quota: &Quota) -> u64 {
    let mut passed = 0;
    while take(world, bucket, quota, 1).passed {
        passed += 1;
    }
    passed
}

/// A clock that a test can set.
#[derive(Clone, Debug)]
struct Loose(Arc<AtomicU64>);

impl Loose {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(1_700_000_000 * SECOND_US)))
    }
}

impl Clock for Loose {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(SeqCst))
    }
}

/// System 001 used the time of its clients: two of them a second apart, in rapid alternation, got
/// 1,020 out of a bucket of 50.
#[test]
fn system_001_two_clients_a_second_apart_share_one_clock() {
    let stores = instances(&world::standalone(world::shared_server()), 2);
    let quota = tokens(10, 50);
    let mut history = History::default();
    world::runtime().block_on(async {
        for _ in 0..1_000 {
            for store in &stores {
                let reply = store
                    .decide(&[Ask::take(b"p/route/client", &quota, 1)])
                    .await;
                history.record(1, &reply);
            }
        }
    });
    assert_eq!(history.over(&quota), 0);
    let (first, last) = history.span_us().expect("at least one request passed");
    assert!(history.admitted() <= 50 + 10 * (last - first) / SECOND_US);
    assert!(history.admitted() >= 50);
}

/// System 001 forgot buckets after 120 s: one of 50 that refills one per minute was full again.
#[test]
fn system_001_a_slow_bucket_is_not_restored_by_idling() {
    let world = virtual_time();
    let quota = built(Quota::new(1, MINUTE_US).burst(50));
    assert_eq!(drain(&world, "p/route/idle", &quota), 50);
    world.advance_micros(121 * SECOND_US);
    assert_eq!(drain(&world, "p/route/idle", &quota), 2);

    // By the server's clock, the key exists until the bucket is full, for 50 minutes.
    let server = world::shared_server();
    let store = instances(&world::standalone(server), 1).remove(0);
    let reply = world::runtime().block_on(store.decide(&[Ask::take(b"p/route/idle", &quota, 50)]));
    assert!(reply.is_ok_and(|reply| reply.passed));
    let key = store.key(b"p/route/idle");
    let left_ms = server.command(&[&b"PTTL"[..], &key]).int();
    assert!((2_990_000..=3_000_000).contains(&left_ms), "{left_ms}");
}

/// System 001 wrote on every refusal: an attacker could cause load and prolong the key.
#[test]
fn system_001_a_refusal_writes_nothing() {
    let server = Server::start();
    let options = RedisOptions::default()
        .prefix(world::own_prefix())
        .deny_cache(0);
    let store = connect(world::standalone(&server), options);
    // The plain program, and the other one.
    let quotas = [
        built(Quota::new(3, HOUR_US)),
        built(Quota::new(3, HOUR_US).algorithm(Algorithm::SlidingLog)),
    ];
    for (nth, quota) in quotas.iter().enumerate() {
        let name = format!("p/route/{nth}");
        let asks = [Ask::take(name.as_bytes(), quota, 1)];
        let decide = || world::runtime().block_on(store.decide(&asks));
        while decide().expect("the store answers").passed {}
        let key = store.key(name.as_bytes());
        let state = || {
            let value = server.command(&[&b"GET"[..], &key]).bytes().to_vec();
            let expiry = server.command(&[&b"PEXPIRETIME"[..], &key]).int();
            (value, expiry, server.command(&["DBSIZE"]).int())
        };
        let before = state();
        server.command(&["CONFIG", "RESETSTAT"]).done();
        for _ in 0..100 {
            assert!(!decide().expect("the store answers").passed);
        }
        let counted = server.command(&["INFO", "commandstats"]).text();
        for word in ["set", "del", "expire", "pexpire", "pexpireat"] {
            assert!(
                !counted.contains(&format!("cmdstat_{word}:")),
                "{word}: {counted}"
            );
        }
        assert!(counted.contains("cmdstat_evalsha:calls=100,"), "{counted}");
        assert_eq!(state(), before);
    }
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// System 001 kept 14 digits of a fraction. With three in seven seconds, each unit is off by a
/// third of a microsecond, and the errors add up.
#[test]
fn system_001_fractions_do_not_drift() {
    let world = virtual_time();
    // At most one unit is in the bucket, so none is lost to a full bucket.
    let quota = built(Quota::new(3, 7 * SECOND_US).burst(2));
    assert!(take(&world, "p/route/drift", &quota, 2).passed);
    let mut now_us = 0;
    for nth in 1..=900_u64 {
        // The earliest microsecond at which the nth unit has refilled.
        let due_us = (nth * 7 * SECOND_US).div_ceil(3);
        world.advance_micros(due_us - 1 - now_us);
        let early = take(&world, "p/route/drift", &quota, 1);
        assert!(!early.passed, "{nth} is early");
        assert_eq!(early.outcomes[0].wait.as_micros(), Some(1));
        world.advance_micros(1);
        now_us = due_us;
        let due = take(&world, "p/route/drift", &quota, 1);
        assert!(due.passed, "{nth} is late");
    }
}

/// System 004 rounded the refill down but advanced its clock: of 3,000 requests at a rate of 100 a
/// minute, it admitted 1,550.
#[test]
fn system_004_requests_that_keep_to_the_rate_all_pass() {
    let world = virtual_time();
    let quota = built(Quota::new(100, MINUTE_US));
    let mut passed = 0;
    for _ in 0..3_000 {
        passed += u64::from(take(&world, "p/rule/spaced", &quota, 1).passed);
        world.advance_micros(590_000);
    }
    assert_eq!(passed, 3_000);
}

/// System 004 counted nanoseconds in doubles: products beyond 2^53 refilled too much.
#[test]
fn system_004_large_numbers_are_exact() {
    let world = virtual_time();
    for (nth, spec) in [
        Quota::new(1_000_000, DAY_US),
        Quota::new(49_999, DAY_US),
        Quota::new(1_000, 30 * DAY_US),
        Quota::new(1_000_000, SECOND_US).burst(1_000_000_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        let quota = built(spec);
        assert_eq!(quota.tick_us(), 1, "counted in microseconds");
        let mut model = ModelBucket::new(model_of(&quota));
        let name = format!("p/rule/large{nth}");
        let capacity = quota.capacity();
        for (cost, later_us) in [
            (capacity, 1),
            (1, 999_999),
            (capacity, DAY_US / 7),
            (capacity / 3, 13 * HOUR_US + 1),
            (1, 29 * DAY_US - 1),
            (capacity, 1),
        ] {
            let reply = take(&world, &name, &quota, cost);
            let expected = model.take(reply.at.as_micros(), cost);
            let outcome = reply.outcomes[0];
            assert_eq!(outcome.remaining, expected.remaining, "{quota:?}");
            assert_eq!(outcome.wait.as_micros(), expected.wait_us, "{quota:?}");
            assert_eq!(outcome.reset_us, expected.reset_us, "{quota:?}");
            world.advance_micros(later_us);
        }
    }
}

/// System 004 kept no state for longer than a day: a quota of thirty days was full every morning.
#[test]
fn system_004_a_quota_of_thirty_days_lasts_thirty_days() {
    let world = virtual_time();
    let month = |algorithm| built(Quota::new(90, 30 * DAY_US).algorithm(algorithm));
    let (bucket, log) = (month(Algorithm::TokenBucket), month(Algorithm::SlidingLog));
    assert_eq!(drain(&world, "p/rule/month", &bucket), 90);
    assert_eq!(drain(&world, "p/rule/log", &log), 90);
    for _ in 0..29 {
        world.advance_micros(DAY_US);
        assert_eq!(drain(&world, "p/rule/month", &bucket), 3);
        assert_eq!(drain(&world, "p/rule/log", &log), 0);
    }
    world.advance_micros(DAY_US);
    assert_eq!(drain(&world, "p/rule/log", &log), 90);

    let server = world::shared_server();
    let store = instances(&world::standalone(server), 1).remove(0);
    let reply = world::runtime().block_on(store.decide(&[Ask::take(b"p/rule/month", &log, 1)]));
    assert!(reply.is_ok_and(|reply| reply.passed));
    let key = store.key(b"p/rule/month");
    let left_ms = server.command(&[&b"PTTL"[..], &key]).int();
    assert!(left_ms > 29 * 86_400_000, "{left_ms}");
}

/// System 004's clock could go back, and the same time refilled again.
#[test]
fn system_004_a_jumping_clock_refills_nothing_twice() {
    let clock = Loose::new();
    let options = RedisOptions::default()
        .prefix(world::own_prefix())
        .deny_cache(0);
    let settings = world::standalone(world::shared_server());
    let store = connect(settings, options.clock(clock.clone()));
    let start_us = 1_700_000_000 * SECOND_US;
    for (name, quota) in [
        ("p/rule/back", tokens(100, 100)),
        (
            "p/rule/back-refundable",
            tokens(100, 100).with_refundable(true),
        ),
    ] {
        for round in 0..60 {
            // A fifth of a second back and forth: it refills only the first time.
            clock.0.store(start_us + round % 2 * SECOND_US / 5, SeqCst);
            let asks = [Ask::take(name.as_bytes(), &quota, 1)];
            let reply = world::runtime().block_on(store.decide(&asks));
            let left = reply.expect("the store answers").outcomes[0].remaining;
            if round % 2 == 1 {
                assert_eq!(left, 100 - round, "{name}");
            }
        }
    }
}

/// System 004 answered a cost above the capacity with a wait, so the client retried forever.
#[test]
fn system_004_a_cost_beyond_the_capacity_is_never() {
    let world = virtual_time();
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
        Algorithm::BucketedWindow,
    ] {
        let quota = built(Quota::new(5, MINUTE_US).algorithm(algorithm));
        let reply = take(&world, "p/rule/never", &quota, 6);
        assert!(!reply.passed);
        assert_eq!(reply.outcomes[0].wait, Wait::NEVER, "{algorithm:?}");
        assert!(
            take(&world, "p/rule/never", &quota, 5).passed,
            "{algorithm:?}"
        );
    }
}

/// Upstash's token bucket refuses only if exactly none is left: with one left, a cost of ten
/// passes.
#[test]
fn upstash_a_cost_above_the_remaining_units_is_refused() {
    let world = virtual_time();
    let quota = built(Quota::new(10, HOUR_US));
    assert!(take(&world, "p/limit/cost", &quota, 9).passed);
    let reply = take(&world, "p/limit/cost", &quota, 10);
    assert!(!reply.passed);
    assert_eq!(reply.outcomes[0].remaining, 1);
}
