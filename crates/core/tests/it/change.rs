//! Buckets whose quota changes.

use proptest::prelude::*;
use tidegate_core::{
    Algorithm, Align, Bucket, BucketState, OnChange, Op, Quota, QuotaError, Timestamp, step,
};

const START_US: u64 = 1_700_000_000_000_000;

/// The numbers of a quota with ticks of microseconds, milliseconds and seconds.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    amount: u64,
    period_us: u64,
    burst: u64,
}

impl Numbers {
    fn bucket(self, on_change: OnChange) -> Option<Quota> {
        let spec = Quota::new(self.amount, self.period_us).burst(self.burst);
        spec.on_change(on_change).label("band").build().ok()
    }

    /// The time an empty bucket takes to fill, in microseconds, rounded up.
    fn full_us(self) -> u64 {
        let product = u128::from(self.burst) * u128::from(self.period_us);
        u64::try_from(product.div_ceil(self.amount.into())).unwrap()
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let usual = (1..=5_000_u64, 1..=100_u64, 1..=10_000_u64).prop_map(|(amount, tenths, burst)| {
        let period_us = tenths * 100_000;
        Numbers {
            amount,
            period_us,
            burst,
        }
    });
    // Amounts without a common divisor with a day are too large for microseconds.
    let coarse = (1_000_000..=1_000_200_u64, 1..=30_u64).prop_map(|(amount, days)| Numbers {
        amount,
        period_us: days * 86_400_000_000,
        burst: amount,
    });
    let coarsest = (1_000_000_000..=1_000_000_200_u64).prop_map(|amount| Numbers {
        amount,
        period_us: 86_400_000_000,
        burst: amount,
    });
    prop_oneof![4 => usual, 2 => coarse, 1 => coarsest]
}

/// Charges in thousandths of the burst, and the pause after each.
fn takes() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..=700_u64, 0..=200_u64), 1..12)
}

/// Returns a bucket after these charges, and the instant of the last one.
fn used(quota: &Quota, numbers: Numbers, takes: &[(u64, u64)]) -> (Bucket, Timestamp) {
    let (mut bucket, mut now) = (Bucket::new(quota), START_US);
    for (part, later) in takes {
        let cost = numbers.burst * part / 1_000;
        step::decide_one(
            quota,
            &mut bucket,
            Op::Take(cost),
            Timestamp::from_micros(now),
        );
        now += u64::try_from(u128::from(numbers.full_us()) * u128::from(*later) / 1_000).unwrap();
    }
    (bucket, Timestamp::from_micros(now))
}

/// Returns the state as a store converts it to the new quota.
fn taken_over(bucket: &Bucket, from: &Quota, to: &Quota, now: Timestamp) -> Bucket {
    let mut adapted = bucket.clone().adapted(from.basis(), to, now).unwrap();
    adapted.clamp_to_now(to, now);
    adapted
}

/// A bucket that owes less than a tick may owe one or two more: from its start and from the read.
fn slack_us(one: &Quota, other: &Quota) -> u64 {
    2 * one.tick_us().max(other.tick_us())
}

