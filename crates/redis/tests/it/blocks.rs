//! Blocks in a store that caches refusals, batches requests and spreads them over slots.

use crate::world::{self, own_prefix, runtime};
use tidegate_core::{Ask, LimitMode, Op, Outcome, Quota, Reply, Store};
use tidegate_redis::{HashTag, Layout, OpenLayout, RedisBuckets, RedisOptions};
use tidegate_redis_client::ConnectionSettings;

const HOUR_US: u64 = 3_600_000_000;

/// Returns a store with the server's clock and all caches.
fn store(settings: ConnectionSettings, options: RedisOptions) -> RedisBuckets {
    let options = options.prefix(own_prefix());
    runtime()
        .block_on(RedisBuckets::connect(settings, options))
        .expect("the server is up")
}

fn quota() -> Quota {
    Quota::new(2, HOUR_US).build().expect("a valid quota")
}

fn block() -> Quota {
    Quota::block(HOUR_US).expect("a valid quota")
}

fn asks<'a>(bucket: &'a [u8], (quota, block): (&'a Quota, &'a Quota), cost: u64) -> [Ask<'a>; 2] {
    [
        Ask::take(bucket, quota, cost),
        Ask {
            op: Op::Block,
            ..Ask::look(bucket, block)
        },
    ]
}

