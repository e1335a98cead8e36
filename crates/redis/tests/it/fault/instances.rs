//! Faults of callers and clocks.

use super::load::{Load, alone, connect, forgetful, tokens};
use crate::world::{self, World};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::Duration;
use tidegate_core::{Ask, Clock, Quota, Reply, Store, Timestamp};
use tidegate_redis::{HashTag, RedisBuckets, RedisOptions};
use tidegate_redis_client::Script;
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{Server, audit, until};
use tokio::task::JoinSet;

fn monthly(amount: u64) -> Quota {
    let month_us = 30 * 86_400_000_000;
    let spec = Quota::new(amount, month_us).refundable(true);
    spec.build().expect("a valid quota")
}

fn remaining(store: &RedisBuckets, bucket: &str, quota: &Quota) -> u64 {
    let asks = [Ask::look(bucket.as_bytes(), quota)];
    let reply = world::runtime().block_on(store.decide(&asks));
    reply.expect("a healthy store answers").outcomes[0].remaining
}

/// Row 9: a cancelled request may be charged, and no other request is.
#[test]
fn row_9_vanished_callers_cost_at_most_their_requests() {
    let store = forgetful(&world::standalone(world::shared_server()), 1).remove(0);
    let quota = monthly(1_000);
    let (mut vanished, mut answered) = (0, 0);
    world::runtime().block_on(async {
        for round in 0..300_u64 {
            let asks = [Ask::take(b"p/limit/a", &quota, 1)];
            // Cancelled at another point each time.
            let patience = Duration::from_micros(round * 3);
            match tokio::time::timeout(patience, store.decide(&asks)).await {
                Ok(reply) => answered += u64::from(reply.is_ok_and(|reply| reply.passed)),
                Err(_) => vanished += 1,
            }
        }
    });
    // Requests in flight arrive before this.
    let charged = 1_000 - remaining(&store, "p/limit/a", &quota);
    println!("{answered} answered, {vanished} vanished, {charged} charged");
    assert!((answered..=answered + vanished).contains(&charged));
}

/// A request over two slots: the first always has room, the second never.
fn refused_by_the_second(
    world: &World,
    quotas: (&Quota, &Quota),
    patience: Duration,
) -> Option<Reply> {
    let asks = [
        Ask::take(b"p/one/first", quotas.0, 1),
        Ask {
            limit: 1,
            ..Ask::take(b"p/two/second", quotas.1, 1)
        },
    ];
    let decide = async { tokio::time::timeout(patience, world.store.decide(&asks)).await };
    let reply = world::runtime().block_on(decide).ok()?;
    Some(reply.expect("a healthy store answers"))
}

/// Row 10: a caller that disappears between reserve and refund leaves nothing charged: the request
/// is completed without it.
#[test]
fn row_10_charges_of_a_vanished_caller_are_refunded() {
    let cluster = world::shared_cluster();
    let world = World::new(
        world::cluster(cluster),
        RedisOptions::default().tag(HashTag::Subject),
    );
    let (plenty, one) = (monthly(1_000), monthly(1));
    let first = refused_by_the_second(&world, (&plenty, &one), Duration::from_secs(10));
    assert!(first.is_some_and(|reply| reply.passed));
    let mut vanished = 0;
    for round in 0..200 {
        let patience = Duration::from_micros(round * 3);
        match refused_by_the_second(&world, (&plenty, &one), patience) {
            Some(reply) => assert!(!reply.passed),
            None => vanished += 1,
        }
    }
    let last = refused_by_the_second(&world, (&plenty, &one), Duration::from_secs(10));
    assert!(last.is_some_and(|reply| !reply.passed));
    let stats = world.store.stats();
    until("everything is given back", || {
        // The last of them is among those that are due.
        stats.refunds_due.get() > 0 && stats.refunds.get() == stats.refunds_due.get()
    });
    until("nothing is held any more", || {
        remaining(&world.store, "p/one/first", &plenty) == 999
    });
    println!("{vanished} vanished, {} given back", stats.refunds.get());
    assert_eq!(stats.refunds_lost.get(), 0);
}

