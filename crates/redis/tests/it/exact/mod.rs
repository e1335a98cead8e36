//! Exactness: four processes with many tasks send requests for one hot subject, which matches three
//! limits of three bands each. Never more passes than every band allows, and within 1 % of it,
//! because demand never stops.

#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "helpers of tests fail by panicking as tests do, and say what they measured"
)]

/// One instance, as a separate process.
mod process;

use crate::fault::load::{alone, connect};
use crate::world;
use process::{Instance, Orders};
use std::time::Duration;
use tidegate_core::{Algorithm, Align, Ask, Bucket, BucketState, Quota, Store, Timestamp};
use tidegate_redis::{HashTag, RedisOptions};
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{Server, audit};

const PROCESSES: usize = 4;
const SECOND_US: u64 = 1_000_000;

/// The duration of the load, by the server's clock, including the start of the processes.
const LOAD_US: u64 = 3 * SECOND_US;

/// A bucket and its bands.
type Limit = (&'static str, [Quota; 3]);

/// Three limits of the policy `p`, each with a separate subject and three bands. The bands of the
/// first limit bind in turn: the first band for two seconds, then the second, then the third.
fn limits(only_tokens: bool) -> Vec<Limit> {
    let minute_us = 60 * SECOND_US;
    let tokens = |amount, period_us, burst| Quota::new(amount, period_us).burst(burst);
    let window = |amount, period_us, algorithm| Quota::new(amount, period_us).algorithm(algorithm);
    let build = |spec: tidegate_core::QuotaSpec<'_>| spec.refundable(only_tokens).build();
    let quotas = |specs: [_; 3]| specs.map(|spec| build(spec).expect("a valid quota"));
    let address = quotas([
        tokens(600, SECOND_US, 100),
        tokens(24_000, minute_us, 500),
        tokens(1_260_000, 60 * minute_us, 620),
    ]);
    let (user, everyone) = if only_tokens {
        (
            quotas([
                // Room for the charges that refused requests hold until they are refunded.
                tokens(1_200, SECOND_US, 600),
                tokens(60_000, minute_us, 1_500),
                tokens(2_400_000, 60 * minute_us, 2_000),
            ]),
            quotas([
                tokens(10_000, SECOND_US, 10_000),
                tokens(300_000, minute_us, 20_000),
                tokens(9_000_000, 60 * minute_us, 30_000),
            ]),
        )
    } else {
        (
            quotas([
                window(120, SECOND_US / 10, Algorithm::SlidingLog),
                window(750, SECOND_US, Algorithm::FixedWindow(Align::Clock)),
                window(1_500, 2 * SECOND_US, Algorithm::SlidingWindow),
            ]),
            quotas([
                window(2_200, 3 * SECOND_US, Algorithm::BucketedWindow),
                window(820, SECOND_US, Algorithm::FixedWindow(Align::FirstRequest)),
                tokens(100_000, minute_us, 3_000),
            ]),
        )
    };
    vec![
        ("p/address/192.0.2.1", address),
        ("p/user/ann", user),
        ("p/everyone/all", everyone),
    ]
}

/// Returns the request that all tasks send: one unit of each bucket's bands.
fn asks(limits: &[Limit]) -> Vec<Ask<'_>> {
    let asks = (0..).zip(limits).flat_map(|(limit, (bucket, quotas))| {
        let take = move |quota| Ask {
            limit,
            ..Ask::take(bucket.as_bytes(), quota, 1)
        };
        quotas.iter().map(take)
    });
    asks.collect()
}

/// Returns the units admitted between two instants with a request every tenth of a millisecond.
fn ideal(limits: &[Limit], from_us: u64, until_us: u64) -> u64 {
    let quotas: Vec<&Quota> = limits.iter().flat_map(|(_, quotas)| quotas).collect();
    let mut buckets: Vec<Bucket> = quotas.iter().map(|quota| Bucket::new(quota)).collect();
    let mut passed = 0;
    for at_us in (from_us..until_us).step_by(100) {
        let now = Timestamp::from_micros(at_us);
        let all = |buckets: &[Bucket]| {
            let mut both = buckets.iter().zip(&quotas);
            both.all(|(bucket, quota)| bucket.wait(quota, 1, now).is_none())
        };
        while all(&buckets) {
            for (bucket, quota) in buckets.iter_mut().zip(&quotas) {
                bucket.charge(quota, 1, now);
            }
            passed += 1;
        }
    }
    passed
}

