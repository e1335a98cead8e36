//! The report of a refusal from the cache: for every bucket, what Redis would report.

use crate::fault::load::connect;
use crate::world;
use tidegate_core::{Algorithm, Ask, Op, Quota, Reply, Store};
use tidegate_redis::{RedisBuckets, RedisOptions};

fn hourly(amount: u64) -> Quota {
    let spec = Quota::new(amount, 3_600_000_000);
    spec.build().expect("a valid quota")
}

fn log(amount: u64) -> Quota {
    let spec = Quota::new(amount, 3_600_000_000).algorithm(Algorithm::SlidingLog);
    spec.build().expect("a valid quota")
}

fn store() -> RedisBuckets {
    let settings = world::standalone(world::shared_server());
    connect(
        settings,
        RedisOptions::default().prefix(world::own_prefix()),
    )
}

fn decide(store: &RedisBuckets, asks: &[Ask<'_>]) -> Reply {
    let reply = world::runtime().block_on(store.decide(asks));
    reply.expect("the store answers")
}

fn left(reply: &Reply) -> Vec<u64> {
    reply.outcomes.iter().map(|it| it.remaining).collect()
}

#[test]
fn an_unknown_bucket_was_reported_as_full_next_to_a_refusal() {
    let (store, one, three) = (store(), hourly(1), hourly(3));
    let [empty, beside] = [
        Ask::take(b"p/one/a", &one, 1),
        Ask::take(b"p/three/a", &three, 1),
    ];
    for passed in [true, false] {
        assert_eq!(decide(&store, &[empty]).passed, passed);
    }
    for _ in 0..2 {
        assert!(decide(&store, &[beside]).passed);
    }
    let refused = decide(&store, &[empty, beside]);
    assert!(!refused.passed);
    assert_eq!(left(&refused), [0, 1]);
}

#[test]
fn levels_next_to_a_refusal_were_stale() {
    for three in [hourly(3), log(3)] {
        let (store, one) = (store(), hourly(1));
        let empty = Ask::take(b"p/one/a", &one, 1);
        let beside = Ask::take(b"p/three/a", &three, 1);
        assert!(decide(&store, &[empty]).passed);
        for taken in 0..3 {
            for _ in 0..3 {
                let refused = decide(&store, &[empty, beside]);
                assert!(!refused.passed);
                assert_eq!(left(&refused), [0, 3 - taken]);
            }
            assert!(decide(&store, &[beside]).passed);
        }
        let refused = decide(&store, &[empty, beside]);
        assert!(refused.outcomes.iter().all(|it| !it.is_allowed()));
    }
}

/// One unit is left, and two were requested. Another client takes it, and two are requested again.
#[test]
fn a_cached_refusal_reported_a_stale_level() {
    let (store, quota) = (store(), hourly(3));
    let take = |cost| decide(&store, &[Ask::take(b"p/three/a", &quota, cost)]);
    assert!(take(2).passed);
    for _ in 0..3 {
        assert_eq!(left(&take(2)), [1]);
    }
    assert!(take(1).passed);
    let refused = take(2);
    assert_eq!(left(&refused), [0]);
    let wait = |reply: &Reply| reply.outcomes.first().and_then(|it| it.wait.as_micros());
    // Two units at twenty minutes each, less the elapsed time.
    assert!(wait(&refused).is_some_and(|it| it > 2_300_000_000));
}

/// A forced charge next to a refused take is not charged, and is reported as refused if nothing is
/// left.
#[test]
fn a_forced_charge_on_an_empty_bucket_was_reported_as_allowed() {
    let (store, one) = (store(), hourly(1));
    let [taken, forced] = [b"p/one/a", b"p/one/b"].map(|name| Ask::take(name, &one, 1));
    let forced = Ask {
        op: Op::Force(1),
        ..forced
    };
    assert!(decide(&store, &[taken, forced]).passed);
    for _ in 0..3 {
        let refused = decide(&store, &[taken, forced]);
        assert!(refused.outcomes.iter().all(|it| !it.is_allowed()));
    }
}

/// A bucket that is used twice, as by two descriptors of one request.
#[test]
fn the_second_take_from_a_bucket_was_reported_with_too_short_a_wait() {
    let (store, quota) = (store(), hourly(2));
    let asks = [Ask::take(b"p/two/a", &quota, 1); 2];
    assert!(decide(&store, &asks).passed);
    for _ in 0..3 {
        let waits = decide(&store, &asks)
            .outcomes
            .iter()
            .map(|it| it.wait)
            .collect::<Vec<_>>();
        assert!(waits.first() < waits.last(), "{waits:?}");
    }
}

#[test]
fn a_flood_on_two_bands_is_refused_from_the_cache_with_both_reported() {
    for wide in [hourly(1_000), log(1_000)] {
        let (store, narrow) = (store(), Quota::new(1, 60_000_000).build());
        let narrow = narrow.expect("a valid quota");
        let asks = [&narrow, &wide].map(|quota| Ask::take(b"p/both/a", quota, 1));
        assert!(decide(&store, &asks).passed);
        for _ in 0..1_000 {
            assert_eq!(left(&decide(&store, &asks)), [0, 999]);
        }
        let here = store.stats().refused_here.get();
        assert!(here > 500, "{here} of 1,000");
    }
}