async fn decide(store: &RedisBuckets, asks: &[Ask<'_>]) -> Reply {
    store.decide(asks).await.expect("a healthy store answers")
}

fn is_blocked(reply: &Reply) -> bool {
    !reply.outcomes.last().is_some_and(Outcome::is_allowed)
}

/// Repeats a refused request until the cache refuses it. An entry is valid for a second at most, and a new
/// connection clears the cache, so the first request after it was cached may reach Redis on a busy machine.
async fn refused_here(store: &RedisBuckets, asks: &[Ask<'_>]) -> Reply {
    let mut tries = 0;
    loop {
        let before = store.stats().refused_here.get();
        let reply = decide(store, asks).await;
        assert!(!reply.passed);
        if store.stats().refused_here.get() == before + 1 {
            return reply;
        }
        tries += 1;
        assert!(tries < 50, "Redis decided every one of {tries} refusals");
    }
}

#[test]
fn a_cached_refusal_never_replaces_the_first_blocking_one() {
    let store = store(
        world::standalone(world::shared_server()),
        RedisOptions::default(),
    );
    let (quota, block) = (quota(), block());
    runtime().block_on(async {
        let bucket = b"api/all/x";
        let [take, _] = asks(bucket, (&quota, &block), 2);
        assert!(decide(&store, &[take]).await.passed);
        // Another client, with a policy without a block, was refused. The refusal is cached here.
        assert!(!decide(&store, &[take]).await.passed);
        refused_here(&store, &[take]).await;
        let here = store.stats().refused_here.get();
        let blocking = asks(bucket, (&quota, &block), 1);
        assert!(is_blocked(&decide(&store, &blocking).await));
        assert_eq!(store.stats().refused_here.get(), here, "Redis was asked");
        let kept = store.inspect(bucket, &block).await.expect("an answer");
        assert!(kept.is_some(), "and has charged the block");
        // From now on the block is cached.
        let again = refused_here(&store, &blocking).await;
        assert!(is_blocked(&again));
        let wait_us = again.outcomes[1].wait.as_micros().expect("it ends");
        assert!((1..=HOUR_US).contains(&wait_us), "{wait_us}");
        // After the reset, Redis decides again, and the bucket refuses as before.
        assert!(store.reset(bucket, &block).await.expect("an answer"));
        assert!(store.reset(bucket, &quota).await.expect("an answer"));
        assert!(decide(&store, &blocking).await.passed);
    });
}

#[test]
fn of_concurrent_requests_two_pass_and_one_block_is_charged() {
    let settings = || world::standalone(world::shared_server());
    let options = || RedisOptions::default().prefix("tgmany:");
    let stores: Vec<RedisBuckets> = (0..2)
        .map(|_| {
            let connect = RedisBuckets::connect(settings(), options());
            runtime().block_on(connect).expect("the server is up")
        })
        .collect();
    let (quota, block) = (quota(), block());
    let passed = runtime().block_on(async {
        let mut under_way = tokio::task::JoinSet::new();
        for nth in 0..400 {
            let store = stores[nth % 2].clone();
            under_way.spawn(async move {
                let asks = asks(b"api/all/many", (&quota, &block), 1);
                decide(&store, &asks).await
            });
        }
        let replies = under_way.join_all().await;
        let blocked = replies.iter().filter(|reply| is_blocked(reply)).count();
        let passed = replies.iter().filter(|reply| reply.passed).count();
        assert_eq!(blocked + passed, 400);
        passed
    });
    assert_eq!(passed, 2);
    let kept = runtime().block_on(stores[0].inspect(b"api/all/many", &block));
    assert!(kept.expect("an answer").is_some());
}

/// On a Cluster each limit's block is in the slot of the limit, wherever the other buckets of the
/// request are.
#[test]
fn on_a_cluster_each_refusing_limit_blocks_in_its_own_slot() {
    for tag in [HashTag::Subject, HashTag::Policy] {
        each_limit_blocks(RedisOptions::default().tag(tag));
    }
    each_limit_blocks(RedisOptions::default().layout(Layout::Open(OpenLayout::new())));
}

fn each_limit_blocks(options: RedisOptions) {
    let store = store(world::cluster(world::shared_cluster()), options);
    let (block, roomy) = (block(), Quota::new(1_000, HOUR_US).refundable(true));
    let roomy = roomy.build().expect("a valid quota");
    let tight = Quota::new(1, HOUR_US)
        .refundable(true)
        .label("tight")
        .build();
    let tight = tight.expect("a valid quota");
    let names: Vec<String> = (0..8)
        .map(|nth| format!("api/{nth}/subject-{nth}"))
        .collect();
    let all = |cost: u64| -> Vec<Ask<'_>> {
        let limits = (0_u16..).zip(&names);
        limits
            .flat_map(|(limit, name)| {
                // Every other limit has a second band, which refuses.
                let [take, block] = asks(name.as_bytes(), (&roomy, &block), cost);
                let tight = Ask::take(name.as_bytes(), &tight, cost);
                let second = limit.is_multiple_of(2).then_some(tight);
                let asks = [Some(take), second, Some(block)].into_iter().flatten();
                asks.map(move |ask| Ask { limit, ..ask })
            })
            .collect()
    };
    runtime().block_on(async {
        assert!(decide(&store, &all(1)).await.passed);
        let refused = decide(&store, &all(1)).await;
        assert!(!refused.passed);
        for (ask, outcome) in all(1).iter().zip(refused.outcomes.iter()) {
            if ask.op == Op::Block {
                let expected = ask.limit.is_multiple_of(2).then_some(HOUR_US);
                let wait = outcome.wait.as_micros().filter(|us| *us > 0);
                assert_eq!(wait, expected, "limit {}", ask.limit);
                let kept = store.inspect(ask.bucket, &block).await.expect("an answer");
                assert_eq!(kept.is_some(), expected.is_some(), "limit {}", ask.limit);
            }
        }
        // A cost that can never pass blocks no other request.
        assert!(!decide(&store, &all(1_001)).await.passed);
        for name in names.iter().skip(1).step_by(2) {
            let kept = store.inspect(name.as_bytes(), &block).await;
            assert!(kept.expect("an answer").is_none(), "{name}");
        }
    });
}

/// A slot does not know whether the other slots allow the request. A shadow block is stored only
/// once all have replied.
#[test]
fn on_a_cluster_shadow_blocks_are_stored_only_if_the_request_passes() {
    let block = Quota::shadow_block(HOUR_US).expect("a valid quota");
    for (nth, layout) in (0..).zip([Layout::Packed, Layout::Open(OpenLayout::new())]) {
        let cluster = world::cluster(world::shared_cluster());
        let store = store(cluster, RedisOptions::default().layout(layout));
        for enforced in [2, 3] {
            let passes = Quota::new(enforced, HOUR_US).refundable(true).build();
            let (passes, watched) = (passes.expect("a valid quota"), quota());
            let names: Vec<String> = (0..4)
                .map(|limit| format!("api/{limit}/s-{nth}-{enforced}-{limit}"))
                .collect();
            let mut all: Vec<Ask<'_>> = Vec::new();
            for (limit, name) in (1..).zip(&names) {
                let shadow = asks(name.as_bytes(), (&watched, &block), 1);
                all.extend(shadow.map(|ask| Ask {
                    mode: LimitMode::Shadow,
                    limit,
                    ..ask
                }));
            }
            all.push(Ask::take(b"api/all/everybody", &passes, 1));
            runtime().block_on(async {
                for _ in 0..2 {
                    assert!(decide(&store, &all).await.passed);
                }
                let third = decide(&store, &all).await;
                let is_kept = enforced > 2;
                assert_eq!(third.passed, is_kept);
                for (ask, outcome) in all.iter().zip(third.outcomes.iter()) {
                    if ask.op == Op::Block {
                        assert_eq!(outcome.is_allowed(), !is_kept);
                        let kept = store.inspect(ask.bucket, &block).await;
                        assert_eq!(kept.expect("an answer").is_some(), is_kept);
                    }
                }
                assert!(
                    store
                        .reset(b"api/all/everybody", &passes)
                        .await
                        .expect("an answer")
                );
            });
        }
    }
}