/// The total admitted by all instances, and the slowest admission.
struct Sum {
    history: History,
    slowest_us: u64,
    until_us: u64,
}

fn hammer(server: &Server, orders: &Orders) -> Sum {
    let until_us = server_time_us(server) + SECOND_US / 2 + LOAD_US;
    let orders = orders.clone().until(until_us);
    let started: Vec<Instance> = (0..PROCESSES).map(|_| Instance::start(&orders)).collect();
    let mut sum = Sum {
        history: History::default(),
        slowest_us: 0,
        until_us,
    };
    for instance in started {
        let said = instance.finish();
        sum.history.merge(said.history);
        sum.slowest_us = sum.slowest_us.max(said.slowest_us);
    }
    sum
}

fn server_time_us(server: &Server) -> u64 {
    let time = server.command(&["TIME"]).texts();
    let number = |nth: usize| time[nth].parse::<u64>().expect("a number");
    number(0) * SECOND_US + number(1)
}

/// Checks that no band is exceeded, that nearly all of the quota was used, and that no result is
/// unknown.
fn check(name: &str, sum: &Sum, only_tokens: bool) {
    let limits = limits(only_tokens);
    let history = &sum.history;
    let (first, _) = history.span_us().expect("at least one request passed");
    let admitted = history.admitted_before(sum.until_us);
    let ideal = ideal(&limits, first, sum.until_us);
    println!(
        "{name}: {admitted} of {ideal} in {} ms, {} refused, slowest {} µs",
        (sum.until_us - first) / 1_000,
        history.refused(),
        sum.slowest_us,
    );
    for quota in limits.iter().flat_map(|(_, quotas)| quotas) {
        // Over several slots a request has several instants; the latest is reported.
        let over = if only_tokens {
            history.over_with_skew(quota, sum.slowest_us)
        } else {
            history.over(quota)
        };
        assert_eq!(over, 0, "{name}: {quota:?}");
    }
    assert_eq!(history.unknown(), [], "{name}");
    assert!(history.refused() > 0, "{name}: demand was not enough");
    assert!(
        admitted * 100 >= ideal * 99,
        "{name}: {admitted} of {ideal}"
    );
}

