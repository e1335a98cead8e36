use super::*;
use tidegate_core::{Bucket, BucketState, Timestamp};

const ALGORITHMS: [Algorithm; Algorithm::RATES.len()] = Algorithm::RATES;

const PERIOD_US: u64 = 1_000_000;

fn quota(algorithm: Algorithm) -> Quota {
    let spec = Quota::new(100, PERIOD_US).algorithm(algorithm);
    spec.build().expect("a valid quota")
}

/// Returns the admissions of two and a half periods, with a request every millisecond.
fn greedy(quota: &Quota) -> History {
    let mut history = History::default();
    let mut bucket = Bucket::new(quota);
    for at_us in (7_000_300_000_u64..7_002_800_000).step_by(1_000) {
        let now = Timestamp::from_micros(at_us);
        while bucket.wait(quota, 1, now).is_none() {
            bucket.charge(quota, 1, now);
            history.admit(at_us, 1);
        }
    }
    history
}

#[test]
fn using_the_whole_quota_is_not_over() {
    for quota in ALGORITHMS.map(quota) {
        let history = greedy(&quota);
        assert!(history.admitted() >= 200, "{quota:?}");
        assert_eq!(history.over(&quota), 0, "{quota:?}");
    }
}

/// Mutants: one admission too many is always detected.
#[test]
fn one_admission_too_many_is_detected() {
    for quota in ALGORITHMS.map(quota) {
        let history = greedy(&quota);
        let (first, last) = history.span_us().expect("much was admitted");
        let middle = history.admitted.get(history.admitted.len() / 2);
        let (middle, _) = *middle.expect("much was admitted");
        for at_us in [first, middle, last] {
            let mut mutant = history.clone();
            mutant.admit(at_us, 1);
            assert!(mutant.over(&quota) >= 1, "{quota:?} at {at_us}");
        }
    }
}

#[test]
fn a_lost_bucket_is_over_by_its_capacity() {
    for quota in [Algorithm::TokenBucket, Algorithm::SlidingLog].map(quota) {
        let mut history = greedy(&quota);
        let (first, last) = history.span_us().expect("much was admitted");
        // Lost twice, used up twice.
        for at_us in [first + PERIOD_US / 2, last] {
            history.merge(History {
                admitted: vec![(at_us, 1); 100],
                ..History::default()
            });
        }
        assert_eq!(history.over(&quota), 200, "{quota:?}");
    }
}

#[test]
fn refused_and_unknown_requests_never_count() {
    let quota = quota(Algorithm::TokenBucket);
    let mut history = greedy(&quota);
    let admitted = history.admitted();
    for _ in 0..50 {
        let lost = StoreError::transient("lost").with_kind(StoreErrorKind::Timeout);
        history.record(1, &Err(lost));
    }
    assert_eq!(history.over(&quota), 0);
    assert_eq!(history.admitted(), admitted);
    assert_eq!(history.unknown(), [StoreErrorKind::Timeout; 50]);
}

#[test]
fn millisecond_instants_may_be_over_by_one_millisecond_of_refill() {
    let quota = quota(Algorithm::TokenBucket);
    let mut history = greedy(&quota);
    let (_, last) = history.span_us().expect("much was admitted");
    history.admit(last, 1);
    assert_eq!(history.over(&quota), 1);
    assert_eq!(history.over_with_skew(&quota, 10_000), 0);
    history.admit(last, 1);
    assert_eq!(history.over_with_skew(&quota, 10_000), 1);
}
