//! A quota changes, and its buckets move from the table to the records or back, without being
//! reset.

use crate::shop::{START, store};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_core::{Algorithm, Align, Ask, BucketState, OnChange, Op, Quota, QuotaSpec};
use tidegate_memory::MemoryStore;

const HOUR_US: u64 = 3_600_000_000;

/// An old and a new quota, exactly one of them narrow, and what `used` units of the old leave in
/// the new.
struct Change {
    one: Quota,
    other: Quota,
    used: u64,
    left: u64,
}

fn change(one: QuotaSpec<'_>, other: QuotaSpec<'_>, used: u64, left: u64) -> Change {
    let [one, other] = [one, other].map(|spec| spec.label("band").build().unwrap());
    assert_ne!(one.is_narrow(), other.is_narrow(), "{one:?} {other:?}");
    Change {
        one,
        other,
        used,
        left,
    }
}

/// Returns every kind of change that moves a bucket.
fn changes() -> Vec<Change> {
    let hundred = Quota::new(100, HOUR_US);
    let fixed = |amount| {
        let fixed = Algorithm::FixedWindow(Align::FirstRequest);
        Quota::new(amount, HOUR_US).algorithm(fixed)
    };
    let (refundable, scales) = (hundred.refundable(true), hundred.on_change(OnChange::Scale));
    vec![
        change(hundred, refundable, 60, 40),
        change(refundable, hundred, 60, 40),
        change(hundred, hundred.queue(10), 60, 40),
        change(hundred, scales, 60, 40),
        change(scales, hundred, 60, 40),
        // Passing 4,095.
        change(fixed(4_000), fixed(5_000), 3_000, 2_000),
        change(fixed(5_000), fixed(4_000), 3_000, 1_000),
        change(fixed(5_000), fixed(4_000), 4_900, 0),
        // A drain above 4,096; half of an hour is owed in both cases.
        change(
            Quota::new(5_000, HOUR_US),
            Quota::new(4_999 * 2, HOUR_US * 2),
            2_500,
            7_498,
        ),
        // A tick of a millisecond.
        change(
            Quota::new(1_000_000, 24 * HOUR_US),
            Quota::new(1_000_003, 24 * HOUR_US),
            500_000,
            500_001,
        ),
        change(
            Quota::new(1_000_003, 24 * HOUR_US),
            Quota::new(1_000_000, 24 * HOUR_US),
            500_001,
            500_000,
        ),
    ]
}

/// All code paths find the bucket, whichever comes first.
#[test]
fn a_bucket_moves_with_its_quota() {
    for (nth, change) in changes().iter().enumerate() {
        for way in 0..4 {
            let (store, clock) = store(100);
            let used = Ask::take(b"api/1", &change.one, change.used);
            assert!(store.decide_one(&used).is_allowed(), "{nth}");
            let look = Ask::look(b"api/1", &change.other);
            let left = match way {
                0 => store.decide_one(&look).remaining,
                1 => {
                    store
                        .decide_now(&[look, Ask::look(b"api/2", &change.other)])
                        .outcomes[0]
                        .remaining
                }
                2 => {
                    let kept = store.inspect_now(b"api/1", &change.other).unwrap();
                    kept.bucket.reading(&change.other, START).remaining
                }
                _ => {
                    let more = Ask::take(b"api/1", &change.other, change.left + 1);
                    assert!(!store.decide_one(&more).is_allowed(), "{nth}");
                    store.decide_one(&look).remaining
                }
            };
            assert_eq!(left, change.left, "change {nth}, way {way}");
            // Its old slot is free from the next instant on.
            clock.advance_micros(1);
            assert_eq!(store.stats().buckets, 1, "change {nth}, way {way}");
        }
    }
}

