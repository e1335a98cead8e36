//! The stored state, and its view for operators.

use crate::shop::{MINUTE_US, START, ask, log, narrow, store, take, wide, window};
use tidegate_core::{Ask, BucketState, LimitMode, Op, Quota, Wait};

#[test]
fn a_bucket_is_inspected_exactly_as_long_as_it_matters() {
    for quota in [narrow(3), wide(3), window(3), log(3)] {
        let (store, clock) = store(100);
        assert!(store.inspect_now(b"api/ip:10.0.1", &quota).is_none());
        let outcome = take(&store, "api", 1, &quota);
        let kept = store.inspect_now(b"api/ip:10.0.1", &quota).unwrap();
        assert_eq!(kept.at, START);
        assert_eq!(kept.bucket.reading(&quota, START).remaining, 2);
        clock.advance_micros(outcome.reset_us - 1);
        assert!(store.inspect_now(b"api/ip:10.0.1", &quota).is_some());
        assert_eq!(store.stats().buckets, 1);
        clock.advance_micros(1);
        assert!(
            store.inspect_now(b"api/ip:10.0.1", &quota).is_none(),
            "{quota:?}"
        );
        assert!(!store.reset_now(b"api/ip:10.0.1", &quota), "{quota:?}");
    }
}

/// Records stay in memory until their room is needed, but do not count.
#[test]
fn a_full_record_does_not_count_as_a_bucket() {
    let (store, clock) = store(100);
    for subject in 0..20 {
        take(&store, "api", subject, &wide(3));
    }
    assert_eq!(store.stats().buckets, 20);
    clock.advance_micros(2 * MINUTE_US);
    assert_eq!(store.stats().buckets, 0);
}

#[test]
fn reads_and_refusals_store_nothing() {
    let (store, clock) = store(100);
    let kinds = [narrow(3), wide(3), window(3), log(3)];
    for quota in &kinds {
        for op in [Op::Look, Op::Take(0), Op::Take(4), Op::Force(0)] {
            store.decide_one(&Ask {
                op,
                ..Ask::look(b"a", quota)
            });
        }
        store.decide_now(&[Ask::look(b"a", quota), Ask::take(b"b", quota, 4)]);
    }
    let looks: Vec<Ask<'_>> = kinds.iter().map(|quota| Ask::look(b"a", quota)).collect();
    store.decide_now(&looks);
    clock.advance_micros(1);
    let stats = store.stats();
    assert_eq!((stats.buckets, stats.record_bytes), (0, 0));
}

/// The first refusal clamps a state that is further ahead than its quota allows, on each code path.
/// Otherwise the reported wait would never end.
#[test]
fn the_state_of_a_cut_quota_is_clamped_by_the_first_refusal() {
    let [large, small] = [1_000, 10].map(|burst| {
        let spec = Quota::new(1, 1_000_000).burst(burst).label("band");
        [false, true].map(|refundable| spec.refundable(refundable).build().unwrap())
    });
    for (large, small) in large.iter().zip(&small) {
        for several in [false, true] {
            let (store, clock) = store(100);
            for bucket in [b"a", b"b"] {
                assert!(
                    store
                        .decide_one(&Ask::take(bucket, large, 1_000))
                        .is_allowed()
                );
            }
            let asks = [b"a", b"b"].map(|bucket| Ask::take(bucket, small, 1));
            let asks = if several { &asks[..] } else { &asks[..1] };
            let refused = store.decide_now(asks);
            assert_eq!(refused.outcomes[0].wait, Wait::from_micros(1_000_000));
            clock.advance_micros(1_000_000);
            assert!(store.decide_now(asks).passed, "{several}: {small:?}");
        }
    }
}

/// Alone in its request, a refused forced shadow ask is not charged either.
#[test]
fn a_forced_shadow_alone_is_charged_only_if_it_would_allow() {
    let spec = Quota::new(1, MINUTE_US).overdraft(5);
    for spec in [spec, spec.refundable(true)] {
        let quota = spec.build().unwrap();
        let (store, _clock) = store(100);
        let shadow = Ask {
            op: Op::Force(1),
            mode: LimitMode::Shadow,
            ..Ask::look(b"a", &quota)
        };
        let first = store.decide_now(&[shadow]);
        assert!(first.passed && first.outcomes[0].is_allowed());
        let before = store.inspect_now(b"a", &quota).unwrap().bucket;
        let second = store.decide_now(&[shadow]);
        assert!(second.passed && !second.outcomes[0].is_allowed());
        assert_eq!(store.inspect_now(b"a", &quota).unwrap().bucket, before);
    }
}

/// Two bands under one name are two buckets; the same band with another amount is the same bucket.
#[test]
fn buckets_are_distinguished_by_name_and_band() {
    let (store, _clock) = store(100);
    let hourly = Quota::new(5, 3_600_000_000).build().unwrap();
    assert_eq!(take(&store, "api", 1, &narrow(5)).remaining, 4);
    assert_eq!(take(&store, "api", 1, &hourly).remaining, 4);
    assert_eq!(take(&store, "api", 2, &hourly).remaining, 4);
    let raised = narrow(10);
    assert_eq!(
        store
            .decide_one(&ask("api/ip:10.0.1", "api", &raised))
            .remaining,
        7,
        "a raise keeps what is owed, in time: 12 seconds are two of ten a minute"
    );
}
