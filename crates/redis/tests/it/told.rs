//! What is told of a refusal that was not asked for in Redis: of every bucket what Redis would say.

use crate::fault::load::connect;
use crate::world;
use tidegate_core::{Algorithm, Ask, Op, Quota, Reply, Store};
use tidegate_redis::{RedisOptions, RedisStore};

fn hourly(amount: u64) -> Quota {
    let spec = Quota::new(amount, 3_600_000_000);
    spec.build().expect("it fits")
}

fn log(amount: u64) -> Quota {
    let spec = Quota::new(amount, 3_600_000_000).algorithm(Algorithm::SlidingLog);
    spec.build().expect("it fits")
}

fn store() -> RedisStore {
    let settings = world::standalone(world::shared_server());
    connect(
        settings,
        RedisOptions::default().prefix(world::own_prefix()),
    )
}

fn decide(store: &RedisStore, asks: &[Ask<'_>]) -> Reply {
    let reply = world::runtime().block_on(store.decide(asks));
    reply.expect("all is well")
}

fn left(reply: &Reply) -> Vec<u64> {
    reply.outcomes.iter().map(|it| it.remaining).collect()
}

#[test]
fn a_bucket_of_which_nothing_was_known_was_told_as_full_beside_one_that_refuses() {
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
fn what_was_told_beside_a_refusal_was_what_had_been_there_before_others_took_it() {
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

/// One unit is left, which two were asked for; somebody takes it, and two are asked for again.
#[test]
fn a_bucket_that_refused_was_told_with_what_it_had_left_though_that_was_taken_since() {
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
    // Two units, at twenty minutes each, but for what has passed.
    assert!(wait(&refused).is_some_and(|it| it > 2_300_000_000));
}

/// What is forced beside a take that refuses is not charged, and refuses if nothing is left.
#[test]
fn a_forced_charge_was_told_as_allowed_beside_a_refusal_though_nothing_was_left() {
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

/// A bucket that is asked for twice, as two descriptors of one request do.
#[test]
fn the_second_take_of_a_request_from_one_bucket_was_told_to_wait_no_longer_than_the_first() {
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
fn a_flood_on_two_bands_is_answered_here_and_told_of_both() {
    for wide in [hourly(1_000), log(1_000)] {
        let (store, narrow) = (store(), Quota::new(1, 60_000_000).build());
        let narrow = narrow.expect("it fits");
        let asks = [&narrow, &wide].map(|quota| Ask::take(b"p/both/a", quota, 1));
        assert!(decide(&store, &asks).passed);
        for _ in 0..1_000 {
            assert_eq!(left(&decide(&store, &asks)), [0, 999]);
        }
        let here = store.stats().refused_here.get();
        assert!(here > 500, "{here} of 1,000");
    }
}
