//! One hash for all: what becomes of fields whose windows are over, and of the hash.

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
fn fields_whose_windows_are_over_are_swept() {
    let (open, quota) = (open(), minute());
    for i in 0..1_000 {
        open.take(&bucket(i), &quota, 1);
    }
    open.advance(59 * SECOND);
    assert_eq!(open.redis("HLEN rate_limits").int(), 1_000);
    // All of them are over; new ones come, and live for as long as this test looks.
    open.advance(SECOND);
    for i in 1_000..2_000 {
        open.take(&bucket(i), &quota, 1);
    }
    let over = open.redis("HLEN rate_limits").int() - 1_000;
    // Each of them looks at eight by chance, so that hardly any of the old ones is left.
    assert!(over < 20, "{over} are left");
    for i in 1_000..2_000 {
        assert_eq!(
            open.remaining(&bucket(i), &quota),
            2,
            "none that counts is swept"
        );
    }
    open.audit();
}

#[test]
fn the_hash_goes_when_its_latest_window_ends() {
    let (open, quota) = (open(), minute());
    let left = || open.redis("PTTL rate_limits").int() - 3_600_000;
    open.take(&bucket(1), &quota, 1);
    assert!((59_000..=60_000).contains(&left()), "{}", left());
    open.advance(20 * SECOND + 500_000);
    open.take(&bucket(2), &quota, 1);
    // It begins with the next second.
    assert!((59_500..=60_500).contains(&left()), "{}", left());
    // An earlier window does not bring the end forward.
    open.take(&bucket(1), &quota, 1);
    assert!((59_400..=60_500).contains(&left()), "{}", left());
}

#[test]
fn what_is_given_back_may_be_taken_again() {
    let (open, quota) = (open(), minute());
    open.advance(300_000);
    let bucket = bucket(1);
    let ask = |op| Ask {
        op,
        ..Ask::look(bucket.as_bytes(), &quota)
    };
    // A window that is emptied by what opened it is gone.
    let reply = open.world.decide(&[ask(Op::Take(2))]);
    open.advance(1_000);
    let back = open.world.decide_one(ask(Op::GiveBack(
        reply.receipt(0, Op::Take(2)).expect("it was charged"),
    )));
    assert_eq!(back.remaining, 3);
    assert_eq!(open.redis("EXISTS rate_limits").int(), 0);
    // Within the second before the window's own, and in the window.
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
    // From before the window's second nobody can tell any more which window it was: it stays.
    open.world.decide_one(ask(Op::GiveBack(
        second.receipt(0, Op::Take(1)).expect("it was charged"),
    )));
    assert_eq!(open.remaining(&bucket, &quota), 2);
    open.audit();
}

#[test]
fn nothing_is_given_back_to_another_window() {
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
    // The next window begins on the very second at which that one ended.
    open.advance(1);
    assert!(open.world.decide(&[ask(Op::Take(3))]).passed);
    let back = open.world.decide_one(ask(Op::GiveBack(
        last.receipt(0, Op::Take(2)).expect("it was charged"),
    )));
    assert_eq!(back.remaining, 0);
}
