//! Many threads: exact counts, no deadlock.

use crate::shop::{MINUTE_US, ask, log, narrow, store, wide, window};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use tidegate_core::{Ask, ManualClock, Op, Quota};
use tidegate_memory::MemoryStore;

const THREADS: u64 = 4;

/// Runs `work` on several threads, each with its number; returns the sum of the results.
fn crowd(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    let barrier = Barrier::new(usize::try_from(THREADS).unwrap());
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|nth| {
                let (work, barrier) = (&work, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    work(nth)
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum()
    })
}

fn remaining(store: &MemoryStore<ManualClock>, ask: &Ask<'_>) -> u64 {
    let look = Ask {
        op: Op::Look,
        ..*ask
    };
    store.decide_one(&look).remaining
}

#[test]
fn a_hot_key_admits_exactly_its_capacity() {
    let (store, clock) = store(1_000);
    for quota in [narrow(3_000), window(3_000), wide(3_000), log(3_000)] {
        let ask = Ask::take(b"hot", &quota, 1);
        let admitted = crowd(|_| {
            (0..2_000)
                .filter(|_| store.decide_one(&ask).is_allowed())
                .count() as u64
        });
        assert_eq!(admitted, 3_000, "{quota:?}");
        // Half a minute later half of the units have refilled, or none, or all, as the algorithm
        // defines.
        clock.advance_micros(MINUTE_US / 2);
        let left = remaining(&store, &ask);
        let admitted = crowd(|_| {
            (0..1_000)
                .filter(|_| store.decide_one(&ask).is_allowed())
                .count() as u64
        });
        assert_eq!(admitted, left, "{quota:?}");
    }
}

/// Time passes under load: exactly the burst and the refill pass in total.
#[test]
fn a_hot_key_admits_exactly_its_envelope_while_time_runs() {
    for _ in 0..5 {
        let (store, clock) = store(1_000);
        // One every 10 microseconds.
        let quota = Quota::new(100_000, 1_000_000).burst(50).build().unwrap();
        let ask = Ask::take(b"hot", &quota, 1);
        let admitted = crowd(|nth| {
            (0..5_000)
                .filter(|step| {
                    if nth == 0 && step % 5 == 0 {
                        clock.advance_micros(10);
                    }
                    store.decide_one(&ask).is_allowed()
                })
                .count() as u64
        });
        // Each step of the clock refilled one unit; unused ones are still there.
        let made = 50 + 1_000;
        let unused = remaining(&store, &ask);
        assert!(admitted + unused <= made, "{admitted} + {unused}");
        assert!(admitted >= 50);
    }
}

/// Requests over three of six buckets, narrow and wide, in a different order per thread. A passed
/// request is charged to all three and a refused one to none, so all final counts are exact; and
/// there is no deadlock.
#[test]
fn overlapping_requests_in_any_order_are_all_or_nothing() {
    for round in 0..20_u64 {
        let (store, _clock) = store(1_000);
        let quotas: Vec<Quota> = [
            narrow(40 + round),
            narrow(60),
            window(50),
            wide(55),
            log(45),
            narrow(1_000),
        ]
        .into();
        let names: Vec<String> = (0..6).map(|i| format!("bucket {i}")).collect();
        let charged: Vec<AtomicU64> = (0..6).map(|_| AtomicU64::new(0)).collect();
        crowd(|nth| {
            let mut dice = nth * 7_919 + round;
            for _ in 0..150 {
                dice = dice
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let first = usize::try_from(dice >> 40).unwrap() % 6;
                let gap = 1 + usize::try_from(dice >> 50).unwrap() % 2;
                let mut places = [first, (first + gap) % 6, (first + 2 * gap) % 6];
                if dice >> 60 & 1 == 1 {
                    places.reverse();
                }
                let asks = places.map(|i| Ask::take(names[i].as_bytes(), &quotas[i], 1));
                if store.decide_now(&asks).passed {
                    for i in places {
                        charged[i].fetch_add(1, Relaxed);
                    }
                }
            }
            0
        });
        for (i, count) in charged.iter().enumerate() {
            let ask = Ask::take(names[i].as_bytes(), &quotas[i], 1);
            let expected = quotas[i].capacity() - count.load(Relaxed);
            assert_eq!(remaining(&store, &ask), expected, "bucket {i}");
        }
    }
}

