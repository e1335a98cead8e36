//! Buckets whose quota changes, in every store.

use super::StoreUnderTest;
use tidegate_core::{Algorithm, Align, Ask, OnChange, Quota, QuotaSpec};

const MINUTE_US: u64 = 60_000_000;

/// Bands whose states are of different kinds.
const KINDS: [(&str, Algorithm, bool); 8] = [
    ("tokens", Algorithm::TokenBucket, false),
    ("refundable", Algorithm::TokenBucket, true),
    ("fixed", Algorithm::FixedWindow(Align::FirstRequest), false),
    ("clock", Algorithm::FixedWindow(Align::Clock), false),
    ("sliding", Algorithm::SlidingWindow, false),
    ("log", Algorithm::SlidingLog, false),
    ("bucketed", Algorithm::BucketedWindow, false),
    ("calendar", Algorithm::CalendarWindow, false),
];

/// One of these bands, with this many units per minute.
#[derive(Clone, Copy)]
struct ChangedQuota {
    label: &'static str,
    algorithm: Algorithm,
    refundable: bool,
    on_change: OnChange,
}

impl ChangedQuota {
    fn all(on_change: OnChange) -> impl Iterator<Item = Self> {
        KINDS
            .into_iter()
            .map(move |(label, algorithm, refundable)| Self {
                label,
                algorithm,
                refundable,
                on_change,
            })
    }

    fn is_log(self) -> bool {
        matches!(
            self.algorithm,
            Algorithm::SlidingLog | Algorithm::BucketedWindow
        )
    }

    fn spec(self, amount: u64) -> QuotaSpec<'static> {
        Quota::new(amount, MINUTE_US)
            .algorithm(self.algorithm)
            .refundable(self.refundable)
            .on_change(self.on_change)
            .label(self.label)
    }

    fn quota(self, amount: u64) -> Quota {
        let quota = self.spec(amount).build();
        quota.expect("a valid quota")
    }
}

/// Takes this many units, one after another if the algorithm has a maximum cost.
fn take(subject: &impl StoreUnderTest, bucket: &[u8], quota: &Quota, units: u64) {
    let mut left = units;
    while left > 0 {
        let cost = left.min(quota.cost_max()).min(50);
        let reply = subject.decide(&[Ask::take(bucket, quota, cost)]);
        assert!(reply.passed, "{units} of {quota:?}");
        left = left.saturating_sub(cost);
    }
}

fn left(subject: &impl StoreUnderTest, bucket: &[u8], quota: &Quota) -> u64 {
    subject.decide_one(Ask::look(bucket, quota)).remaining
}

/// A token bucket owes the same time, a window has counted the same units. Under a smaller quota no
/// client waits longer than an empty bucket takes to fill.
pub fn law_17_usage_survives_a_change(subject: &impl StoreUnderTest) {
    for kind in ChangedQuota::all(OnChange::Keep) {
        let quota = |amount| kind.quota(amount);
        let (bucket, is_tokens) = (
            kind.label.as_bytes(),
            kind.algorithm == Algorithm::TokenBucket,
        );
        take(subject, bucket, &quota(100), 60);
        let name = kind.label;
        let more = if is_tokens { 80 } else { 140 };
        assert_eq!(left(subject, bucket, &quota(200)), more, "{name}");
        let fewer = if is_tokens { 4 } else { 0 };
        assert_eq!(left(subject, bucket, &quota(10)), fewer, "{name}");
        assert_eq!(left(subject, bucket, &quota(100)), 40, "{name}: as it was");
        let cut = quota(10);
        let too_much = Ask::take(bucket, &cut, fewer.saturating_add(1));
        let wait_us = subject.decide_one(too_much).wait.as_micros();
        assert!(wait_us.is_some_and(|us| us <= 2 * MINUTE_US), "{name}");
    }
}

/// A cut burst leaves an empty bucket, and no deeper debt.
pub fn law_17_a_cut_costs_a_full_drain_at_most(subject: &impl StoreUnderTest) {
    for refundable in [false, true] {
        let quota = |burst| {
            let spec = Quota::new(60, MINUTE_US).burst(burst).label("burst");
            let quota = spec.refundable(refundable).build();
            quota.expect("a valid quota")
        };
        let bucket: &[u8] = if refundable { b"cut back" } else { b"cut" };
        take(subject, bucket, &quota(1_000), 1_000);
        let refused = subject.decide_one(Ask::take(bucket, &quota(10), 1));
        assert_eq!(refused.wait.as_micros(), Some(1_000_000));
        subject.advance_micros(1_000_000);
        take(subject, bucket, &quota(10), 1);
    }
}

