//! Snapshots that are written while other threads decide.

use super::{read, write};
use crate::shop::{MINUTE_US, START, name};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;
use tidegate_core::{Algorithm, Align, Ask, ManualClock, Op, Quota, Receipt};
use tidegate_memory::MemoryStore;

const KEYS: u64 = 300;
const THREADS: u64 = 3;
const AMOUNT: u64 = 1_000_000;

fn quota(algorithm: Algorithm, refundable: bool) -> Quota {
    let spec = Quota::new(AMOUNT, 1_440 * MINUTE_US).algorithm(algorithm);
    spec.refundable(refundable).label("band").build().unwrap()
}

/// Every unit charged before the start of a write is in it; none is there that was not charged by its end.
#[test]
fn a_snapshot_has_all_charges_from_before_its_start() {
    let fixed = Algorithm::FixedWindow(Align::FirstRequest);
    let small = Quota::new(4_000, 1_440 * MINUTE_US)
        .algorithm(fixed)
        .label("word");
    let kinds = [
        quota(fixed, false),
        quota(Algorithm::TokenBucket, true),
        small.build().unwrap(),
    ];
    for quota in kinds {
        let clock = ManualClock::at(START);
        let builder = MemoryStore::builder().max_keys(2_000).clock(clock.clone());
        let store = builder.with_snapshots().build();
        let charged: Vec<AtomicU64> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            for thread in 0..THREADS {
                let (store, quota, charged, is_over) = (&store, &quota, &charged, &is_over);
                scope.spawn(move || {
                    let mut key = thread;
                    while !is_over.load(SeqCst) {
                        let name = name("api", key % KEYS);
                        let take = Ask::take(name.as_bytes(), quota, 1);
                        if store.decide_one(&take).is_allowed() {
                            charged[usize::try_from(key % KEYS).unwrap()].fetch_add(1, SeqCst);
                        }
                        key = key.wrapping_mul(31).wrapping_add(7);
                    }
                });
            }
            for _ in 0..30 {
                let load = |it: &AtomicU64| it.load(SeqCst);
                let before: Vec<u64> = charged.iter().map(load).collect();
                let (bytes, _) = write(&store);
                let after: Vec<u64> = charged.iter().map(load).collect();
                let (restored, _) = read(&bytes, 2_000, &clock);
                for (key, (before, after)) in (0..).zip(before.into_iter().zip(after)) {
                    let amount = quota.amount();
                    let name = name("api", key);
                    let look = Ask::look(name.as_bytes(), &quota);
                    let used = amount - restored.decide_one(&look).remaining;
                    // Threads count a charge after it was made.
                    assert!(
                        used >= before && used <= after + THREADS,
                        "{before} {used} {after}"
                    );
                }
            }
            is_over.store(true, SeqCst);
        });
    }
}

/// A reload changes a quota so that buckets move between the table and the records. None is missed on its
/// way, in either direction.
#[test]
fn buckets_that_move_while_they_are_written_are_not_missed() {
    let (word, record) = (
        quota(Algorithm::TokenBucket, false),
        quota(Algorithm::TokenBucket, true),
    );
    let is_narrow = word.is_narrow();
    let narrow = Quota::new(100, 1_440 * MINUTE_US).label("band");
    let (word, record) = if is_narrow {
        (word, record)
    } else {
        (
            narrow.build().unwrap(),
            narrow.refundable(true).build().unwrap(),
        )
    };
    let clock = ManualClock::at(START);
    let builder = MemoryStore::builder().max_keys(2_000).clock(clock.clone());
    let store = builder.with_snapshots().build();
    for key in 0..KEYS {
        let name = name("api", key);
        assert!(
            store
                .decide_one(&Ask::take(name.as_bytes(), &word, 5))
                .is_allowed()
        );
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let (store, is_over) = (&store, &is_over);
        let (word, record) = (&word, &record);
        scope.spawn(move || {
            let mut round = 0;
            while !is_over.load(SeqCst) {
                let quota = if round % 2 == 0 { record } else { word };
                for key in 0..KEYS {
                    let name = name("api", key);
                    // Too much: it moves the bucket, and is refused.
                    store.decide_one(&Ask::take(name.as_bytes(), quota, quota.amount()));
                }
                round += 1;
            }
        });
        let mut written = 0;
        while written < 40 {
            let mut bytes = Vec::new();
            match store.write_snapshot(&mut bytes, b"note") {
                Ok(_) => written += 1,
                // Buckets move there and back all the time: then there is no snapshot.
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ResourceBusy);
                    written += 1;
                    continue;
                }
            }
            let (restored, _) = read(&bytes, 2_000, &clock);
            for key in 0..KEYS {
                let name = name("api", key);
                let look = restored.decide_one(&Ask::look(name.as_bytes(), word));
                assert!(look.remaining <= word.amount() - 5, "{key}: {look:?}");
            }
        }
        is_over.store(true, SeqCst);
    });
}

