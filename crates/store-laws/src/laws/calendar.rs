//! Calendar windows, in every store.

use super::StoreUnderTest;
use std::num::NonZeroU64;
use tidegate_core::quota::CalendarCode;
use tidegate_core::{Algorithm, Ask, LimitMode, OnChange, Op, Quota, Receipt, Wait};

const HOUR_US: u64 = 3_600_000_000;

/// Five starts, in hours after the first.
const HOURS: [u64; 5] = [0, 30, 54, 79, 102];

/// Quotas of three units per window, whose states are of different kinds.
fn quotas() -> impl Iterator<Item = (&'static str, Quota)> {
    let kinds = [
        ("calendar narrow", false, OnChange::Keep),
        ("calendar wide", true, OnChange::Keep),
        ("calendar scaled", false, OnChange::Scale),
    ];
    kinds.into_iter().map(|(label, refundable, on_change)| {
        let spec = Quota::new(3, 24 * HOUR_US).algorithm(Algorithm::CalendarWindow);
        let spec = spec.refundable(refundable).on_change(on_change);
        let calendar = CalendarCode::new(NonZeroU64::MIN);
        let quota = spec.calendar(calendar).label(label).build();
        (label, quota.expect("a valid quota"))
    })
}

/// Starts around the store's present instant: whole seconds, of which the second lies half an hour back.
fn starts(subject: &impl StoreUnderTest) -> [u64; 5] {
    let plain = Quota::new(1, 1_000_000).build().expect("a valid quota");
    let at = subject.decide(&[Ask::look(b"calendar clock", &plain)]).at;
    let second = at.as_micros() / 1_000_000 * 1_000_000 - HOUR_US / 2;
    HOURS.map(|hours| second - HOURS[1] * HOUR_US + hours * HOUR_US)
}

/// The first four of five starts.
fn first_four([first, second, third, fourth, _]: [u64; 5]) -> [u64; 4] {
    [first, second, third, fourth]
}

/// Callers whose clocks differ bring other starts of the same windows. The store's clock picks the window, so
/// that each admits exactly the amount.
pub fn law_18_its_clock_picks_the_window(subject: &impl StoreUnderTest) {
    for (name, quota) in quotas() {
        let bucket = name.as_bytes();
        // The windows of a caller whose clock is in the window before, around, and after the store's.
        let [first, second, third, fourth, fifth] = starts(subject);
        let behind = quota.with_starts([first - 24 * HOUR_US, first, second, third]);
        let late = quota.with_starts([first, second, third, fourth]);
        let ahead = quota.with_starts([second, third, fourth, fifth]);
        let end = third;
        let take = |quota: &Quota| subject.decide(&[Ask::take(bucket, quota, 1)]);
        for quota in [&behind, &late, &ahead] {
            let reply = take(quota);
            assert!(reply.passed && !reply.outside, "{name}");
            let left = end - reply.at.as_micros();
            assert!(
                reply.outcomes.iter().all(|it| it.reset_us == left),
                "{name}"
            );
        }
        for quota in [&behind, &late, &ahead] {
            assert!(!take(quota).passed, "{name}: one too many");
        }
        subject.advance_micros(end - take(&late).at.as_micros() - 1);
        for quota in [&behind, &late, &ahead] {
            let reply = take(quota);
            let waits = reply.outcomes.iter().map(|it| it.wait);
            assert!(waits.eq([Wait::from_micros(1)]), "{name}: {reply:?}");
        }
        subject.advance_micros(1);
        assert!(
            take(&behind).outside,
            "{name}: it knows no window from here on"
        );
        for quota in [&ahead, &late, &ahead] {
            assert!(take(quota).passed, "{name}: the next window");
        }
        assert!(!take(&late).passed, "{name}: one too many");
    }
}

/// Outside the windows of one quota nothing is decided, and no bucket of the request is charged.
pub fn law_18_outside_nothing_is_decided(subject: &impl StoreUnderTest) {
    outside(subject, "outside", |_| {
        vec![Op::Take(1), Op::Force(1), Op::Debit(1), Op::Test(1)]
    });
}

/// Outside the windows of one quota no bucket of the request is refunded: the caller sends it again.
pub fn law_18_outside_nothing_is_refunded(subject: &impl StoreUnderTest) {
    outside(subject, "unrefunded", |receipt| vec![Op::GiveBack(receipt)]);
}