/// A half-used bucket stays half used, for a larger and a smaller quota, if the band scales.
pub fn law_17_usage_keeps_its_share(subject: &impl StoreUnderTest) {
    for kind in ChangedQuota::all(OnChange::Scale).filter(|kind| !kind.is_log()) {
        let quota = |amount| kind.quota(amount);
        let (bucket, name) = (kind.label.as_bytes(), kind.label);
        take(subject, bucket, &quota(100), 50);
        for (amount, rest) in [(200, 100), (10, 5), (100, 50)] {
            assert_eq!(left(subject, bucket, &quota(amount)), rest, "{name}");
        }
        // Both versions of a policy, in turns.
        take(subject, bucket, &quota(200), 50);
        assert_eq!(left(subject, bucket, &quota(100)), 25, "{name}");
        take(subject, bucket, &quota(100), 25);
        assert_eq!(left(subject, bucket, &quota(200)), 0, "{name}");
    }
}

/// Turning scaling on or off changes no quota. (Unless the store has a different form for bands
/// that scale.)
pub fn law_17_scaling_does_not_reset(subject: &impl StoreUnderTest) {
    for kind in ChangedQuota::all(OnChange::Scale).filter(|kind| !kind.is_log()) {
        let kept = ChangedQuota {
            on_change: OnChange::Keep,
            ..kind
        };
        let (bucket, name) = (kind.label.as_bytes(), kind.label);
        take(subject, bucket, &kind.quota(100), 50);
        assert_eq!(left(subject, bucket, &kept.quota(100)), 50, "{name}");
        take(subject, bucket, &kept.quota(100), 20);
        assert_eq!(left(subject, bucket, &kind.quota(100)), 30, "{name}");
    }
}

/// A new quota begins with a new bucket, and the old quota finds its old state.
pub fn law_17_changed_numbers_reset_if_configured(subject: &impl StoreUnderTest) {
    for kind in ChangedQuota::all(OnChange::Reset) {
        let quota = |amount| kind.quota(amount);
        let (bucket, name) = (kind.label.as_bytes(), kind.label);
        take(subject, bucket, &quota(100), 60);
        assert_eq!(left(subject, bucket, &quota(200)), 200, "{name}");
        take(subject, bucket, &quota(200), 20);
        assert_eq!(left(subject, bucket, &quota(100)), 40, "{name}");
        assert_eq!(left(subject, bucket, &quota(200)), 180, "{name}");
    }
}

/// Ticks and window lengths are a matter of representation. A change keeps the used units.
pub fn law_17_usage_survives_another_representation(subject: &impl StoreUnderTest) {
    let day_us = 1_440 * MINUTE_US;
    for refundable in [false, true] {
        let quota = |amount| {
            let spec = Quota::new(amount, day_us).refundable(refundable);
            let quota = spec.label("ticks").build();
            quota.expect("a valid quota")
        };
        // Microseconds, milliseconds, seconds.
        let amounts = [1_000_000, 1_000_003, 1_000_000_007];
        let ticks = amounts.map(|amount| quota(amount).tick_us());
        assert_eq!(ticks, [1, 1_000, 1_000_000]);
        for (nth, from) in amounts.into_iter().enumerate() {
            let bucket = format!("ticks {refundable} {from}");
            let before = quota(from);
            let half = Ask::take(bucket.as_bytes(), &before, from / 2);
            assert!(subject.decide(&[half]).passed);
            for to in amounts.into_iter().skip(nth).chain(amounts) {
                let left = left(subject, bucket.as_bytes(), &quota(to));
                let slack = to / 40_000;
                let expected = (to / 2).saturating_sub(slack)..=to / 2 + slack;
                assert!(expected.contains(&left), "{left} of {to} after {from}");
            }
        }
    }
    let window = |minutes: u64| {
        let spec = Quota::new(100, minutes * MINUTE_US).algorithm(Algorithm::SlidingWindow);
        let quota = spec.label("lengths").build();
        quota.expect("a valid quota")
    };
    take(subject, b"lengths", &window(1), 60);
    for minutes in [1, 5, 2, 60, 1] {
        assert_eq!(left(subject, b"lengths", &window(minutes)), 40, "{minutes}");
    }
    take(subject, b"lengths", &window(5), 40);
    assert_eq!(left(subject, b"lengths", &window(1)), 0);
}

/// While two versions of a policy are used in turns, as in a rolling deployment, no client gets
/// more than the larger of them allows.
pub fn law_17_two_versions_never_exceed(subject: &impl StoreUnderTest) {
    const MINUTES: u64 = 2;
    for on_change in [OnChange::Keep, OnChange::Scale] {
        for kind in ChangedQuota::all(on_change) {
            if on_change == OnChange::Scale && kind.is_log() {
                continue;
            }
            let bucket = format!("{on_change:?} {}", kind.label);
            let [smaller, larger] = [97, 151].map(|amount| kind.quota(amount));
            let mut passed = 0_u64;
            let steps = MINUTES * 600;
            for step in 0..steps {
                let quota = if step % 3 == 0 { &larger } else { &smaller };
                let reply = subject.decide(&[Ask::take(bucket.as_bytes(), quota, 1)]);
                passed = passed.saturating_add(u64::from(reply.passed));
                subject.advance_micros(MINUTES * MINUTE_US / steps);
            }
            let most = 151 * (MINUTES + 1);
            assert!(passed <= most, "{bucket}: {passed}");
            // Scaling a count rounds it up, at every turn.
            assert!(passed >= 48, "{bucket}: {passed}");
        }
    }
}
