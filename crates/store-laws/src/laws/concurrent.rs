//! Laws that only several callers at once can break.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use tidegate_core::Ask;

use super::{StoreUnderTest, every_kind};

const CALLERS: usize = 4;

/// The clock does not move, and many callers take from one bucket: exactly its capacity passes.
pub fn law_2_never_over(subject: &impl StoreUnderTest) {
    for (name, quota) in every_kind() {
        for round in 0..10 {
            let bucket = format!("over {name} {round}");
            let admitted = AtomicU64::new(0);
            thread::scope(|scope| {
                for _ in 0..CALLERS {
                    scope.spawn(|| {
                        for _ in 0..3 {
                            let ask = Ask::take(bucket.as_bytes(), &quota, 1);
                            let passed = subject.decide(&[ask]).passed;
                            admitted.fetch_add(u64::from(passed), Relaxed);
                        }
                    });
                }
            });
            assert_eq!(admitted.into_inner(), quota.capacity(), "{name}");
        }
    }
}

/// Callers request pairs of buckets of every kind, in either order. An admitted pair is charged to
/// both and a refused one to neither, so that in the end the counts agree; and there is no
/// deadlock.
pub fn law_1_all_or_nothing_under_contention(subject: &impl StoreUnderTest) {
    let kinds = every_kind();
    for round in 0..10 {
        let names: Vec<Vec<u8>> = (0..kinds.len())
            .map(|i| format!("pairs {round} {i}").into_bytes())
            .collect();
        let charged: Vec<AtomicU64> = names.iter().map(|_| AtomicU64::new(0)).collect();
        let ask = |i: usize| {
            let (bucket, (_, quota)) = names.iter().zip(&kinds).nth(i).expect("within");
            Ask::take(bucket, quota, 1)
        };
        thread::scope(|scope| {
            for caller in 0..CALLERS {
                let (kinds, charged, ask) = (kinds.len(), &charged, &ask);
                scope.spawn(move || {
                    for step in 0..2 * kinds {
                        // Each caller goes round in another order.
                        let one = (step * (caller + 1) + caller) % kinds;
                        let two = (one + 1 + step % (kinds - 1)) % kinds;
                        if subject.decide(&[ask(one), ask(two)]).passed {
                            for i in [one, two] {
                                if let Some(count) = charged.get(i) {
                                    count.fetch_add(1, Relaxed);
                                }
                            }
                        }
                    }
                });
            }
        });
        for (i, count) in charged.iter().enumerate() {
            let (name, quota) = kinds.get(i).expect("within");
            let left = subject.decide_one(Ask {
                op: tidegate_core::Op::Look,
                ..ask(i)
            });
            let expected = quota.capacity() - count.load(Relaxed);
            assert_eq!(left.remaining, expected, "{name}");
        }
    }
}
