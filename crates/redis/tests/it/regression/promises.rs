use super::{HOUR_US, MINUTE_US, SECOND_US, built, drain, take, virtual_time};
use crate::fault::load::{connect, instances, tokens};
use crate::world::{self, World};
use tidegate_core::{Ask, Outcome, Quota, Reply, Store};
use tidegate_redis::{HashTag, RedisOptions};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::{Server, audit};

/// System 001, AC1: the first request passes, and the bucket was full.
#[test]
fn system_001_ac1_the_first_request_passes_and_leaves_the_burst_less_one() {
    let store = instances(&world::standalone(world::shared_server()), 1).remove(0);
    let quota = tokens(10, 15);
    let reply =
        world::runtime().block_on(store.decide(&[Ask::take(b"p/route/client1", &quota, 1)]));
    let reply = reply.expect("the store answers");
    assert!(reply.passed);
    assert_eq!(reply.outcomes[0].remaining, 14);
}

/// System 001, AC2: requests beyond the burst are refused.
#[test]
fn system_001_ac2_requests_beyond_the_burst_are_refused() {
    let world = virtual_time();
    let quota = tokens(10, 3);
    for _ in 0..3 {
        assert!(take(&world, "p/route/client2", &quota, 1).passed);
    }
    assert!(!take(&world, "p/route/client2", &quota, 1).passed);
}

/// System 001, AC3: tokens refill over time; after 550 ms at ten a second there are five.
#[test]
fn system_001_ac3_tokens_refill_over_time() {
    let world = virtual_time();
    let quota = tokens(10, 10);
    assert_eq!(drain(&world, "p/route/client3", &quota), 10);
    world.advance_micros(550_000);
    assert_eq!(drain(&world, "p/route/client3", &quota), 5);
    // The half token is still there.
    world.advance_micros(50_000);
    assert_eq!(drain(&world, "p/route/client3", &quota), 1);
}

/// The same with the server's clock: a refusal reports when to retry, and the retry passes.
#[test]
fn system_001_ac3_by_the_servers_clock() {
    let options = RedisOptions::default().prefix(world::own_prefix());
    let store = connect(world::standalone(world::shared_server()), options);
    let quota = tokens(10, 3);
    world::runtime().block_on(async {
        let ask = || async {
            let reply = store
                .decide(&[Ask::take(b"p/route/client4", &quota, 1)])
                .await;
            reply.expect("the store answers")
        };
        let mut reply = ask().await;
        while reply.passed {
            reply = ask().await;
        }
        let wait = reply.outcomes[0].wait.as_duration().expect("a finite wait");
        let refused_at = reply.at;
        tokio::time::sleep(wait).await;
        reply = ask().await;
        assert!(reply.passed, "{reply:?}");
        assert!(u128::from(reply.at.since(refused_at)) >= wait.as_micros());
    });
}

/// System 001, two instances race for the last token of a bucket: exactly one of them gets it.
#[test]
fn system_001_two_instances_race_for_one_token_and_one_gets_it() {
    // A separate server, because all of its keys are checked below.
    let server = &Server::start();
    let stores = instances(&world::standalone(server), 2);
    let quota = built(Quota::new(1, HOUR_US).burst(1));
    for round in 0..500 {
        let name = format!("p/race/{round}");
        let asks = [Ask::take(name.as_bytes(), &quota, 1)];
        let both = async { tokio::join!(stores[0].decide(&asks), stores[1].decide(&asks)) };
        let (one, other) = world::runtime().block_on(both);
        let passed = [one, other].map(|reply| reply.expect("the store answers").passed);
        assert_ne!(passed[0], passed[1], "round {round}");
    }
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// System 004's flow: per address ten a second, per user a hundred a minute, for all a thousand an
/// hour. A refusal by one refuses the request, and none of the others is charged.
fn three_rules(world: &World) {
    let quotas = [
        Quota::new(10, SECOND_US),
        Quota::new(100, MINUTE_US),
        Quota::new(1_000, HOUR_US),
    ]
    // As in policies whose requests may be refused in another slot.
    .map(|spec| built(spec.refundable(true)));
    let buckets = [
        "api-limits/rule-1/192.168.1.100",
        "api-limits/rule-2/user-123",
    ];
    let buckets = [buckets[0], buckets[1], "api-limits/rule-3/global"];
    let request = || -> Reply {
        let asks = (0..).zip(buckets.iter().zip(&quotas));
        let asks = asks.map(|(limit, (bucket, quota))| Ask {
            limit,
            ..Ask::take(bucket.as_bytes(), quota, 1)
        });
        world.decide(&asks.collect::<Vec<_>>())
    };
    let left = || {
        let asks = buckets.iter().zip(&quotas);
        let asks = asks.map(|(bucket, quota)| Ask::look(bucket.as_bytes(), quota));
        let reply = world.decide(&asks.collect::<Vec<_>>());
        let left: Vec<u64> = reply.outcomes.iter().map(|it| it.remaining).collect();
        left
    };
    for passed in 1..=10 {
        assert!(request().passed);
        assert_eq!(left(), [10 - passed, 100 - passed, 1_000 - passed]);
    }
    for _ in 0..5 {
        let reply = request();
        assert!(!reply.passed);
        let allowed: Vec<bool> = reply.outcomes.iter().map(Outcome::is_allowed).collect();
        assert_eq!(allowed, [false, true, true]);
        assert_eq!(reply.outcomes[0].wait.as_micros(), Some(100_000));
        assert_eq!(left(), [0, 90, 990], "the other rules leak nothing");
    }
    // Nine more seconds of ten each, then the second rule refuses: fifteen of its hundred have
    // refilled.
    let mut passed = 10;
    for _ in 0..10 {
        world.advance_micros(SECOND_US);
        while request().passed {
            passed += 1;
        }
    }
    assert_eq!(passed, 110);
    world.advance_micros(SECOND_US);
    while request().passed {
        passed += 1;
    }
    // 100 plus the refill of eleven seconds.
    assert_eq!(passed, 118);
    assert_eq!(left(), [2, 0, 1_000 - 118 + 3]);
}

#[test]
fn system_004_three_rules_are_all_or_nothing() {
    three_rules(&virtual_time());
}

#[test]
fn system_004_three_rules_are_all_or_nothing_on_a_cluster() {
    for tag in [HashTag::Policy, HashTag::Subject] {
        let cluster = world::cluster(world::shared_cluster());
        three_rules(&World::new(cluster, RedisOptions::default().tag(tag)));
    }
}
