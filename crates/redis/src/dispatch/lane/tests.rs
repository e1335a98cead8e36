use super::batch::repeat;
use super::queue::Queue;
use super::{CARRIERS_MAX, CarrierTask, Lane, LaneBatch, LaneRequest, PATIENCE, ReplyWaiter};
use crate::request::{OwnedAsk, RedisKey, RequestOp, SlotAsks};
use std::hash::BuildHasher;
use std::time::Duration;
use tidegate_core::{LimitMode, Op, Quota, Receipt};
use tidegate_redis_client::RepeatEffect;
use tokio::sync::oneshot;
use tokio::time::Instant;

fn take(key: &str, cost: u64) -> LaneRequest {
    take_all(&[key], cost)
}

fn take_all(keys: &[&str], cost: u64) -> LaneRequest {
    let mut request = SlotAsks::default();
    for (nth, key) in (0..).zip(keys) {
        request.keys.push(RedisKey::from_slice(key.as_bytes()));
        request.asks.push(OwnedAsk {
            key: nth,
            quota: Quota::new(1_000, 1_000_000).build().unwrap(),
            op: RequestOp::Engine(Op::Take(cost)),
            limit: 0,
            mode: LimitMode::Enforce,
        });
    }
    let hash = |key: &RedisKey| foldhash::fast::FixedState::default().hash_one(key.as_slice());
    LaneRequest {
        buckets: request.keys.iter().map(hash).collect(),
        weight: crate::any_op::weight(&request),
        request,
        is_repeat: false,
        asker: ReplyWaiter {
            deadline: Instant::now() + Duration::from_secs(60),
            wants_before: false,
            answer: oneshot::channel().0,
        },
    }
}

/// Fills a call of `carrier`; returns the keys of each of its requests.
fn call(queue: &mut Queue, carrier: u8) -> (Vec<String>, Vec<u64>) {
    let (mut batch, mut keys) = (LaneBatch::default(), Vec::new());
    while let Some((waiter, known)) = queue.next(carrier, &batch) {
        let names = waiter.request.keys.iter().map(|key| key.to_vec()).collect();
        let names: Vec<Vec<u8>> = names;
        keys.push(String::from_utf8(names.concat()).unwrap());
        queue.board(&waiter.buckets);
        batch.add(waiter, known);
    }
    (keys, batch.take_buckets())
}

/// Returns the number of `waiters` that fit into one call.
fn fit(waiters: impl Iterator<Item = LaneRequest>) -> usize {
    let (mut queue, now) = (Queue::default(), Instant::now());
    for waiter in waiters {
        queue.put(waiter, now);
    }
    call(&mut queue, 0).0.len()
}

/// Regression: a call in flight for more than a millisecond was overtaken by the next call, on
/// another connection, with requests for the same buckets.
#[test]
fn a_request_overtook_the_call_before_it_that_had_the_same_bucket() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    let later = |n| now + PATIENCE * n * 2;
    assert_eq!(queue.put(take("a", 1), now), Some(0));
    let (keys, first) = call(&mut queue, 0);
    assert_eq!(keys, ["a"]);
    assert_eq!(queue.put(take_all(&["a", "b"], 1), later(1)), Some(1));
    for key in ["b", "c", "a"] {
        assert_eq!(queue.put(take(key, 1), later(1)), None);
    }
    let (keys, second) = call(&mut queue, 1);
    assert_eq!(keys, ["c"], "a is in flight, and b behind it");
    assert_eq!(queue.put(take("c", 2), later(1)), None);
    assert!(call(&mut queue, 2).0.is_empty());

    // Two carriers each have a bucket of this request in flight. It waits for both, and `d` waits
    // behind it.
    queue.put(take_all(&["b", "c"], 1), later(1));
    queue.put(take("d", 1), later(1));
    assert!(call(&mut queue, 2).0.is_empty());
    queue.release(&first, true);
    let (keys, first) = call(&mut queue, 0);
    assert_eq!(keys, ["ab", "b", "a"]);
    queue.release(&second, true);
    let (keys, second) = call(&mut queue, 1);
    assert_eq!(keys, ["c"]);
    queue.release(&first, true);
    assert_eq!(call(&mut queue, 0).0, ["d"]);
    queue.release(&second, true);
    assert_eq!(call(&mut queue, 1).0, ["bc"]);
}

