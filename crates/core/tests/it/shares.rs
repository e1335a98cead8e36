//! Parts of a quota, and quotas that can be refunded.

use crate::world::{algorithm, spec_of};
use proptest::prelude::*;
use std::num::NonZeroU32;
use tidegate_core::quota::{EXACT_MAX, QuotaNumbers};
use tidegate_core::{Algorithm, Align, Bucket, BucketState, Op, Quota, Timestamp, step};

const MINUTE: u64 = 60_000_000;

fn number(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).expect("not zero")
}

#[test]
fn a_half_share_halves_the_rate_and_the_burst_rounded_down() {
    let quota = Quota::new(7, 1_000_000).burst(5).build().unwrap();
    let half = quota.at_share(number(1), number(2));
    assert_eq!(half.capacity(), 2);
    assert_eq!(half.drain_and_price(), (7, 2_000_000));
    assert_eq!(half.id(), quota.id());
}

#[test]
fn a_share_has_at_least_one_unit() {
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::FixedWindow(Align::Clock),
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
        Algorithm::BucketedWindow,
    ] {
        let quota = Quota::new(3, MINUTE).algorithm(algorithm).build().unwrap();
        let part = quota.at_share(number(1), number(1_000));
        assert_eq!(part.capacity(), 1, "{algorithm:?}");
        assert_eq!((part.id(), part.period_us()), (quota.id(), MINUTE));
        let nothing = Quota::new(0, MINUTE).algorithm(algorithm).build().unwrap();
        assert_eq!(nothing.at_share(number(1), number(2)).capacity(), 0);
    }
}

#[test]
fn a_share_above_one_is_the_whole_quota() {
    let quota = Quota::new(3, MINUTE).build().unwrap();
    assert_eq!(quota.at_share(number(9), number(3)), quota);
}

#[test]
fn usage_survives_a_change_of_the_share() {
    let quota = Quota::new(60, MINUTE).build().unwrap();
    let now = Timestamp::from_millis(1_700_000_000_000);
    let mut bucket = Bucket::new(&quota);
    for instances in [4, 2, 7, 1, 3] {
        let part = quota.at_share(number(1), number(instances));
        while step::decide_one(&part, &mut bucket, Op::Take(1), now).is_allowed() {}
        for others in 1..9 {
            let part = quota.at_share(number(1), number(others));
            assert!(
                !bucket.is_beyond_reach(&part, now),
                "{instances}, then {others}"
            );
        }
        let whole = bucket.reading(&quota, now).remaining;
        assert!(whole < u64::from(instances), "{whole} after {instances}");
    }
}

#[test]
fn refundability_does_not_change_the_band() {
    let narrow = Quota::new(60, MINUTE).build().unwrap();
    let wide = narrow.with_refundable(true);
    assert!(narrow.is_narrow() && !narrow.is_refundable());
    assert!(!wide.is_narrow() && wide.is_refundable());
    assert_eq!(wide.id(), narrow.id());
    assert_eq!(wide.with_refundable(false), narrow);
    assert_eq!(
        wide,
        Quota::new(60, MINUTE).refundable(true).build().unwrap()
    );
}

proptest! {
    /// For any quota and share: never more than the share, never more than fits, and within a
    /// thousandth below it where there is room.
    #[test]
    fn a_part_of_a_quota_is_valid_and_never_more(
        amount in prop_oneof![1..1_000_u64, 1..10_000_000_u64, 1..1_u64 << 40],
        period_us in prop_oneof![Just(1_000_000), Just(MINUTE), Just(86_400_000_000), 1..1_u64 << 45],
        burst in prop_oneof![1..1_000_u64, 1..1_u64 << 30],
        numerator in 1..1_000_000_u32,
        denominator in prop_oneof![1..64_u32, Just(1_000_000)],
    ) {
        let Ok(quota) = Quota::new(amount, period_us).burst(burst).build() else {
            return Ok(());
        };
        let numerator = numerator.min(denominator);
        let part = quota.at_share(number(numerator), number(denominator));
        let (drain, price) = part.drain_and_price();
        let (whole_drain, whole_price) = quota.drain_and_price();
        let capacity = part.capacity();
        prop_assert!(2 * u128::from(capacity) * u128::from(price) + u128::from(drain) < u128::from(EXACT_MAX));
        prop_assert!(part.lifetime_us_max() <= 1 << 62);
        prop_assert_eq!((part.id(), part.tick_us()), (quota.id(), quota.tick_us()));
        let exact = u128::from(quota.capacity()) * u128::from(numerator) / u128::from(denominator);
        prop_assert!(u128::from(capacity) <= exact.max(1));
        // Compare drain / price with whole_drain × numerator / (whole_price × denominator).
        let ours = u128::from(drain) * u128::from(whole_price) * u128::from(denominator);
        let theirs = u128::from(whole_drain) * u128::from(numerator) * u128::from(price);
        prop_assert!(ours <= theirs, "{drain}/{price} of {whole_drain}/{whole_price}");
        if quota.is_narrow() && denominator < 64 && numerator == 1 {
            prop_assert!(part.is_narrow());
        }
    }
}

fn any_quota() -> impl Strategy<Value = Quota> {
    let spec = spec_of(algorithm());
    (spec, any::<[bool; 3]>(), 1..=9_u32).prop_filter_map(
        "must be representable",
        |(spec, [lends, queues, shared], parts)| {
            let quota = spec.build().ok()?;
            let quota = if queues { quota.queueing() } else { quota };
            let quota = if lends {
                quota.with_lending(true)
            } else {
                quota
            };
            Some(if shared {
                quota.at_share(number(1), number(parts))
            } else {
                quota
            })
        },
    )
}

fn any_size() -> impl Strategy<Value = u64> {
    any::<u64>().prop_map(|number| number >> (number % 64))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(5_000)))]

    #[test]
    fn a_quota_rebuilt_from_its_numbers_is_equal(quota in any_quota()) {
        prop_assert_eq!(Quota::try_from(QuotaNumbers::from(quota)), Ok(quota));
    }

    /// Any numbers are either refused or form exact products only.
    #[test]
    fn any_numbers_build_a_quota_or_an_error(
        quota in any_quota(),
        which in 0..10_usize,
        number in any_size(),
    ) {
        let mut numbers = QuotaNumbers::from(quota);
        let fields = [
            &mut numbers.amount,
            &mut numbers.tick_us,
            &mut numbers.period,
            &mut numbers.capacity,
            &mut numbers.overdraft,
            &mut numbers.queue,
            &mut numbers.drain,
            &mut numbers.price,
            &mut numbers.ahead_max,
            &mut numbers.id,
        ];
        *fields.into_iter().nth(which).unwrap() = number;
        if let Ok(read) = Quota::try_from(numbers) {
            let (drain, price) = read.drain_and_price();
            let owed = u128::from(read.capacity()) * 2 + u128::from(read.overdraft());
            let debt = owed * u128::from(price) + 2 * u128::from(drain);
            prop_assert!(debt < u128::from(EXACT_MAX) || read.brim() == 0, "{read:?}");
            prop_assert!(read.lifetime_us_max() <= 1 << 63, "{read:?}");
            let now = Timestamp::from_millis(1_700_000_000_000);
            let mut bucket = Bucket::new(&read);
            for op in [Op::Take(1), Op::Force(u64::MAX), Op::Test(1)] {
                step::decide_one(&read, &mut bucket, op, now);
            }
        }
    }
}
