//! Calendar windows with starts of their own.

use std::num::NonZeroU64;
use tidegate_core::quota::CalendarCode;
use tidegate_core::{
    Algorithm, Ask, Bucket, BucketState, LimitMode, Op, Outcome, Quota, Receipt, Timestamp, step,
};

const DAY: u64 = 86_400_000_000;
const HOUR: u64 = DAY / 24;

fn spec(amount: u64) -> Quota {
    let spec = Quota::new(amount, 31 * DAY).algorithm(Algorithm::CalendarWindow);
    let calendar = CalendarCode::new(NonZeroU64::MIN);
    spec.calendar(calendar)
        .overdraft(2)
        .build()
        .expect("a valid quota")
}

fn days(starts: [u64; 4]) -> Quota {
    spec(5).with_starts(starts.map(|day| day * DAY))
}

fn at(us: u64) -> Timestamp {
    Timestamp::from_micros(us)
}

fn take(quota: &Quota, bucket: &mut Bucket, cost: u64, now_us: u64) -> Outcome {
    step::decide_one(quota, bucket, Op::Take(cost), at(now_us))
}

#[test]
fn a_window_of_any_length_ends_at_its_start_to_the_microsecond() {
    let quota = days([100, 131, 159, 190]);
    for (start, end) in [(100, 131), (131, 159), (159, 190)] {
        let mut bucket = Bucket::new(&quota);
        let first = take(&quota, &mut bucket, 5, start * DAY);
        assert!(first.is_allowed());
        assert_eq!(first.reset_us, (end - start) * DAY);
        let last = take(&quota, &mut bucket, 1, end * DAY - 1);
        assert_eq!(last.wait.as_micros(), Some(1));
        // A window of other starts may contain the charge for a day more than the period.
        assert_eq!(bucket.fresh_at(&quota), at((start + 32) * DAY));
        if end < 190 {
            let next = take(&quota, &mut bucket, 1, end * DAY);
            assert!(next.is_allowed() && next.remaining == 4);
        }
    }
}

#[test]
fn a_window_without_charges_has_no_reset() {
    let quota = days([100, 131, 159, 190]);
    let mut bucket = Bucket::new(&quota);
    take(&quota, &mut bucket, 5, 130 * DAY);
    let look = |bucket: &mut Bucket, day: u64| {
        step::decide_one(&quota, bucket, Op::Look, at(day * DAY)).reset_us
    };
    assert_eq!(look(&mut bucket, 130), DAY);
    assert_eq!(look(&mut bucket, 131), 0);
    assert_eq!(
        take(&quota, &mut bucket, 6, 131 * DAY).wait.as_micros(),
        None
    );
}

#[test]
fn a_clock_outside_all_windows_decides_nothing() {
    let (quota, other) = (
        days([100, 131, 159, 190]),
        Quota::new(9, 1_000_000).build().unwrap(),
    );
    let ask = |op, quota| Ask {
        op,
        ..Ask::take(b"a", quota, 1)
    };
    let shadow = Ask {
        mode: LimitMode::Shadow,
        ..ask(Op::Take(1), &quota)
    };
    for day in [99, 190] {
        let now = at(day * DAY);
        assert!(quota.is_outside(now) && !other.is_outside(now));
        let charged = |op| {
            let mut bucket = Bucket::new(&other);
            step::decide_one(&other, &mut bucket, Op::Take(3), now);
            let mut buckets = [bucket.clone(), Bucket::new(&quota)];
            let asks = [ask(op, &other), shadow];
            let reply = step::decide(&asks, &[0, 1], &mut buckets, now);
            assert!(reply.outside && !reply.passed && reply.applied.is_empty());
            assert_eq!((reply.at, reply.outcomes.len()), (now, 2));
            assert!(reply.outcomes.iter().all(|outcome| !outcome.is_allowed()));
            assert_eq!(buckets, [bucket, Bucket::new(&quota)]);
        };
        charged(Op::Take(1));
        charged(Op::Force(1));
        charged(Op::GiveBack(Receipt::by_the_clock(now, 1)));
    }
    let mut buckets = [Bucket::new(&quota)];
    assert!(!step::decide(&[shadow], &[0], &mut buckets, at(100 * DAY)).outside);
}