/// The next carrier sends the requests of a cancelled carrier, in order.
#[test]
fn requests_of_an_abandoned_carrier_are_sent_by_the_next() {
    let (mut queue, now) = (Queue::default(), Instant::now());
    queue.put(take("a", 1), now);
    assert_eq!(call(&mut queue, 0).0, ["a"]);
    let later = now + PATIENCE * 2;
    assert_eq!(queue.put(take_all(&["a", "b"], 1), later), Some(1));
    queue.put(take("a", 2), later);
    assert!(call(&mut queue, 1).0.is_empty());
    queue.end(1);
    queue.abandon(0);
    assert_eq!(queue.put(take("b", 1), later), Some(0));
    assert_eq!(call(&mut queue, 0).0, ["ab", "a", "b"]);
}

#[test]
fn a_call_is_bounded_by_its_cost_in_redis() {
    assert_eq!(fit((0..100).map(|nth| take(&format!("{nth}"), 1))), 29);
    assert_eq!(fit((0..9_000).map(|_| take("hot", 1))), 4_096);
    // Regression: each had a separate run, so none had any weight.
    let costs = fit((0..9_000).map(|nth| take("hot", 1 + nth % 2)));
    assert!((100..400).contains(&costs), "{costs}");
}

#[test]
fn the_first_request_is_sent_at_once_and_later_ones_are_batched() {
    let (lane, now) = (Lane::default(), Instant::now());
    assert_eq!(lane.put(take("a", 1), now), CarrierTask::Carry(0));
    for nth in 0..20 {
        assert_eq!(lane.put(take(&format!("{nth}"), 1), now), CarrierTask::Wait);
    }
    let further = (0..1_000).filter(|nth| {
        let next = lane.put(take(&format!("more {nth}"), 1), now);
        next != CarrierTask::Wait
    });
    assert_eq!(further.count(), CARRIERS_MAX as usize - 1);
}

#[test]
fn identical_requests_share_one_call() {
    let (lane, now) = (Lane::default(), Instant::now());
    let later = now + PATIENCE * 2;
    assert_eq!(lane.put(take("hot", 1), now), CarrierTask::Carry(0));
    for nth in 0..3_000 {
        let waiter = take("hot", 1 + nth % 2);
        assert_eq!(lane.put(waiter, later), CarrierTask::Wait);
    }
}

#[test]
fn a_slow_call_in_flight_is_not_awaited() {
    let (lane, now) = (Lane::default(), Instant::now());
    let later = |n| now + PATIENCE * n + Duration::from_micros(n.into());
    assert_eq!(lane.put(take("a", 1), now), CarrierTask::Carry(0));
    assert_eq!(lane.put(take("b", 1), now + PATIENCE), CarrierTask::Wait);
    assert_eq!(lane.put(take("c", 1), later(1)), CarrierTask::Carry(1));
    assert_eq!(lane.put(take("d", 1), later(1)), CarrierTask::Wait);
    assert_eq!(lane.put(take("e", 1), later(3)), CarrierTask::Carry(2));
}

/// A refund may be sent twice if a repetition has no effect. A return with a take may not: only one
/// of the two could apply.
#[test]
fn an_idempotent_return_is_retried() {
    let mark = Quota::new(1, 1_000_000).build().unwrap();
    let receipt = Receipt::latest(1);
    let by = receipt.at;
    let beside = |request: &mut SlotAsks, quota: Quota, op, mode| {
        request.asks.push(OwnedAsk {
            quota,
            op: RequestOp::Engine(op),
            mode,
            ..request.asks[0]
        });
    };
    let returned = |marks: &[(u64, Quota, LimitMode)]| {
        let mut request = take("a", 1).request;
        request.asks[0].op = RequestOp::Engine(Op::Return { receipt, by });
        for (cost, quota, mode) in marks {
            beside(&mut request, *quota, Op::Take(*cost), *mode);
        }
        request
    };
    let many = Quota::new(2, 1_000_000).build().unwrap();
    let consume = returned(&[(1, mark, LimitMode::Enforce)]);
    assert_eq!(repeat(&[&consume]), RepeatEffect::Consume);
    let all_of_it = returned(&[(2, many, LimitMode::Enforce)]);
    assert_eq!(repeat(&[&consume, &all_of_it]), RepeatEffect::Consume);
    let mut given_back = consume.clone();
    beside(
        &mut given_back,
        mark,
        Op::GiveBack(receipt),
        LimitMode::Enforce,
    );
    for refund in [
        returned(&[]),
        returned(&[(1, mark, LimitMode::Shadow)]),
        returned(&[(1, many, LimitMode::Enforce)]),
        given_back,
    ] {
        assert_eq!(
            repeat(&[&consume, &refund]),
            RepeatEffect::Refund,
            "{refund:?}"
        );
    }
}