/// A word that becomes a record after the records were read, and before it is read itself, is in neither walk.
#[test]
fn words_that_become_records_while_they_are_written_are_not_missed() {
    const MANY: u64 = 5_000;
    let narrow = Quota::new(100, 1_440 * MINUTE_US).label("band");
    let (word, record) = (
        narrow.build().unwrap(),
        narrow.refundable(true).build().unwrap(),
    );
    for _ in 0..5 {
        let clock = ManualClock::at(START);
        let builder = MemoryStore::builder().max_keys(20_000).clock(clock.clone());
        let store = builder.with_snapshots().build();
        for key in 0..MANY {
            let name = name("api", key);
            store.decide_one(&Ask::take(name.as_bytes(), &word, 5));
        }
        thread::scope(|scope| {
            let (store, record) = (&store, &record);
            let moves = scope.spawn(move || {
                for key in 0..MANY {
                    let name = name("api", key);
                    store.decide_one(&Ask::take(name.as_bytes(), record, 100));
                }
            });
            let mut is_last = false;
            while !is_last {
                is_last = moves.is_finished();
                let (restored, _) = read(&write(store).0, 20_000, &clock);
                for key in 0..MANY {
                    let name = name("api", key);
                    let look = restored.decide_one(&Ask::look(name.as_bytes(), record));
                    assert!(look.remaining <= 95, "{key}: {look:?}");
                }
            }
        });
    }
}

/// A refund that a snapshot has is never made again after a restart: its mark is in the snapshot too.
#[test]
fn a_refund_is_never_written_without_its_mark() {
    let fixed = Algorithm::FixedWindow(Align::FirstRequest);
    let narrow = Quota::new(4_000, 1_440 * MINUTE_US)
        .algorithm(fixed)
        .label("word");
    let mark = Quota::new(1, 60 * MINUTE_US).algorithm(fixed).label("mark");
    let mark = mark.build().unwrap();
    for quota in [narrow.build().unwrap(), quota(Algorithm::TokenBucket, true)] {
        let clock = ManualClock::at(START);
        let builder = MemoryStore::builder().max_keys(50_000).clock(clock.clone());
        let store = builder.with_snapshots().build();
        let receipts: Vec<Receipt> = (0..KEYS)
            .flat_map(|key| {
                let name = name("api", key);
                let reply = store.decide_now(&[Ask::take(name.as_bytes(), &quota, 20)]);
                let receipt = reply.receipt(0, Op::Take(20)).unwrap();
                (0..20).map(move |_| receipt.with_cost(1))
            })
            .collect();
        let names: Vec<(String, String)> = (0..)
            .zip(&receipts)
            .map(|(nth, _)| (name("api", nth / 20), format!("api~mark/{nth}")))
            .collect();
        // From one end to the other, so that the marks of a key come at very different times.
        let order = (0..20).flat_map(|part| (0..300).map(move |key| key * 20 + part));
        thread::scope(|scope| {
            let (store, quota, mark) = (&store, &quota, &mark);
            let (names, receipts) = (&names, &receipts);
            let refunds = scope.spawn(move || {
                for nth in order {
                    let (bucket, once) = &names[nth];
                    let back = Op::Return {
                        receipt: receipts[nth],
                        by: START.plus(MINUTE_US),
                    };
                    let asks = [
                        Ask::take(once.as_bytes(), mark, 1),
                        Ask {
                            op: back,
                            ..Ask::look(bucket.as_bytes(), quota)
                        },
                    ];
                    assert!(store.decide_now(&asks).passed);
                }
            });
            let mut is_last = false;
            while !is_last {
                is_last = refunds.is_finished();
                let (restored, _) = read(&write(store).0, 50_000, &clock);
                for key in 0..KEYS {
                    let used = bucket_used(&restored, key, quota);
                    let first = usize::try_from(key * 20).unwrap();
                    let marked = (first..first + 20).filter(|nth| {
                        let test = Op::Test(1);
                        let mark = Ask {
                            op: test,
                            ..Ask::look(names[*nth].1.as_bytes(), mark)
                        };
                        !restored.decide_one(&mark).is_allowed()
                    });
                    let refunded = 20 - used;
                    assert!(
                        marked.count() as u64 >= refunded,
                        "{key}: {refunded} refunds"
                    );
                }
            }
        });
    }
}

fn bucket_used(store: &MemoryStore<ManualClock>, key: u64, quota: &Quota) -> u64 {
    let name = name("api", key);
    quota.amount()
        - store
            .decide_one(&Ask::look(name.as_bytes(), quota))
            .remaining
}
