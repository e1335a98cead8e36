//! Which quotas can be represented, and the nearest that can.

use crate::world::{ALGORITHMS, Spec};
use proptest::prelude::*;
use proptest::sample::select;
use tidegate_core::quota::{EXACT_MAX, LOG_UNITS_MAX};
use tidegate_core::{Algorithm, Align, Quota, QuotaError};

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..=10_u64,
        select(&[997, 999_983, 1_000_000, 60_000_000, 2_592_000_000_000][..]),
        (0..=53_u32, 0..=2_u64).prop_map(|(power, less)| (1_u64 << power).saturating_sub(less)),
        any::<u64>(),
    ]
}

fn any_spec() -> impl Strategy<Value = Spec> {
    (
        select(&ALGORITHMS[..]),
        number(),
        number(),
        prop::option::of(number()),
        prop_oneof![3 => Just(0), 1 => number()],
    )
        .prop_map(|(algorithm, amount, period_us, burst, overdraft)| Spec {
            burst: burst.filter(|_| algorithm == Algorithm::TokenBucket),
            overdraft,
            ..Spec::of(algorithm, amount, period_us)
        })
}

/// Returns the spec with the nearest valid number that its error names.
fn mended(spec: Spec, error: QuotaError) -> Option<Spec> {
    match error {
        QuotaError::TooLarge { nearest } if spec.algorithm == Algorithm::TokenBucket => {
            Some(Spec {
                burst: Some(nearest),
                ..spec
            })
        }
        QuotaError::TooLarge { nearest } | QuotaError::LogTooLong { nearest } => Some(Spec {
            amount: nearest,
            ..spec
        }),
        QuotaError::OverdraftTooLarge { nearest } => Some(Spec {
            overdraft: nearest,
            ..spec
        }),
        _ => None,
    }
}