/// The window moves: units of the part that both share count, others do not.
#[test]
fn other_starts_never_grant_a_window_twice() {
    let utc = days([100, 131, 159, 190]);
    for late in [8 * HOUR, DAY, 20 * DAY] {
        let moved = utc.with_starts([100, 131, 159, 190].map(|day| day * DAY + late));
        // Used in what is the window before under the new starts.
        let mut bucket = Bucket::new(&utc);
        take(&utc, &mut bucket, 5, 131 * DAY);
        let before = take(&moved, &mut bucket.clone(), 1, 131 * DAY + late);
        assert!(before.is_allowed() && before.remaining == 4, "{late}");

        // Used in the window that both share.
        let now = 131 * DAY + late;
        let mut bucket = Bucket::new(&utc);
        take(&utc, &mut bucket, 5, now);
        assert!(bucket.is_beyond_reach(&moved, at(now)));
        bucket.clamp_to_now(&moved, at(now));
        assert!(!bucket.is_beyond_reach(&moved, at(now)));
        let refused = take(&moved, &mut bucket, 1, now);
        assert_eq!(refused.wait.as_micros(), Some(28 * DAY));
        // Past the end of the window that it was charged in.
        assert!(!take(&moved, &mut bucket, 1, 159 * DAY).is_allowed());
        assert!(!take(&moved, &mut bucket, 1, now + 28 * DAY - 1).is_allowed());
        assert!(take(&moved, &mut bucket, 5, now + 28 * DAY).is_allowed());
    }
}

/// A charge takes a window of other starts over, without a refusal first.
#[test]
fn a_charge_moves_the_window_to_its_starts() {
    let utc = days([100, 131, 159, 190]);
    let west = utc.with_starts([100, 131, 159, 190].map(|day| day * DAY + 8 * HOUR));
    let mut bucket = Bucket::new(&utc);
    take(&utc, &mut bucket, 3, 140 * DAY);
    assert_eq!(take(&west, &mut bucket, 1, 150 * DAY).remaining, 1);
    assert_eq!(bucket.fresh_at(&west), at(182 * DAY));
    assert_eq!(
        take(&west, &mut bucket, 2, 159 * DAY).wait.as_micros(),
        Some(8 * HOUR)
    );
}

#[test]
fn a_refund_belongs_to_the_window_that_was_charged() {
    let quota = days([100, 131, 159, 190]);
    let mut bucket = Bucket::new(&quota);
    let first = take(&quota, &mut bucket, 4, 130 * DAY).receipt(at(130 * DAY), 4);
    let refund = |bucket: &mut Bucket, now| {
        step::decide_one(&quota, bucket, Op::GiveBack(first.with_cost(3)), at(now)).remaining
    };
    assert_eq!(refund(&mut bucket.clone(), 130 * DAY + 7), 4);
    take(&quota, &mut bucket, 4, 131 * DAY);
    assert_eq!(refund(&mut bucket, 131 * DAY), 1, "that window is over");
    assert_eq!(
        refund(&mut bucket, 190 * DAY),
        1,
        "outside, nothing changes"
    );
}

#[test]
fn a_forced_charge_stops_at_the_overdraft() {
    let quota = days([100, 131, 159, 190]);
    let mut bucket = Bucket::new(&quota);
    let force =
        |bucket: &mut Bucket, now| step::charge_one(&quota, bucket, Op::Force(6), at(now)).units;
    assert_eq!(force(&mut bucket, 130 * DAY), 6);
    assert_eq!(force(&mut bucket, 130 * DAY), 1);
    assert_eq!(force(&mut bucket, 131 * DAY), 6);
    assert_eq!(force(&mut bucket, 190 * DAY), 0);
}