#[test]
fn four_processes_admit_exactly_the_limit() {
    let _alone = alone();
    let server = world::shared_server();
    let orders = Orders::standalone(server, &world::own_prefix());
    check("standalone", &hammer(server, &orders), false);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

#[test]
fn four_processes_without_a_deny_cache_admit_exactly_the_limit() {
    let _alone = alone();
    let server = world::shared_server();
    let orders = Orders::standalone(server, &world::own_prefix()).forgetful();
    check("standalone, no deny cache", &hammer(server, &orders), false);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

#[test]
fn four_processes_on_a_cluster_by_policy_admit_exactly_the_limit() {
    let _alone = alone();
    let cluster = world::shared_cluster();
    let orders = Orders::cluster(cluster, &world::own_prefix(), HashTag::Policy);
    let sum = hammer(&cluster.nodes()[0], &orders);
    check("cluster by policy", &sum, false);
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

/// Reserve and refund: each limit is in another slot.
#[test]
fn four_processes_on_a_cluster_by_subject_admit_exactly_the_limit() {
    let _alone = alone();
    let (cluster, prefix) = (world::shared_cluster(), world::own_prefix());
    let options = RedisOptions::default()
        .prefix(prefix.clone())
        .tag(HashTag::Subject);
    let store = connect(world::cluster(cluster), options);
    let decide = |asks: &[Ask<'_>]| {
        let reply = world::runtime().block_on(store.decide(asks));
        reply.expect("the store answers")
    };
    let limits = limits(true);
    // Measured before the load, when buckets began to refill.
    let began_us = server_time_us(&cluster.nodes()[0]);
    let first = decide(&asks(&limits));
    assert!(first.passed);

    let orders = Orders::cluster(cluster, &prefix, HashTag::Subject);
    let mut sum = hammer(&cluster.nodes()[0], &orders);
    check("cluster by subject", &sum, true);
    sum.history.admit(first.at.as_micros(), 1);
    // Admitted plus remaining units never exceed the total: no refund exceeds its charge.
    for (bucket, quotas) in &limits {
        let looks = quotas.each_ref().map(|it| Ask::look(bucket.as_bytes(), it));
        let reply = decide(&looks);
        for (quota, outcome) in quotas.iter().zip(reply.outcomes.iter()) {
            let refilled = quota.amount() * (reply.at.as_micros() - began_us) / quota.period_us();
            let there_was = quota.capacity() + refilled;
            let found = sum.history.admitted() + outcome.remaining;
            println!("{bucket}: {found} found of {there_was}");
            assert!(found <= there_was, "{bucket} {quota:?}");
        }
    }
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

/// Rows 9 and 12 of the failure table: an instance that dies during the load, and one that is
/// paused for longer than any cache entry lives, then continues.
#[test]
fn rows_9_and_12_crashed_or_paused_instances_admit_nothing_more() {
    let _alone = alone();
    let server = world::shared_server();
    let until_us = server_time_us(server) + SECOND_US / 2 + LOAD_US;
    let orders = Orders::standalone(server, &world::own_prefix()).until(until_us);
    let started: Vec<Instance> = (0..PROCESSES).map(|_| Instance::start(&orders)).collect();
    let wait_until = |from_end_us: u64| {
        tidegate_testkit::redis::until("time passes", || {
            server_time_us(server) >= until_us - from_end_us
        });
    };
    wait_until(2 * SECOND_US);
    started[0].signal("STOP");
    started[1].signal("KILL");
    // Longer than the second for which a refusal is cached.
    wait_until(SECOND_US / 2);
    started[0].signal("CONT");
    let mut history = History::default();
    for instance in started {
        history.merge(instance.finish().history);
    }
    for quota in limits(false).iter().flat_map(|(_, quotas)| quotas) {
        assert_eq!(history.over(quota), 0, "{quota:?}");
    }
    let (first, last) = history.span_us().expect("at least one request passed");
    let ideal = ideal(&limits(false), first, until_us);
    println!("one dead, one stalled: {} of {ideal}", history.admitted());
    assert!(
        last + SECOND_US / 2 > until_us,
        "the other instances finish"
    );
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// A hot refused subject costs Redis one call per second and instance, at any request rate.
#[test]
fn a_refused_hot_key_costs_one_call_per_cached_refusal() {
    const INSTANCES: u64 = 4;
    let _alone = alone();
    let server = Server::start();
    let options = RedisOptions::default().prefix(world::own_prefix());
    let quota = Quota::new(10, 3_600 * SECOND_US)
        .build()
        .expect("a valid quota");
    let until_us = server_time_us(&server) + 5 * SECOND_US / 2;
    let calls = || {
        let stats = server.command(&["INFO", "commandstats"]).text();
        let line = stats
            .lines()
            .find_map(|it| it.strip_prefix("cmdstat_evalsha:calls="));
        let calls = line.and_then(|it| it.split(',').next());
        calls.map_or(0, |it| it.parse::<u64>().expect("a number"))
    };
    let refused = world::runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..INSTANCES {
            let settings = world::standalone(&server);
            let store = tidegate_redis::RedisBuckets::connect(settings, options.clone());
            let store = store.await.expect("the server is up");
            // Until the bucket is used up, and the refusal is cached.
            while store
                .decide(&[Ask::take(b"p/limit/hot", &quota, 1)])
                .await
                .is_ok_and(|reply| reply.passed)
            {}
            for _ in 0..8 {
                let (store, quota) = (store.clone(), quota);
                tasks.spawn(async move {
                    let mut refused = 0_u64;
                    loop {
                        let reply = store.decide(&[Ask::take(b"p/limit/hot", &quota, 1)]).await;
                        let reply = reply.expect("the store answers");
                        assert!(!reply.passed);
                        refused += 1;
                        if reply.at.as_micros() >= until_us {
                            return refused;
                        }
                        tokio::time::sleep(Duration::from_micros(500)).await;
                    }
                });
            }
        }
        tasks.join_all().await.into_iter().sum::<u64>()
    });
    let calls = calls();
    println!("{refused} refused by {calls} calls in 2.5 s");
    // Ten that passed and the first refusal, per instance; then three cache lifetimes of one
    // second.
    let most = 10 + INSTANCES + INSTANCES * 3;
    assert!(calls <= most, "{calls} calls");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}