/// Returns the spec with one more than that number.
fn above(spec: Spec, error: QuotaError) -> Option<Spec> {
    let mut mended = mended(spec, error)?;
    match error {
        QuotaError::OverdraftTooLarge { .. } => mended.overdraft += 1,
        QuotaError::TooLarge { .. } if spec.algorithm == Algorithm::TokenBucket => {
            mended.burst = mended.burst.map(|burst| burst + 1);
        }
        _ => mended.amount += 1,
    }
    Some(mended)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(30_000)))]

    #[test]
    fn the_nearest_quota_named_in_an_error_is_valid_and_one_more_is_not(spec in any_spec()) {
        if let Err(error) = spec.build() {
            if let Some(mended) = mended(spec, error) {
                prop_assert!(mended.build().is_ok(), "{error:?}: {mended:?}");
            }
            if let Some(above) = above(spec, error) {
                prop_assert!(above.build().is_err(), "{error:?}: {above:?}");
            }
        }
    }

    /// The guarantee that all stores rely on: no product in any algorithm reaches 2^53.
    /// (Regression: a state left by another quota of the band could be deeper by a tick and its
    /// fraction.)
    #[test]
    fn every_product_of_a_quota_is_exact_in_a_double(spec in any_spec()) {
        let Ok(quota) = spec.build() else { return Ok(()) };
        let (drain, price) = quota.drain_and_price();
        let (capacity, overdraft) = (u128::from(quota.capacity()), u128::from(quota.overdraft()));
        let ticks = u128::from(quota.period_us() / quota.tick_us());
        let largest = match quota.algorithm() {
            Algorithm::TokenBucket => (2 * capacity + overdraft) * u128::from(price) + 2 * u128::from(drain),
            Algorithm::SlidingWindow => 2 * (capacity + overdraft) * ticks,
            _ => capacity + overdraft,
        };
        prop_assert!(quota.amount() == 0 || largest < u128::from(EXACT_MAX), "{largest}");
        prop_assert_eq!(quota.period_us(), spec.period_us);
        prop_assert!(quota.lifetime_us_max() < 1 << 63);
        prop_assert!(quota.amount() == 0 || quota.capacity() > 0);
    }

    /// The quota uses the finest tick that fits.
    #[test]
    fn the_finest_possible_tick_is_used(spec in any_spec()) {
        let Ok(quota) = spec.build() else { return Ok(()) };
        if quota.tick_us() > 1 {
            // In microseconds, amount and period have their own common divisor.
            let gcd = gcd(spec.amount, spec.period_us);
            let price = u128::from(spec.period_us / gcd);
            let (capacity, overdraft) = (u128::from(quota.capacity()), u128::from(spec.overdraft));
            let largest = match quota.algorithm() {
                Algorithm::TokenBucket => {
                    (2 * capacity + overdraft) * price + 2 * u128::from(spec.amount / gcd)
                }
                _ => 2 * (capacity + overdraft) * u128::from(spec.period_us),
            };
            prop_assert!(largest >= u128::from(EXACT_MAX));
        }
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[test]
fn an_invalid_quota_reports_the_reason() {
    use Algorithm::{BucketedWindow, FixedWindow, SlidingLog, SlidingWindow};
    let window = FixedWindow(Align::FirstRequest);
    let day = 86_400_000_000;
    for (spec, error) in [
        (Quota::new(1, 0), QuotaError::NoPeriod),
        (Quota::new(0, 0), QuotaError::NoPeriod),
        (Quota::new(1, EXACT_MAX), QuotaError::PeriodTooLong),
        (Quota::new(1, 10).burst(0), QuotaError::NoBurst),
        (Quota::new(0, 10).burst(5), QuotaError::BurstWithoutRate),
        (
            Quota::new(1, 10).algorithm(window).burst(5),
            QuotaError::BurstOnWindow,
        ),
        (
            Quota::new(0, 10).algorithm(SlidingLog).burst(5),
            QuotaError::BurstOnWindow,
        ),
        (
            Quota::new(LOG_UNITS_MAX + 1, 10).algorithm(SlidingLog),
            QuotaError::LogTooLong {
                nearest: LOG_UNITS_MAX,
            },
        ),
        (
            Quota::new(LOG_UNITS_MAX, 10)
                .overdraft(1)
                .algorithm(SlidingLog),
            QuotaError::OverdraftTooLarge { nearest: 0 },
        ),
        (
            Quota::new(EXACT_MAX, 10).algorithm(BucketedWindow),
            QuotaError::TooLarge {
                nearest: EXACT_MAX - 1,
            },
        ),
        (
            Quota::new(1 << 40, day).algorithm(SlidingWindow),
            QuotaError::TooLarge {
                nearest: (EXACT_MAX - 1) / 2 / 86_400,
            },
        ),
        // 2 × capacity + overdraft + 2 × drain equals 2^53, and must be less.
        (
            Quota::new(1, 1).burst((1 << 52) - 2).overdraft(2),
            QuotaError::OverdraftTooLarge { nearest: 1 },
        ),
        // Neither milliseconds nor seconds divide the period, so there is no other tick to try.
        (Quota::new(999_983, (1 << 52) + 1), QuotaError::TooFine),
        (
            Quota::new(1, 10).overdraft(EXACT_MAX),
            QuotaError::OverdraftTooLarge {
                nearest: 900_719_925_474_096,
            },
        ),
    ] {
        assert_eq!(spec.build(), Err(error), "{spec:?}");
        assert!(!error.to_string().is_empty());
    }
}

#[test]
fn a_quota_too_large_for_microseconds_uses_the_next_tick() {
    let thirty_days = 2_592_000_000_000;
    let tick = |amount, burst| {
        let quota = Quota::new(amount, thirty_days).burst(burst).build();
        quota.map(|quota| quota.tick_us())
    };
    assert_eq!(tick(1, 1_000), Ok(1));
    assert_eq!(tick(1, 1_737), Ok(1));
    assert_eq!(tick(1, 1_738), Ok(1_000));
    assert_eq!(tick(1, 10_000), Ok(1_000));
    assert_eq!(tick(7, 10_000_000), Ok(1_000_000));
    assert!(matches!(
        tick(7, 10_000_000_000),
        Err(QuotaError::TooLarge { .. })
    ));
}

#[test]
fn a_very_slow_refill_still_has_a_wait() {
    let most = match Quota::new(1, 1_000_000).burst(EXACT_MAX).build() {
        Err(QuotaError::TooLarge { nearest }) => nearest,
        other => panic!("it would take 285 million years: {other:?}"),
    };
    let quota = Quota::new(1, 1_000_000).burst(most).build().unwrap();
    assert!(quota.lifetime_us_max() < 1 << 62);
    assert!(quota.lifetime_us_max() > 1 << 61);
}

#[test]
fn bands_differ_only_by_algorithm_and_label_or_period() {
    let id = |spec: tidegate_core::QuotaSpec<'_>| spec.build().unwrap().id();
    let minute = Quota::new(10, 60_000_000);
    let same = [
        minute,
        Quota::new(11, 60_000_000),
        minute.burst(3),
        minute.overdraft(3),
        minute.refundable(true),
    ];
    for spec in same {
        assert_eq!(id(spec), id(minute));
    }
    let mut others = vec![id(minute), id(Quota::new(10, 60_000_001))];
    others.extend(["a", "b"].map(|label| id(minute.label(label))));
    for algorithm in &ALGORITHMS[1..] {
        others.push(id(minute.algorithm(*algorithm)));
        others.push(id(minute.algorithm(*algorithm).label("a")));
    }
    let all = others.len();
    others.sort_unstable();
    others.dedup();
    assert_eq!(others.len(), all);
    // A label replaces the period.
    assert_eq!(id(minute.label("a")), id(Quota::new(1, 5).label("a")));
    // The same in every process and every version, because state outlives both.
    assert_eq!(id(minute).as_u64(), 0x001f_696a_c139_22fd);
}

#[test]
fn a_state_of_an_instant_and_a_small_number_is_narrow() {
    use Algorithm::{BucketedWindow, FixedWindow, SlidingLog, SlidingWindow};
    let fixed = FixedWindow(Align::Clock);
    let narrow = |spec: tidegate_core::QuotaSpec<'_>| spec.build().unwrap().is_narrow();
    assert!(narrow(Quota::new(100, 1_000_000)));
    assert!(narrow(Quota::new(4_096, 1_000_000)));
    assert!(narrow(Quota::new(4_093, 1_000_000)));
    assert!(!narrow(Quota::new(4_099, 1_000_000)));
    assert!(!narrow(Quota::new(1, 1_000_000).refundable(true)));
    assert!(!narrow(Quota::new(1, 2_592_000_000_000).burst(10_000)));
    assert!(narrow(Quota::new(4_095, 10).algorithm(fixed)));
    assert!(!narrow(Quota::new(4_096, 10).algorithm(fixed)));
    assert!(!narrow(
        Quota::new(4_000, 10).overdraft(96).algorithm(fixed)
    ));
    for algorithm in [SlidingWindow, SlidingLog, BucketedWindow] {
        assert!(!narrow(Quota::new(1, 10).algorithm(algorithm)));
    }
}
