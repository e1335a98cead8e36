//! A quota changes, and its buckets with it from the table to the records or back: nobody begins anew.

use crate::shop::{START, store};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_core::{Algorithm, Align, Ask, BucketState, OnChange, Op, Quota, QuotaSpec};
use tidegate_memory::MemoryStore;

const HOUR_US: u64 = 3_600_000_000;

/// A quota as it was and as it is, the one narrow and the other not, and what `used` units of the one
/// leave in the other.
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

/// Whatever makes a bucket move.
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
        // A drain that passes 4,096; half of an hour is owed either way.
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

/// All ways in which a request is decided find the bucket, whichever of them asks first.
#[test]
fn a_bucket_goes_where_its_quota_goes() {
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
            // The slot that it left is free from the next instant on.
            clock.advance_micros(1);
            assert_eq!(store.stats().buckets, 1, "change {nth}, way {way}");
        }
    }
}

/// What the one version takes is gone for the other, for as long as both are asked.
#[test]
fn two_versions_that_take_turns_share_one_bucket() {
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
fn a_bucket_that_moved_is_forgotten_when_it_is_reset() {
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

/// A word knows nothing of what was credited, so nothing comes back of what was taken before.
#[test]
fn what_was_taken_from_a_word_is_not_given_back_to_a_record() {
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

/// Where the table has no place, a record stays what it is, and is used as such.
#[test]
fn a_record_for_which_the_table_has_no_room_stays_a_record() {
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

/// Requests of both versions at the same time, by many threads, alone and together with others.
#[test]
fn a_crowd_of_two_versions_gets_no_more_than_there_is() {
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
