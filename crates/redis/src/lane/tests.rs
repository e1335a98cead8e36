use super::batch::repeat;
use super::{Asker, Batch, CARRIERS_MAX, Lane, Next, PATIENCE, Waiter};
use crate::connection::Repeat;
use crate::request::{Key, OwnedAsk, Request, RequestOp};
use std::hash::BuildHasher;
use std::time::Duration;
use tidegate_core::{Mode, Op, Quota, Receipt};
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

/// Whoever gives back may do so twice by being sent twice, but for a return beside a take that only
/// one can win.
#[test]
fn a_return_is_sent_again_if_it_can_happen_but_once() {
    let mark = Quota::new(1, 1_000_000).build().unwrap();
    let receipt = Receipt::latest(1);
    let by = receipt.at;
    let beside = |request: &mut Request, quota: Quota, op, mode| {
        request.asks.push(OwnedAsk {
            quota,
            op: RequestOp::Engine(op),
            mode,
            ..request.asks[0]
        });
    };
    let returned = |marks: &[(u64, Quota, Mode)]| {
        let mut request = take("a", 1).request;
        request.asks[0].op = RequestOp::Engine(Op::Return { receipt, by });
        for (cost, quota, mode) in marks {
            beside(&mut request, *quota, Op::Take(*cost), *mode);
        }
        request
    };
    let many = Quota::new(2, 1_000_000).build().unwrap();
    let consume = returned(&[(1, mark, Mode::Enforce)]);
    assert_eq!(repeat(&[&consume]), Repeat::Consume);
    let all_of_it = returned(&[(2, many, Mode::Enforce)]);
    assert_eq!(repeat(&[&consume, &all_of_it]), Repeat::Consume);
    let mut given_back = consume.clone();
    beside(&mut given_back, mark, Op::GiveBack(receipt), Mode::Enforce);
    for refund in [
        returned(&[]),
        returned(&[(1, mark, Mode::Shadow)]),
        returned(&[(1, many, Mode::Enforce)]),
        given_back,
    ] {
        assert_eq!(repeat(&[&consume, &refund]), Repeat::Refund, "{refund:?}");
    }
}
