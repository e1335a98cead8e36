//! Blocks: only a limit's first refusal blocks its subject.

use crate::world::{Spec, algorithm, as_model, fine_spec_of, start_us};
use proptest::prelude::*;
use tidegate_core::{
    Algorithm, Align, Ask, Bucket, LimitMode, Op, Outcomes, Quota, Receipt, Reply, Timestamp, Wait,
    step,
};
use tidegate_testkit::history::model_of;
use tidegate_testkit::model::{ModelBucket, ModelLimit, decide_limits};

const START: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const LENGTH_US: u64 = 300_000_000;

fn window(amount: u64) -> Quota {
    Quota::new(amount, 1_000_000)
        .algorithm(Algorithm::FixedWindow(Align::FirstRequest))
        .overdraft(5)
        .build()
        .unwrap()
}

fn ask(quota: &Quota, op: Op, limit: u16) -> Ask<'_> {
    Ask {
        op,
        limit,
        ..Ask::look(b"", quota)
    }
}

fn decide(asks: &[Ask<'_>], places: &[usize], buckets: &mut [Bucket]) -> (bool, Outcomes) {
    let reply = step::decide(asks, places, buckets, START);
    (reply.passed, reply.outcomes)
}

fn used(bucket: &Bucket) -> u64 {
    match bucket {
        Bucket::Fixed(window) => window.used,
        _ => panic!("the quota is a fixed window"),
    }
}

#[test]
fn blocks_of_any_length_share_a_separate_band() {
    let block = Quota::block(LENGTH_US).unwrap();
    assert_eq!(block.id(), Quota::block(1).unwrap().id());
    assert!(block.is_block() && block.is_narrow());
    let fixed = Algorithm::FixedWindow(Align::FirstRequest);
    let named = Quota::new(1, LENGTH_US).algorithm(fixed).label("block");
    let watched = Quota::shadow_block(LENGTH_US).unwrap();
    assert!(watched.is_block() && watched.id() != block.id());
    for other in [named.build().unwrap(), window(1)] {
        assert_ne!(other.id(), block.id());
        assert!(!other.is_block());
    }
    assert!(Quota::block(0).is_err());
}

#[test]
fn only_limits_that_refuse_are_blocked() {
    let (full, roomy, block) = (window(1), window(9), Quota::block(LENGTH_US).unwrap());
    let asks = [
        ask(&full, Op::Take(1), 0),
        ask(&block, Op::Block, 0),
        ask(&roomy, Op::Take(1), 1),
        ask(&block, Op::Block, 1),
        ask(&full, Op::Force(1), 2),
        ask(&block, Op::Block, 2),
    ];
    let mut buckets: Vec<Bucket> = asks.iter().map(|ask| Bucket::new(ask.quota)).collect();
    let places: Vec<usize> = (0..asks.len()).collect();
    let at = |used| {
        Bucket::Fixed(tidegate_core::algorithm::FixedWindow {
            start: START.as_micros(),
            used,
        })
    };
    (buckets[0], buckets[4]) = (at(1), at(1));
    let (passed, outcomes) = decide(&asks, &places, &mut buckets);
    assert!(!passed);
    let counted: Vec<u64> = buckets.iter().map(used).collect();
    assert_eq!(counted, [1, 1, 0, 0, 1, 1], "a refused take is not forced");
    let waits: Vec<Wait> = outcomes
        .iter()
        .skip(1)
        .step_by(2)
        .map(|it| it.wait)
        .collect();
    let whole = Wait::from_micros(LENGTH_US);
    assert_eq!(waits, [whole, Wait::NONE, whole]);
}

/// Another limit refuses the request, so a limit in shadow mode is neither charged nor blocked.
#[test]
fn a_shadow_blocks_only_where_the_request_passes() {
    let (full, block) = (window(1), Quota::shadow_block(LENGTH_US).unwrap());
    let shadow = |op, quota| Ask {
        mode: LimitMode::Shadow,
        ..ask(quota, op, 0)
    };
    let watched = [shadow(Op::Take(1), &full), shadow(Op::Block, &block)];
    let refusing = Ask {
        limit: 1,
        ..ask(&full, Op::Take(1), 0)
    };
    let mut buckets = [&full, &block, &full].map(Bucket::new);
    for place in [0, 2] {
        decide(&[refusing], &[place], &mut buckets);
    }
    let [take, closed] = watched;
    let (passed, outcomes) = decide(&[take, closed, refusing], &[0, 1, 2], &mut buckets);
    assert!(!passed && outcomes[1].is_allowed());
    let (passed, outcomes) = decide(&watched, &[0, 1], &mut buckets);
    assert!(passed);
    assert_eq!(outcomes[1].wait.as_micros(), Some(LENGTH_US));
    assert_eq!(used(&buckets[1]), 1);
}

/// Two descriptors may match the same limit with the same subject.
#[test]
fn a_block_requested_twice_is_charged_once() {
    let (full, block) = (window(3), Quota::block(LENGTH_US).unwrap());
    let asks = [
        ask(&full, Op::Take(1), 0),
        ask(&block, Op::Block, 0),
        ask(&full, Op::Force(1), 1),
        ask(&block, Op::Block, 1),
    ];
    let mut buckets = [Bucket::new(&full), Bucket::new(&block)];
    decide(&[ask(&full, Op::Take(3), 0)], &[0], &mut buckets);
    let (passed, outcomes) = decide(&asks, &[0, 1, 0, 1], &mut buckets);
    assert!(!passed);
    assert_eq!(used(&buckets[1]), 1);
    assert_eq!(outcomes[1], outcomes[3]);
    assert_eq!(outcomes[1].wait.as_micros(), Some(LENGTH_US));
}

#[test]
fn a_band_that_can_never_pass_keeps_its_limit_from_being_blocked() {
    let (full, small, block) = (window(5), window(2), Quota::block(LENGTH_US).unwrap());
    let mut buckets = [&full, &small, &block].map(Bucket::new);
    decide(&[ask(&full, Op::Take(5), 0)], &[0], &mut buckets);
    let never = [
        ask(&full, Op::Take(3), 0),
        ask(&small, Op::Take(3), 0),
        ask(&block, Op::Block, 0),
    ];
    let (passed, outcomes) = decide(&never, &[0, 1, 2], &mut buckets);
    assert!(!passed && outcomes[2].is_allowed());
    // This block belongs to another limit.
    let never = [
        never[0],
        Ask {
            limit: 1,
            ..never[1]
        },
        never[2],
    ];
    let (_, outcomes) = decide(&never, &[0, 1, 2], &mut buckets);
    assert_eq!(outcomes[2].wait.as_micros(), Some(LENGTH_US));
}

#[test]
fn a_refund_next_to_an_inactive_block_takes_effect() {
    let (full, block) = (window(1), Quota::block(LENGTH_US).unwrap());
    let mut buckets = [&full, &block, &full].map(Bucket::new);
    for place in [0, 2] {
        decide(&[ask(&full, Op::Take(1), 0)], &[place], &mut buckets);
    }
    let receipt = Receipt::by_the_clock(START, 1);
    let asks = [
        ask(&full, Op::Force(1), 0),
        ask(&block, Op::Block, 0),
        ask(&full, Op::Return { receipt, by: START }, 1),
    ];
    for expected in [0, 1] {
        decide(&[ask(&full, Op::Take(1), 0)], &[2], &mut buckets);
        let (passed, _) = decide(&asks, &[0, 1, 2], &mut buckets);
        assert!(!passed);
        assert_eq!(
            used(&buckets[2]),
            expected,
            "the block is opened, then in force"
        );
        assert_eq!(used(&buckets[0]), 2, "the charge is forced once");
    }
}

fn limit() -> impl Strategy<Value = (Vec<Spec>, Option<u64>)> {
    let specs = prop::collection::vec(fine_spec_of(algorithm()), 1..3);
    let length = prop_oneof![
        1 => Just(None),
        2 => (1..=50_u64).prop_map(Some),
        2 => (1..=400_000_000_u64).prop_map(Some),
    ];
    (specs, length)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(1_000)))]

    #[test]
    fn limits_with_blocks_match_the_model(
        limits in prop::collection::vec(limit(), 1..4),
        start_us in start_us(),
        trace in prop::collection::vec((0..4_u8, 0..400_u64, 0..=4_u64), 1..30),
    ) {
        let mut quotas: Vec<(u16, Quota, Op)> = Vec::new();
        let mut models: Vec<(Vec<ModelBucket>, Option<ModelBucket>)> = Vec::new();
        for (nth, (specs, length)) in (0..).zip(&limits) {
            let bands = specs.iter().map(|spec| (nth, spec.fine().unwrap(), Op::Look));
            quotas.extend(bands);
            let block = length.map(|length| Quota::block(length).unwrap());
            quotas.extend(block.map(|block| (nth, block, Op::Block)));
            let of_block = |block: Quota| ModelBucket::new(model_of(&block));
            let bands = specs.iter().map(|spec| ModelBucket::new(spec.model()));
            models.push((bands.collect(), block.map(of_block)));
        }
        let places: Vec<usize> = (0..quotas.len()).collect();
        let mut buckets: Vec<Bucket> = quotas.iter().map(|(_, it, _)| Bucket::new(it)).collect();
        let mut now_us = start_us;
        let mut last_us = 0;
        for (kind, pause, cost) in trace {
            now_us += match kind {
                0 => 0,
                1 => pause,
                2 => pause * 1_000_000,
                _ => last_us,
            };
            let asks: Vec<Ask<'_>> = quotas.iter().map(|(limit, quota, op)| {
                let op = if *op == Op::Block { Op::Block } else { Op::Take(cost) };
                ask(quota, op, *limit)
            }).collect();
            let now = Timestamp::from_micros(now_us);
            let Reply { passed, outcomes, .. } = step::decide(&asks, &places, &mut buckets, now);
            let mut all: Vec<ModelLimit<'_>> = models.iter_mut().map(|(bands, block)| ModelLimit {
                bands: bands.iter_mut().collect(),
                block: block.as_mut(),
            }).collect();
            let (expected, answers) = decide_limits(&mut all, now_us, cost);
            prop_assert_eq!(passed, expected);
            last_us = outcomes.iter().filter_map(|it| it.wait.as_micros()).max().unwrap_or(0);
            let outcomes: Vec<_> = outcomes.iter().map(|outcome| as_model(*outcome)).collect();
            prop_assert_eq!(outcomes, answers);
        }
    }

    /// Adds blocks next to other asks. Unless a block is in force, the other asks are answered and
    /// charged as without it.
    #[test]
    fn an_inactive_block_does_not_affect_other_limits(
        before in prop::collection::vec(0..=3_u64, 3),
        shape in prop::collection::vec((0..3_usize, 0..=4_u64, 0..6_u8, 0..2_u16), 1..6),
    ) {
        let (quotas, block) = ([window(3), window(2), window(4)], Quota::block(9).unwrap());
        let mut with: Vec<Bucket> = quotas.iter().map(Bucket::new).collect();
        for (bucket, (quota, cost)) in with.iter_mut().zip(quotas.iter().zip(before)) {
            step::decide_one(quota, bucket, Op::Force(cost), START);
        }
        let mut without = with.clone();
        with.extend([Bucket::new(&block), Bucket::new(&block)]);
        let asks: Vec<Ask<'_>> = shape.iter().map(|(place, cost, kind, limit)| Ask {
            mode: if *kind == 0 { LimitMode::Shadow } else { LimitMode::Enforce },
            ..ask(&quotas[*place], match kind {
                1 => Op::Test(*cost),
                2 => Op::Force(*cost),
                4 => Op::Debit(*cost),
                3 => Op::Look,
                _ => Op::Take(*cost),
            }, *limit)
        }).collect();
        let places: Vec<usize> = shape.iter().map(|(place, ..)| *place).collect();
        let (passed, plain) = decide(&asks, &places, &mut without);
        let mut blocking = asks.clone();
        blocking.extend([0, 1].map(|limit| ask(&block, Op::Block, limit)));
        let mut more = places;
        more.extend([3, 4]);
        let (still, outcomes) = decide(&blocking, &more, &mut with);
        prop_assert_eq!(still, passed);
        prop_assert_eq!(&outcomes[..asks.len()], &plain[..]);
        prop_assert_eq!(&with[..3], &without[..]);
        // The wait of a forced charge is the wait after the charge.
        let is_forced = |ask: &Ask<'_>| matches!(ask.op, Op::Force(_) | Op::Debit(_));
        if asks.len() > 1 && asks.iter().any(is_forced) {
            return Ok(());
        }
        for (limit, bucket) in (0..).zip(&with[3..]) {
            let charges = asks.iter().zip(plain.iter()).filter(|(ask, _)| {
                let is_charge = matches!(ask.op, Op::Take(_) | Op::Force(_) | Op::Debit(1..));
                ask.limit == limit && ask.mode == LimitMode::Enforce && is_charge
            });
            let longest = charges.map(|(_, outcome)| outcome.wait).max().unwrap_or(Wait::NONE);
            let blocks = longest != Wait::NONE && longest != Wait::NEVER;
            prop_assert_eq!(used(bucket), u64::from(blocks));
        }
    }
}
