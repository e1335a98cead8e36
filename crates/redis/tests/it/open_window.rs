//! One hash for all buckets: expired fields, and the expiry of the hash.

use crate::open_kit::{Open, built, layout};
use tidegate_core::{Algorithm, Align, Ask, Op, Quota};
use tidegate_testkit::laws::StoreUnderTest;

const SECOND: u64 = 1_000_000;

fn minute() -> Quota {
    let spec = Quota::new(3, 60 * SECOND);
    built(spec.algorithm(Algorithm::FixedWindow(Align::FirstRequest)))
}

fn open() -> Open {
    Open::new(layout("p/l", "rate_limits", &[]))
}

fn bucket(i: u64) -> String {
    format!("p/l/user:{i}")
}

#[test]
fn fields_of_expired_windows_are_removed() {
    let (open, quota) = (open(), minute());
    for i in 0..1_000 {
        open.take(&bucket(i), &quota, 1);
    }
    open.advance(59 * SECOND);
    assert_eq!(open.redis("HLEN rate_limits").int(), 1_000);
    // All have expired. The new ones live for the rest of this test.
    open.advance(SECOND);
    for i in 1_000..2_000 {
        open.take(&bucket(i), &quota, 1);
    }
    let over = open.redis("HLEN rate_limits").int() - 1_000;
    // Each request checks eight fields at random, so hardly any of the old ones is left.
    assert!(over < 20, "{over} are left");
    for i in 1_000..2_000 {
        assert_eq!(
            open.remaining(&bucket(i), &quota),
            2,
            "no live window is removed"
        );
    }
    open.audit();
}

#[test]
fn the_hash_expires_with_its_latest_window() {
    let (open, quota) = (open(), minute());
    let left = || open.redis("PTTL rate_limits").int() - 3_600_000;
    open.take(&bucket(1), &quota, 1);
    assert!((59_000..=60_000).contains(&left()), "{}", left());
    open.advance(20 * SECOND + 500_000);
    open.take(&bucket(2), &quota, 1);
    // The window begins with the next second.
    assert!((59_500..=60_500).contains(&left()), "{}", left());
    // An earlier window does not shorten the expiry.
    open.take(&bucket(1), &quota, 1);
    assert!((59_400..=60_500).contains(&left()), "{}", left());
}

#[test]
fn refunded_units_can_be_taken_again() {
    let (open, quota) = (open(), minute());
    open.advance(300_000);
    let bucket = bucket(1);
    let ask = |op| Ask {
        op,
        ..Ask::look(bucket.as_bytes(), &quota)
    };
    // A window that a refund empties is removed.
    let reply = open.world.decide(&[ask(Op::Take(2))]);
    open.advance(1_000);
    let back = open.world.decide_one(ask(Op::GiveBack(
        reply.receipt(0, Op::Take(2)).expect("it was charged"),
    )));
    assert_eq!(back.remaining, 3);
    assert_eq!(open.redis("EXISTS rate_limits").int(), 0);
    // Within the second before the window's start, and in the window.
    let first = open.world.decide(&[ask(Op::Take(1))]);
    open.advance(100_000);
    let second = open.world.decide(&[ask(Op::Take(1))]);
    open.advance(100_000);
    open.world.decide_one(ask(Op::GiveBack(
        first.receipt(0, Op::Take(1)).expect("it was charged"),
    )));
    assert_eq!(open.remaining(&bucket, &quota), 2);
    open.advance(2 * SECOND);
    let third = open.world.decide(&[ask(Op::Take(1))]);
    open.advance(SECOND);
    open.world.decide_one(ask(Op::GiveBack(
        third.receipt(0, Op::Take(1)).expect("it was charged"),
    )));
    assert_eq!(open.remaining(&bucket, &quota), 2);
    // A receipt from before the window's second may belong to another window: the units stay
    // charged.
    open.world.decide_one(ask(Op::GiveBack(
        second.receipt(0, Op::Take(1)).expect("it was charged"),
    )));
    assert_eq!(open.remaining(&bucket, &quota), 2);
    open.audit();
}

#[test]
fn refunds_never_go_to_another_window() {
    let (open, quota) = (open(), minute());
    let bucket = bucket(1);
    let ask = |op| Ask {
        op,
        ..Ask::look(bucket.as_bytes(), &quota)
    };
    open.world.decide(&[ask(Op::Take(1))]);
    open.advance(60 * SECOND - 1);
    let last = open.world.decide(&[ask(Op::Take(2))]);
    assert!(last.passed);
    // The next window begins on the same second as the end of the last one.
    open.advance(1);
    assert!(open.world.decide(&[ask(Op::Take(3))]).passed);
    let back = open.world.decide_one(ask(Op::GiveBack(
        last.receipt(0, Op::Take(2)).expect("it was charged"),
    )));
    assert_eq!(back.remaining, 0);
}