proptest! {
    /// The debt is a time, and it is kept for any numbers. It grows by rounding at most, and
    /// shrinks only where a smaller quota's empty bucket cannot owe as much.
    #[test]
    fn a_token_bucket_keeps_its_debt_in_time_and_owes_at_most_a_full_drain(
        before in numbers(),
        after in numbers(),
        takes in takes(),
    ) {
        let (Some(old), Some(new)) = (before.bucket(OnChange::Keep), after.bucket(OnChange::Keep))
        else {
            return Ok(());
        };
        prop_assert_eq!(old.id(), new.id());
        let (bucket, now) = used(&old, before, &takes);
        let owed = bucket.reading(&old, now).reset_us;
        let kept = taken_over(&bucket, &old, &new, now).reading(&new, now);
        let slack = slack_us(&old, &new);
        prop_assert!(kept.reset_us + slack >= owed.min(after.full_us()));
        prop_assert!(kept.reset_us <= (owed + slack).min(after.full_us() + slack));
        // No more passes at once than the undebted time refills.
        let free = after.full_us().saturating_sub(owed) + slack;
        let most = u128::from(free + 1) * u128::from(after.amount) / u128::from(after.period_us);
        prop_assert!(u128::from(kept.remaining) <= most);
    }

    /// Two versions that alternate on one bucket, as during a rolling update, never shrink a debt
    /// by reading it.
    #[test]
    fn alternating_between_quotas_gains_nothing(
        before in numbers(),
        after in numbers(),
        takes in takes(),
        scales in any::<bool>(),
    ) {
        let on_change = if scales { OnChange::Scale } else { OnChange::Keep };
        let (Some(old), Some(new)) = (before.bucket(on_change), after.bucket(on_change)) else {
            return Ok(());
        };
        let (bucket, now) = used(&old, before, &takes);
        let owed = bucket.reading(&old, now).reset_us;
        let there = taken_over(&bucket, &old, &new, now);
        let back = taken_over(&there, &new, &old, now).reading(&old, now);
        let full = if scales { before.full_us() } else { after.full_us() };
        let slack = slack_us(&old, &new);
        prop_assert!(back.reset_us + slack >= owed.min(full).min(before.full_us()));
    }

    /// A half-used bucket stays half used.
    #[test]
    fn a_scaled_token_bucket_keeps_its_used_share(
        before in numbers(),
        after in numbers(),
        takes in takes(),
    ) {
        let (Some(old), Some(new)) = (before.bucket(OnChange::Scale), after.bucket(OnChange::Scale))
        else {
            return Ok(());
        };
        let (bucket, now) = used(&old, before, &takes);
        let owed = u128::from(bucket.reading(&old, now).reset_us);
        let (of, new_of) = (u128::from(before.full_us()), u128::from(after.full_us()));
        let share = u64::try_from((owed.saturating_sub(1) * new_of / of).min(new_of)).unwrap();
        let kept = taken_over(&bucket, &old, &new, now).reading(&new, now).reset_us;
        let tick = slack_us(&old, &new);
        prop_assert!(kept + tick >= share, "{kept} of {share}");
        // A tick of the old quota in units of the new one, plus the rounding.
        let grain = new_of * u128::from(tick) * 3 / of + new_of / (1 << 21) + u128::from(3 * tick);
        prop_assert!(u128::from(kept) <= u128::from(share) + grain, "{kept} of {share}");
    }

    /// Windows keep their counts, or scale them.
    #[test]
    fn windows_keep_their_counts(
        before in 1..=1_000_000_u64,
        after in 1..=1_000_000_u64,
        part in 0..=1_000_u64,
        sliding in any::<bool>(),
        scales in any::<bool>(),
    ) {
        let algorithm = if sliding {
            Algorithm::SlidingWindow
        } else {
            Algorithm::FixedWindow(Align::FirstRequest)
        };
        let on_change = if scales { OnChange::Scale } else { OnChange::Keep };
        let quota = |amount| {
            let spec = Quota::new(amount, 60_000_000).algorithm(algorithm);
            spec.on_change(on_change).build().unwrap()
        };
        let (old, new) = (quota(before), quota(after));
        prop_assert_eq!(old.id(), new.id());
        let now = Timestamp::from_micros(START_US);
        let (mut bucket, cost) = (Bucket::new(&old), before * part / 1_000);
        step::decide_one(&old, &mut bucket, Op::Take(cost), now);
        let counted = if scales { (cost * after).div_ceil(before) } else { cost };
        let reading = taken_over(&bucket, &old, &new, now).reading(&new, now);
        prop_assert_eq!(reading.remaining, after.saturating_sub(counted));
    }

    /// Units counted in windows of one length keep counting in windows of another length for as
    /// long as if they had been counted there.
    #[test]
    fn a_resized_sliding_window_drops_nothing_early(
        periods in (1..=100_u64, 1..=100_u64),
        gaps in prop::collection::vec(0..=300_u64, 1..40),
        wait in 0..=200_u64,
    ) {
        let quota = |tenths: u64| {
            let spec = Quota::new(1_000, tenths * 100_000).algorithm(Algorithm::SlidingWindow);
            spec.label("band").build().unwrap()
        };
        // Windows of the same length are not converted: the state stays as it is until it is read.
        prop_assume!(periods.0 != periods.1);
        let (old, new) = (quota(periods.0), quota(periods.1));
        prop_assert_eq!(old.id(), new.id());
        let (mut bucket, mut now, mut taken) = (Bucket::new(&old), START_US, Vec::new());
        for gap in gaps {
            now += gap * 10_000;
            step::decide_one(&old, &mut bucket, Op::Take(1), Timestamp::from_micros(now));
            taken.push(now);
        }
        now += wait * 10_000;
        let at = Timestamp::from_micros(now);
        let Bucket::Sliding(window) = taken_over(&bucket, &old, &new, at) else {
            panic!("the state is converted");
        };
        let begin = |quota: &Quota, back: u64| {
            let period = quota.period_us();
            (now / period).saturating_sub(back) * period
        };
        let since = |start: u64| u64::try_from(taken.iter().filter(|it| **it >= start).count()).unwrap();
        // The units that the old windows still count.
        let known = begin(&old, 1);
        prop_assert_eq!(window.index, now / new.period_us());
        prop_assert!(window.current >= since(begin(&new, 0).max(known)));
        prop_assert!(window.current + window.previous >= since(begin(&new, 1).max(known)));
    }

    /// Different numbers make a different band; the same numbers make the same band.
    #[test]
    fn a_resetting_quota_is_identified_by_its_numbers(before in numbers(), after in numbers()) {
        let (Some(old), Some(new)) = (before.bucket(OnChange::Reset), after.bucket(OnChange::Reset))
        else {
            return Ok(());
        };
        let same = (before.amount, before.period_us, before.burst)
            == (after.amount, after.period_us, after.burst);
        prop_assert_eq!(old.id() == new.id(), same);
        prop_assert_eq!(old.family(), new.family());
        prop_assert_eq!(old.family(), before.bucket(OnChange::Keep).unwrap().id());
    }
}

#[test]
fn the_queue_length_does_not_reset_a_bucket() {
    let spec = Quota::new(10, 1_000_000).on_change(OnChange::Reset);
    let id = |spec: tidegate_core::QuotaSpec<'_>| spec.build().unwrap().id();
    assert_eq!(id(spec), id(spec.queue(5)));
    assert_ne!(id(spec), id(spec.overdraft(5)));
    assert_eq!(id(spec), id(spec.burst(10)));
}

#[test]
fn a_log_of_single_units_cannot_be_scaled() {
    for algorithm in [Algorithm::SlidingLog, Algorithm::BucketedWindow] {
        let spec = Quota::new(10, 1_000_000).algorithm(algorithm);
        let scaled = spec.on_change(OnChange::Scale).build();
        assert_eq!(scaled, Err(QuotaError::ScaledLog));
    }
}

#[test]
fn these_tests_cover_a_change_of_the_tick() {
    let tick = |amount, period_us| {
        let numbers = Numbers {
            amount,
            period_us,
            burst: amount,
        };
        numbers.bucket(OnChange::Keep).unwrap().tick_us()
    };
    assert_eq!(tick(1_000_000, 86_400_000_000), 1);
    assert_eq!(tick(1_000_003, 86_400_000_000), 1_000);
    assert_eq!(tick(1_000_000_007, 86_400_000_000), 1_000_000);
}