/// Sends each operation on a bucket next to a look at one whose quota knows no window.
fn outside(subject: &impl StoreUnderTest, prefix: &str, ops: impl Fn(Receipt) -> Vec<Op>) {
    let plain = Quota::new(9, 24 * HOUR_US).refundable(true).label("beside");
    let plain = plain.build().expect("a valid quota");
    for (name, quota) in quotas() {
        let bucket = format!("{prefix} {name}");
        let bucket = bucket.as_bytes();
        let taken = subject.decide(&[Ask::take(bucket, &plain, 4)]);
        let receipt = taken.receipt(0, Op::Take(4)).expect("it was charged");
        let past = first_four(starts(subject)).map(|start| start - 400 * HOUR_US);
        for unknown in [quota, quota.with_starts(past)] {
            for op in ops(receipt) {
                for mode in [LimitMode::Enforce, LimitMode::Shadow] {
                    let beside = Ask {
                        op,
                        ..Ask::take(bucket, &plain, 1)
                    };
                    let asks = [
                        beside,
                        Ask {
                            mode,
                            limit: 1,
                            ..Ask::take(bucket, &unknown, 1)
                        },
                    ];
                    let reply = subject.decide(&asks);
                    assert!(reply.outside && !reply.passed, "{name} {op:?}");
                    assert!(
                        reply.applied.is_empty() && reply.outcomes.len() == 2,
                        "{name} {op:?}"
                    );
                    assert!(reply.at >= taken.at, "{name} {op:?}");
                }
            }
            assert!(
                subject.decide(&[Ask::look(bucket, &unknown)]).outside,
                "{name}"
            );
        }
        // A store that reserves may be refunding what it reserved.
        let left = (0..1_000).map(|_| subject.decide_one(Ask::look(bucket, &plain)).remaining);
        assert!(
            left.into_iter().any(|left| left == 5),
            "{name}: neither charged nor refunded"
        );
    }
}

/// A window of other starts may end after the one that was charged. Its charges count also if the
/// first request under the new starts comes after the end of the old window.
pub fn law_18_silence_grants_no_window_twice(subject: &impl StoreUnderTest) {
    for (name, quota) in quotas() {
        let bucket = format!("silent {name}");
        let bucket = bucket.as_bytes();
        let all = starts(subject);
        let first = all[0];
        let quota = quota.with_starts(first_four(all));
        // The window around now began two hours earlier than that of `quota`, and ends four hours later.
        let moved = [0, 28, 58, 82].map(|hours| first + hours * HOUR_US);
        let moved = quota.with_starts(moved);
        let take = |quota: &Quota| subject.decide(&[Ask::take(bucket, quota, 1)]);
        for _ in 0..3 {
            assert!(take(&quota).passed, "{name}");
        }
        let now = subject.decide(&[Ask::look(bucket, &quota)]).at.as_micros();
        subject.advance_micros(quota.starts()[2] + HOUR_US - now);
        let refused = take(&moved);
        let left = moved.starts()[2] - refused.at.as_micros();
        let waits = refused.outcomes.iter().map(|it| it.wait);
        assert!(waits.eq([Wait::from_micros(left)]), "{name}: granted twice");
        subject.advance_micros(left - 1);
        assert!(!take(&moved).passed, "{name}: it ends exactly");
        subject.advance_micros(1);
        assert!(take(&moved).passed, "{name}: the next window");
        // Under the same starts nothing of the old window counts.
        let again = format!("again {name}");
        let again = again.as_bytes();
        let late = starts(subject);
        let same = quota.with_starts(first_four(late));
        for _ in 0..3 {
            assert!(
                subject.decide_one(Ask::take(again, &same, 1)).is_allowed(),
                "{name}"
            );
        }
        let now = subject.decide(&[Ask::look(again, &same)]).at.as_micros();
        subject.advance_micros(late[2] - now);
        let next = quota.with_starts([late[1], late[2], late[3], late[4]]);
        assert!(
            subject.decide_one(Ask::take(again, &next, 3)).is_allowed(),
            "{name}"
        );
    }
}

/// A change of the time zone or the anchor moves the windows. Units of the present window count, wherever it
/// begins, and others do not.
pub fn law_18_moved_windows_are_not_granted_twice(subject: &impl StoreUnderTest) {
    for (name, quota) in quotas() {
        let bucket = format!("moved {name}");
        let (used, before) = (bucket.as_bytes(), format!("before {name}"));
        let all = first_four(starts(subject));
        let quota = quota.with_starts(all);
        let moved = quota.with_starts(all.map(|start| start + 8 * HOUR_US));
        let take = |bucket: &[u8], quota: &Quota| subject.decide_one(Ask::take(bucket, quota, 1));

        // What was charged in a window that is over under the moved starts does not count.
        for _ in 0..3 {
            assert!(take(before.as_bytes(), &quota).is_allowed(), "{name}");
        }
        // The moved window has not begun yet: the one before it is still open, and they share all of this.
        assert!(!take(before.as_bytes(), &moved).is_allowed(), "{name}");
        subject.advance_micros(8 * HOUR_US);
        for _ in 0..3 {
            assert!(
                take(before.as_bytes(), &moved).is_allowed(),
                "{name}: charged before it began"
            );
        }

        for _ in 0..3 {
            assert!(take(used, &quota).is_allowed(), "{name}");
        }
        let refused = take(used, &moved);
        let end = moved.starts()[2];
        let now = subject.decide(&[Ask::look(used, &moved)]).at.as_micros();
        assert_eq!(refused.wait, Wait::from_micros(end - now), "{name}");
        // Past the end of the window that was charged.
        subject.advance_micros(quota.starts()[2] + HOUR_US - now);
        assert!(!take(used, &moved).is_allowed(), "{name}: granted twice");
        subject.advance_micros(7 * HOUR_US - 1);
        assert_eq!(take(used, &moved).wait, Wait::from_micros(1), "{name}");
        subject.advance_micros(1);
        assert!(take(used, &moved).is_allowed(), "{name}: the next window");
    }
}
