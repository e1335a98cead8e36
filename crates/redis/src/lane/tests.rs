use super::{Asker, Batch, CARRIERS_MAX, Lane, Next, PATIENCE, Waiter};
use crate::request::{Key, OwnedAsk, Request, RequestOp};
use std::hash::BuildHasher;
use std::time::Duration;
use tidegate_core::{Mode, Op, Quota};
use tokio::sync::oneshot;
use tokio::time::Instant;

fn take(key: &str, cost: u64) -> Waiter {
    let mut request = Request::default();
    request.keys.push(Key::from_slice(key.as_bytes()));
    request.asks.push(OwnedAsk {
        key: 0,
        quota: Quota::new(1_000, 1_000_000).build().unwrap(),
        op: RequestOp::Engine(Op::Take(cost)),
        limit: 0,
        mode: Mode::Enforce,
    });
    Waiter {
        identity: foldhash::fast::FixedState::default().hash_one(&request.keys),
        request,
        weight: crate::simple::KEY_WEIGHT,
        is_repeat: false,
        asker: Asker {
            deadline: Instant::now() + Duration::from_mins(1),
            wants_before: false,
            answer: oneshot::channel().0,
        },
    }
}

/// How many of `waiters` fit into one call.
fn fit(waiters: impl Iterator<Item = Waiter>) -> usize {
    let mut batch = Batch::new(false);
    let mut count = 0;
    for waiter in waiters {
        if !batch.has_room(&waiter) {
            return count;
        }
        batch.add(waiter);
        count += 1;
    }
    count
}

#[test]
fn a_call_is_bounded_by_what_redis_has_to_do() {
    assert_eq!(fit((0..100).map(|nth| take(&format!("{nth}"), 1))), 26);
    assert_eq!(fit((0..9_000).map(|_| take("hot", 1))), 4_096);
    // It was: a run of its own for each, and none weighed anything.
    let costs = fit((0..9_000).map(|nth| take("hot", 1 + nth % 2)));
    assert!((100..400).contains(&costs), "{costs}");
}

#[test]
fn the_first_is_sent_at_once_and_the_others_go_with_the_next() {
    let (lane, now) = (Lane::default(), Instant::now());
    assert_eq!(lane.put(take("a", 1), now), Next::Carry);
    for nth in 0..20 {
        assert_eq!(lane.put(take(&format!("{nth}"), 1), now), Next::Wait);
    }
    let further = (0..1_000).filter(|nth| {
        let next = lane.put(take(&format!("more {nth}"), 1), now);
        next == Next::Carry
    });
    assert_eq!(further.count(), usize::from(CARRIERS_MAX) - 1);
}

#[test]
fn however_many_ask_the_same_that_is_one_call() {
    let (lane, now) = (Lane::default(), Instant::now());
    let later = now + PATIENCE * 2;
    assert_eq!(lane.put(take("hot", 1), now), Next::Carry);
    for nth in 0..3_000 {
        let waiter = take("hot", 1 + nth % 2);
        assert_eq!(lane.put(waiter, later), Next::Wait);
    }
}

#[test]
fn a_call_that_is_long_under_way_is_not_waited_for() {
    let (lane, now) = (Lane::default(), Instant::now());
    let later = |n| now + PATIENCE * n + Duration::from_micros(n.into());
    assert_eq!(lane.put(take("a", 1), now), Next::Carry);
    assert_eq!(lane.put(take("b", 1), now + PATIENCE), Next::Wait);
    assert_eq!(lane.put(take("c", 1), later(1)), Next::Carry);
    assert_eq!(lane.put(take("d", 1), later(1)), Next::Wait);
    assert_eq!(lane.put(take("e", 1), later(3)), Next::Carry);
}