/// Words only, charged by single asks and by requests: no charge is lost between a swap and a lock.
#[test]
fn single_asks_and_requests_on_the_same_words_lose_nothing() {
    let (store, _clock) = store(1_000);
    let quota = narrow(4_000);
    let [one, two] = [b"one", b"two"].map(|bucket| Ask::take(bucket, &quota, 1));
    crowd(|nth| {
        for _ in 0..400 {
            if nth % 2 == 0 {
                assert!(store.decide_now(&[two, one]).passed);
            } else {
                assert!(store.decide_one(&one).is_allowed());
                assert!(store.decide_one(&two).is_allowed());
            }
        }
        0
    });
    assert_eq!(remaining(&store, &one), 4_000 - 1_600);
    assert_eq!(remaining(&store, &two), 4_000 - 1_600);
}

/// Far more keys than slots, each full again soon: slots are taken over all the time, while other
/// threads use the same keys. No key ever gets more than its single unit.
#[test]
fn slots_of_expired_keys_are_reused_without_duplicates() {
    let (store, clock) = store(16);
    let quota = Quota::new(1, 1_000).build().unwrap();
    for round in 0..2_000_u64 {
        let keys: Vec<String> = (0..4).map(|i| format!("key {}", round * 4 + i)).collect();
        let admitted: Vec<AtomicU64> = keys.iter().map(|_| AtomicU64::new(0)).collect();
        // Threads are expensive: one in twenty rounds is concurrent, the others only use up slots.
        if round % 20 == 0 {
            crowd(|nth| {
                for step in 0..8_usize {
                    let i = (step + usize::try_from(nth).unwrap()) % 4;
                    let ask = Ask::take(keys[i].as_bytes(), &quota, 1);
                    let passed = if step < 4 {
                        store.decide_one(&ask).is_allowed()
                    } else {
                        store
                            .decide_now(&[ask, Ask::look(keys[(i + 1) % 4].as_bytes(), &quota)])
                            .passed
                    };
                    admitted[i].fetch_add(u64::from(passed), Relaxed);
                }
                0
            });
            for count in &admitted {
                assert_eq!(count.load(Relaxed), 1);
            }
        } else {
            for key in &keys {
                assert!(
                    store
                        .decide_one(&Ask::take(key.as_bytes(), &quota, 1))
                        .is_allowed()
                );
            }
        }
        clock.advance_micros(1_001);
    }
    assert_eq!(store.shared().total(), 0);
}

/// A store so small that threads compete for memory, slots and overflow buckets: there is no
/// deadlock, and no key exceeds its limit.
#[test]
fn a_full_store_under_contention_keeps_every_limit() {
    for round in 0..10_u64 {
        let (store, clock) = store(1);
        let quotas = [narrow(3), wide(3)];
        let admitted: Vec<AtomicU64> = (0..400).map(|_| AtomicU64::new(0)).collect();
        crowd(|nth| {
            for step in 0..400_u64 {
                let subject = (step * 13 + nth * 7 + round) % 200;
                let names = [format!("a/{subject}"), format!("b/{subject}")];
                let asks = [
                    ask(&names[0], "a", &quotas[0]),
                    ask(&names[1], "b", &quotas[1]),
                ];
                let passed = match step % 3 {
                    0 => [store.decide_one(&asks[0]).is_allowed(), false],
                    1 => [false, store.decide_one(&asks[1]).is_allowed()],
                    _ => [store.decide_now(&asks).passed; 2],
                };
                for (i, passed) in passed.into_iter().enumerate() {
                    let place = usize::try_from(subject).unwrap() * 2 + i;
                    admitted[place].fetch_add(u64::from(passed), Relaxed);
                }
            }
            0
        });
        for count in &admitted {
            assert!(count.load(Relaxed) <= 3, "{}", count.load(Relaxed));
        }
        assert!(store.shared().total() > 0);
        clock.advance_micros(MINUTE_US);
    }
}
