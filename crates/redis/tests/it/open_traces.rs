//! Random requests through the store and the engine: after each, the stored state equals the
//! engine's to the last bit.

use crate::open_kit::{Dice, Engine, Open, built, layout};
use crate::world::{self, World};
use tidegate_core::{
    Algorithm, Align, Ask, Bucket, Clock, Op, Quota, Receipt, Reply, Store, Timestamp,
};
use tidegate_redis::{Layout, OpenLayout, RedisOptions, TokenFields};
use tidegate_testkit::laws::StoreUnderTest;

const SECOND: u64 = 1_000_000;

pub(crate) fn quotas() -> Vec<(&'static str, Quota)> {
    let day = 86_400 * SECOND;
    vec![
        ("plain", built(Quota::new(10, SECOND).burst(20))),
        ("thirds", built(Quota::new(3, SECOND).burst(7))),
        ("primes", built(Quota::new(4_099, 99_991).burst(7))),
        ("refundable", built(Quota::new(7, SECOND).refundable(true))),
        ("overdraft", built(Quota::new(7, SECOND).overdraft(5))),
        (
            "refundable overdraft",
            built(
                Quota::new(11, 97_003)
                    .burst(9)
                    .overdraft(3)
                    .refundable(true),
            ),
        ),
        (
            "with a queue",
            built(Quota::new(7, SECOND).burst(3).queue(20)).queueing(),
        ),
        (
            "with a queue, in milliseconds",
            built(Quota::new(1_000_003, 30 * day).queue(70)).queueing(),
        ),
        (
            "lends",
            built(Quota::new(100, SECOND).burst(300)).with_lending(true),
        ),
        (
            "lends thirds",
            built(Quota::new(3, SECOND).burst(50).overdraft(5)).with_lending(true),
        ),
        (
            "lends, in milliseconds",
            built(Quota::new(1_000_003, 30 * day)).with_lending(true),
        ),
        ("of a day", built(Quota::new(1, day).burst(50))),
        ("in milliseconds", built(Quota::new(1_000_003, 30 * day))),
        (
            "in milliseconds, refundable",
            built(Quota::new(1_000_003, 30 * day).refundable(true)),
        ),
        ("near 2^53", built(Quota::new(1, 4 * day).burst(13_000))),
        (
            "log",
            built(Quota::new(20, SECOND).algorithm(Algorithm::SlidingLog)),
        ),
        (
            "long log",
            built(Quota::new(300, SECOND).algorithm(Algorithm::SlidingLog)),
        ),
        (
            "long log with overdraft",
            built(
                Quota::new(150, 700_001)
                    .algorithm(Algorithm::SlidingLog)
                    .overdraft(20),
            ),
        ),
        (
            "log with overdraft",
            built(
                Quota::new(9, 100_003)
                    .algorithm(Algorithm::SlidingLog)
                    .overdraft(4),
            ),
        ),
    ]
}

fn op(dice: &mut Dice, receipts: &mut Vec<Receipt>, now: Timestamp) -> Op {
    match dice.roll(14) {
        0 => Op::Look,
        10 => Op::Test(dice.roll(9)),
        11 => Op::GiveBack(Receipt::latest(dice.roll(4))),
        12 => match receipts.pop() {
            Some(receipt) => Op::Return {
                receipt: receipt.with_cost(receipt.cost.div_ceil(2)),
                by: now.plus(dice.roll(2)),
            },
            None => Op::Look,
        },
        1 => Op::Force(dice.roll(9)),
        13 => Op::Debit(dice.roll(9)),
        2 | 3 => match receipts.pop() {
            Some(receipt) => Op::GiveBack(receipt),
            None => Op::Look,
        },
        4 => Op::Take(1 + dice.roll(64)),
        _ => Op::Take(1 + dice.roll(4)),
    }
}