/// Row 24: a flood that its own limit refuses does not drain the limit that it shares with others.
#[test]
fn row_24_a_flood_refused_by_one_limit_does_not_drain_another() {
    let _alone = alone();
    let cluster = world::shared_cluster();
    let options = RedisOptions::default().prefix(world::own_prefix());
    let store = connect(world::cluster(cluster), options);
    let (everyone, attacker) = (monthly(2_000), monthly(1));
    let polite = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for nth in 0..8 {
            tasks.spawn(flood(store.clone(), Box::new((everyone, attacker)), nth));
        }
        let mut passed = 0;
        for _ in 0..1_500 {
            let asks = [Ask::take(b"p/everyone/all", &everyone, 1)];
            let reply = store.decide(&asks).await.expect("the store answers");
            passed += u64::from(reply.passed);
        }
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
        passed
    });
    assert_eq!(polite, 1_500, "no request was refused for another's bucket");
    let stats = store.stats();
    until("everything is given back", || {
        stats.refunds.get() == stats.refunds_due.get()
    });
    let left = remaining(&store, "p/everyone/all", &everyone);
    println!(
        "{polite} passed, {left} left of 2,000; {} given back, {} refused here",
        stats.refunds.get(),
        stats.refused_here.get(),
    );
    // Eight attackers passed once each, before their limits were used up.
    assert!(left + polite + 8 >= 2_000 - 20, "{left} left");
    assert!(left + polite + 8 <= 2_000);
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

async fn flood(store: RedisBuckets, quotas: Box<(Quota, Quota)>, nth: usize) {
    let own = format!("p/attacker/a{nth}");
    loop {
        let asks = [
            Ask::take(b"p/everyone/all", &quotas.0, 1),
            Ask {
                limit: 1,
                ..Ask::take(own.as_bytes(), &quotas.1, 1)
            },
        ];
        drop(store.decide(&asks).await);
        tokio::time::sleep(Duration::from_micros(500)).await;
    }
}

/// Row 19: many more subjects than the caches hold. An evicted entry costs one more call.
#[test]
fn row_19_more_subjects_than_are_remembered_are_decided_alike() {
    let server = Server::start();
    let options = RedisOptions::default()
        .prefix(world::own_prefix())
        .deny_cache(64);
    let store = connect(world::standalone(&server), options);
    let quota = monthly(1);
    let passed: usize = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for nth in 0..4 {
            let store = store.clone();
            tasks.spawn(async move {
                let mut passed = 0;
                for number in 0..1_000 {
                    // The four tasks start at different places.
                    let name = format!("p/limit/{}", (number + nth * 250) % 1_000);
                    let asks = [Ask::take(name.as_bytes(), &quota, 1)];
                    let reply = store.decide(&asks).await.expect("the store answers");
                    passed += usize::from(reply.passed);
                }
                passed
            });
        }
        tasks.join_all().await.into_iter().sum()
    });
    assert_eq!(passed, 1_000, "one decision per subject");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// A clock that a test may set back.
#[derive(Clone, Debug, Default)]
struct Loose(Arc<AtomicU64>);

impl Clock for Loose {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.0.load(SeqCst))
    }
}

/// Row 13: when the server's clock goes back, nothing more passes. When it goes forward, at most
/// the refill of that time does.
#[test]
fn row_13_steps_of_the_servers_clock_cost_at_most_what_they_refill() {
    const SECOND_US: u64 = 1_000_000;
    let clock = Loose::default();
    let options = RedisOptions::default()
        .prefix(world::own_prefix())
        .deny_cache(0);
    let server = world::shared_server();
    let store = connect(world::standalone(server), options.clock(clock.clone()));
    let start = 1_700_000_000 * SECOND_US;
    for (nth, quota) in [tokens(10, 50), tokens(10, 50).with_refundable(true)]
        .iter()
        .enumerate()
    {
        clock.0.store(start, SeqCst);
        let name = format!("p/limit/{nth}");
        let drain = || {
            let asks = [Ask::take(name.as_bytes(), quota, 1)];
            let decide = || world::runtime().block_on(store.decide(&asks));
            let mut passed = 0;
            while decide().expect("the store answers").passed {
                passed += 1;
            }
            passed
        };
        assert_eq!(drain(), 50);
        for back_us in [1, SECOND_US, 3_600 * SECOND_US] {
            clock.0.store(start - back_us, SeqCst);
            assert_eq!(drain(), 0, "{back_us} µs back");
        }
        // A step far back is clamped: the bucket is empty, and refills from there.
        clock.0.store(start - 3_598 * SECOND_US, SeqCst);
        assert_eq!(drain(), 20);
        clock.0.store(start, SeqCst);
        assert_eq!(drain(), 50, "no more than a capacity, however far forward");
        clock.0.store(start + SECOND_US, SeqCst);
        assert_eq!(drain(), 10);
    }
}