/// Units consumed by one version are gone for the other, while both are in use.
#[test]
fn alternating_quota_versions_share_one_bucket() {
    let spec = Quota::new(100, HOUR_US).label("band");
    let versions = [false, true].map(|refundable| spec.refundable(refundable).build().unwrap());
    for several in [false, true] {
        let (store, _clock) = store(100);
        let other = Quota::new(1_000, 1_000_000).build().unwrap();
        let passed = (0..300).filter(|nth| {
            let take = Ask::take(b"api/1", &versions[nth % 2], 1);
            let asks = [take, Ask::take(b"all", &other, 1)];
            store
                .decide_now(if several { &asks } else { &asks[..1] })
                .passed
        });
        assert_eq!(passed.count(), 100, "{several}");
    }
}

#[test]
fn a_moved_bucket_is_removed_by_a_reset() {
    for change in changes() {
        let (store, _clock) = store(100);
        store.decide_one(&Ask::take(b"api/1", &change.one, change.used));
        assert!(store.reset_now(b"api/1", &change.other));
        assert!(!store.reset_now(b"api/1", &change.other));
        for quota in [&change.one, &change.other] {
            let outcome = store.decide_one(&Ask::look(b"api/1", quota));
            assert_eq!(outcome.remaining, quota.capacity());
        }
    }
}

/// A word stores no credits, so earlier charges are not refunded.
#[test]
fn charges_of_a_word_are_not_refunded_to_a_record() {
    let spec = Quota::new(100, HOUR_US).label("band");
    let [narrow, wide] =
        [false, true].map(|refundable| spec.refundable(refundable).build().unwrap());
    let (store, clock) = store(100);
    let charged = store.decide_one(&Ask::take(b"api/1", &narrow, 50));
    let receipt = charged.receipt(START, 50);
    clock.advance_micros(1_000_000);
    let back = Ask {
        op: Op::GiveBack(receipt),
        ..Ask::look(b"api/1", &wide)
    };
    assert_eq!(store.decide_one(&back).remaining, 50);
}

/// If the table has no slot, a record stays a record and is used as such.
#[test]
fn a_record_without_a_free_slot_stays_a_record() {
    let spec = Quota::new(100, HOUR_US).label("band");
    let [narrow, wide] =
        [false, true].map(|refundable| spec.refundable(refundable).build().unwrap());
    let (store, _clock) = store(1);
    store.decide_one(&Ask::take(b"api/1", &wide, 60));
    // A table for one key has a set of slots.
    for subject in 0..200_u32 {
        store.decide_one(&Ask::take(&subject.to_be_bytes(), &narrow, 1));
    }
    assert!(store.shared().total() > 0);
    for several in [false, true] {
        let asks = [
            Ask::take(b"api/1", &narrow, 10),
            Ask::look(b"api/1", &narrow),
        ];
        store.decide_now(if several { &asks } else { &asks[..1] });
    }
    assert_eq!(
        store.decide_one(&Ask::look(b"api/1", &narrow)).remaining,
        20
    );
    assert_eq!(store.decide_one(&Ask::look(b"api/1", &wide)).remaining, 20);
}

/// Concurrent requests of both versions, alone and together with other buckets.
#[test]
fn concurrent_quota_versions_never_exceed_the_bucket() {
    const THREADS: usize = 4;
    const KEYS: u32 = 40;
    let spec = Quota::new(50, 24 * HOUR_US).label("band");
    let versions = [false, true].map(|refundable| spec.refundable(refundable).build().unwrap());
    let free = Quota::new(1_000_000, 1_000_000).build().unwrap();
    let store = MemoryStore::builder().max_keys(1_000).build();
    let (passed, start) = (AtomicU64::new(0), Barrier::new(THREADS));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, versions, free) = (&store, &versions, &free);
            let (passed, start) = (&passed, &start);
            scope.spawn(move || {
                start.wait();
                for nth in 0..40 {
                    for key in 0..KEYS {
                        let name = key.to_be_bytes();
                        let take = Ask::take(&name, &versions[(thread + nth) % 2], 1);
                        let asks = [take, Ask::take(b"free", free, 1)];
                        let asks = if nth % 3 == 0 { &asks[..] } else { &asks[..1] };
                        passed.fetch_add(u64::from(store.decide_now(asks).passed), Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(passed.into_inner(), 50 * u64::from(KEYS));
}