fn trace(fields: TokenFields, seed: u64) {
    let layout = OpenLayout::new().unknown_tokens(fields);
    let options = RedisOptions::default().layout(Layout::Open(layout));
    let world = World::new(world::standalone(world::shared_server()), options);
    let mut dice = Dice(seed);
    for (name, quota) in quotas() {
        let bucket = name.as_bytes();
        let mut engine = Engine {
            quota,
            bucket: Bucket::new(&quota),
        };
        let mut receipts = Vec::new();
        let is_long = name.starts_with("long");
        for step in 0..if is_long { 700 } else { 200 } {
            world.advance_micros(match dice.roll(5) {
                0 => 0,
                // Keeps the log long.
                _ if is_long => dice.roll(7_000),
                1 => dice.roll(3),
                2 => dice.roll(2_000),
                3 => dice.roll(150_000),
                _ => dice.roll(quota.period_us().min(3_600 * SECOND)),
            });
            let op = op(&mut dice, &mut receipts, world.clock.now());
            let ask = Ask {
                op,
                ..Ask::look(bucket, &quota)
            };
            let reply = world.decide(&[ask]);
            let expected = engine.decide(op, reply.at);
            let said = |reply: &Reply| (reply.passed, reply.outcomes.to_vec());
            assert_eq!(said(&reply), said(&expected), "{name} {step} {op:?}");
            if let (Op::Take(cost), true) = (op, reply.passed) {
                receipts.push(reply.receipt(0, Op::Take(cost)).expect("it was charged"));
            }
            let kept = world.inspect(bucket, &quota).map(|it| it.bucket);
            assert_eq!(kept, engine.kept(reply.at), "{name} {step} {op:?}");
        }
    }
}

#[test]
fn tokens_in_millis_and_logs_match_the_engine() {
    trace(TokenFields::Millis, 11);
}

#[test]
fn tokens_in_nanos_and_logs_match_the_engine() {
    trace(TokenFields::Nanos, 12);
}

/// Two quotas on one key in one call, as after a policy change: units taken under one count under
/// the other.
#[test]
fn a_changed_quota_reads_the_same_state() {
    let day = 86_400 * SECOND;
    let log = |amount| Quota::new(amount, 60 * SECOND).algorithm(Algorithm::SlidingLog);
    let fixed = Algorithm::FixedWindow(Align::FirstRequest);
    let window = |amount| Quota::new(amount, 60 * SECOND).algorithm(fixed);
    for (name, template, old, new) in [
        (
            "tokens",
            "ratelimit:{key}",
            Quota::new(10, 60 * SECOND).label("a"),
            Quota::new(20, 60 * SECOND).label("b").refundable(true),
        ),
        (
            "ticks",
            "ratelimit:{key}",
            Quota::new(10, 30 * day).label("a"),
            Quota::new(1_000_003, 30 * day).label("b"),
        ),
        ("log", "{subject}", log(10).label("a"), log(20).label("b")),
        (
            "fixed",
            "rate_limits",
            window(10).label("a"),
            window(20).label("b"),
        ),
    ] {
        let (old, new) = (built(old), built(new));
        let open = Open::new(layout("p/l", template, &[]));
        let taken = take_in_turn(&open, &[old, new]);
        assert!(
            (10..=20).contains(&taken) || name == "ticks",
            "{name}: {taken}"
        );
        let refused = |quota| !open.take("p/l/user:u", quota, 1).is_allowed();
        // The remainder in the other's ticks is read as documented: each by its own capacity.
        assert!(
            name == "ticks" || (refused(&old) && refused(&new)),
            "{name}"
        );
        open.audit();
    }
}

/// Takes units concurrently, so that requests share calls, under both quotas. Returns the number
/// that passed.
fn take_in_turn(open: &Open, quotas: &[Quota; 2]) -> u64 {
    world::runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for quota in quotas.iter().copied().cycle().take(200) {
            let store = open.world.store.clone();
            tasks.spawn(async move {
                let ask = Ask::take(b"p/l/user:u", &quota, 1);
                let reply = store.decide(&[ask]).await.expect("it answers");
                u64::from(reply.passed)
            });
        }
        tasks.join_all().await.into_iter().sum()
    })
}