/// The script of a version without debits, shadow blocks and buckets whose quotas change. It reads,
/// writes and decides with separate code. The server's clock is filled in.
const BEFORE: &str = include_str!("before/general.lua");

/// Returns the number of calls of a script that the server did not have.
fn missing_scripts(server: &Server) -> u64 {
    let stats = server.command(&["INFO", "errorstats"]).text();
    let mut lines = stats.lines();
    let count = lines.find_map(|line| line.strip_prefix("errorstat_NOSCRIPT:count="));
    count.map_or(0, |count| count.trim().parse().expect("a number"))
}

/// Row 20: instances of two versions share buckets during a rolling update, and a server repeatedly
/// forgets the scripts of both. Each loads its own script again and reads the other's values, and
/// together they admit what the policy allows.
#[test]
fn row_20_two_versions_during_a_rolling_deploy_share_buckets() {
    let _alone = alone();
    let server = Server::start();
    let settings = world::standalone(&server);
    let flushes = 20;
    for (nth, quotas) in (1_u64..).zip([
        vec![tokens(20, 40)],
        vec![tokens(20, 40).with_refundable(true)],
        vec![monthly(400)],
        vec![tokens(20, 40), monthly(400)],
    ]) {
        let load = Load {
            quotas,
            subjects: 3,
            tasks: 2,
        };
        let now = RedisOptions::default()
            .prefix(world::own_prefix())
            .deny_cache(0);
        let before = now.clone().script(BEFORE);
        let options = [before.clone(), now.clone(), before, now];
        let stores = options.map(|options| connect(settings.clone(), options));
        let (recorded, calls) = load.run(&stores, |progress| {
            for _ in 0..flushes {
                progress.await_answers(60);
                server.command(&["SCRIPT", "FLUSH"]).done();
            }
            progress.await_answers(200);
            stores.each_ref().map(|store| store.stats().calls.get())
        });
        recorded.report("two versions", &load);
        assert!(calls.iter().all(|count| *count > 0), "{calls:?}");
        assert_eq!((recorded.over(&load), recorded.unknown()), (0, 0));
        // Neither grants units that the other has granted.
        for history in &recorded.histories {
            let (first, last) = history.span_us().expect("at least one request passed");
            let most = load.quotas.iter().map(|quota| {
                let refilled = (last - first) * quota.amount() / quota.period_us();
                quota.capacity() + refilled + 1
            });
            let lowest = load.quotas.iter().map(Quota::capacity).min();
            assert!(Some(history.admitted()) <= most.min());
            assert!(Some(history.admitted()) >= lowest);
        }
        // The first caller after a flush gets NOSCRIPT.
        let missed = missing_scripts(&server);
        assert!(missed >= nth * flushes, "{missed} of {}", nth * flushes);
    }
    let script = Script::new("before", BEFORE.to_owned());
    let exists = server.command(&["SCRIPT", "EXISTS", script.sha()]);
    assert_eq!(exists.list()[0].int(), 1);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// Instance clocks may be hours apart, because they are never sent. Two instances that send the
/// same request at different times send the same bytes.
#[test]
fn instances_with_different_clocks_send_the_same_bytes() {
    let server = Server::builder()
        .setting("slowlog-log-slower-than", "0")
        .start();
    let options = RedisOptions::default()
        .prefix(world::own_prefix())
        .deny_cache(0);
    let quotas = [tokens(10, 50), monthly(50)];
    let mut history = History::default();
    let mut seen = Vec::new();
    for _ in 0..3 {
        server.command(&["SLOWLOG", "RESET"]).done();
        let store = connect(world::standalone(&server), options.clone());
        for quota in &quotas {
            let asks = [Ask::take(b"p/limit/a", quota, 1)];
            let reply = world::runtime().block_on(store.decide(&asks));
            history.record(1, &reply);
        }
        let log = server.command(&["SLOWLOG", "GET", "100"]);
        let mut calls: Vec<Vec<u8>> = Vec::new();
        for entry in log.list() {
            let words = entry.list()[3].list();
            if words[0].text().eq_ignore_ascii_case("EVALSHA") {
                calls.push(words.iter().flat_map(|it| it.bytes().to_vec()).collect());
            }
        }
        calls.reverse();
        assert_eq!(calls.len(), quotas.len());
        seen.push(calls);
    }
    assert_eq!(seen[0], seen[1]);
    assert_eq!(seen[1], seen[2]);
    assert_eq!(history.admitted(), 6);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}
