//! Threads that read the clock and were then suspended, while others continued.
//!
//! A clock that is set back for one reading simulates such a thread: it decides as of an instant
//! long ago. It must neither set a bucket back to then, nor miss a key that was created and removed
//! meanwhile.

use crate::shop::{START, log, name};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_core::{Ask, Clock, Op, Quota, Timestamp};
use tidegate_memory::MemoryStore;

/// Shows one time to all readers except the next.
#[derive(Clone, Debug)]
struct DelayedClock(Arc<[AtomicU64; 2]>);

impl DelayedClock {
    fn new() -> Self {
        let now = AtomicU64::new(START.as_micros());
        Self(Arc::new([now, AtomicU64::new(0)]))
    }

    fn advance(&self, micros: u64) {
        self.0[0].fetch_add(micros, Relaxed);
    }

    /// Makes the next reading `micros` old.
    fn lag(&self, micros: u64) {
        self.0[1].store(micros, Relaxed);
    }
}

impl Clock for DelayedClock {
    fn now(&self) -> Timestamp {
        let lag = self.0[1].swap(0, Relaxed);
        Timestamp::from_micros(self.0[0].load(Relaxed) - lag)
    }
}

fn store(max_keys: usize) -> (MemoryStore<DelayedClock>, DelayedClock) {
    let clock = DelayedClock::new();
    let store = MemoryStore::builder()
        .max_keys(max_keys)
        .clock(clock.clone())
        .build();
    (store, clock)
}

/// 50 at once, one every 10 microseconds: narrow, wide, and a log.
fn kinds() -> Vec<Quota> {
    let spec = Quota::new(100_000, 1_000_000).burst(50);
    let short_log = Quota::new(50, 500).algorithm(log(1).algorithm());
    vec![
        spec.build().unwrap(),
        spec.refundable(true).label("wide").build().unwrap(),
        short_log.build().unwrap(),
    ]
}

/// Sends a request over one or over two buckets, which take different code paths.
fn take(
    store: &MemoryStore<DelayedClock>,
    bucket: &str,
    quota: &Quota,
    cost: u64,
    several: bool,
) -> bool {
    let ask = Ask::take(bucket.as_bytes(), quota, cost);
    let other = Ask {
        op: Op::Look,
        ..Ask::take(b"other", quota, 0)
    };
    if several {
        store.decide_now(&[ask, other]).passed
    } else {
        store.decide_now(&[ask]).passed
    }
}

#[test]
fn a_late_refusal_does_not_put_a_bucket_back() {
    for quota in kinds() {
        for several in [false, true] {
            let (store, clock) = store(100);
            clock.advance(1_000_000);
            assert!(take(&store, "hot", &quota, 50, several));
            clock.lag(900_000);
            assert!(
                !take(&store, "hot", &quota, 1, several),
                "used up, then and now"
            );
            assert!(
                !take(&store, "hot", &quota, 1, several),
                "{several}: {quota:?}"
            );
        }
    }
}

/// The key was drained, was full again, and lost its slot. A request that read the clock before all
/// that is decided as of now, and counted.
#[test]
fn a_late_request_for_an_evicted_key_is_decided_as_of_now() {
    for quota in kinds() {
        for several in [false, true] {
            // The slots of the others are random, so there are many attempts.
            for _ in 0..30 {
                arrive_and_expire(&quota, several);
            }
        }
    }
}

fn arrive_and_expire(quota: &Quota, several: bool) {
    let (store, clock) = store(20);
    clock.advance(60_000_000);
    assert!(take(&store, "gone", quota, 50, several));
    clock.advance(10_000_000);
    // A full record is dropped when it is found; a slot is taken over by others.
    take(&store, "gone", quota, 0, several);
    for subject in 0..40 {
        take(&store, &name("crowd", subject), quota, 1, false);
    }
    clock.advance(10_000_000);
    clock.lag(25_000_000);
    assert!(take(&store, "gone", quota, 20, several));
    // Counted as of then, those twenty would have refilled by now.
    let again = take(&store, "gone", quota, 50, several);
    assert!(!again, "{several}: {quota:?}");
}

/// Forced charges of a late thread are charged.
#[test]
fn a_late_force_is_charged() {
    let spec = Quota::new(100_000, 1_000_000).burst(50).overdraft(50);
    let kinds = [spec, spec.refundable(true).label("wide")].map(|spec| spec.build().unwrap());
    for quota in kinds {
        let (store, clock) = store(100);
        clock.advance(1_000_000);
        assert!(take(&store, "hot", &quota, 50, false));
        clock.lag(900_000);
        let force = Ask {
            op: Op::Force(20),
            ..Ask::take(b"hot", &quota, 0)
        };
        let outcome = store.decide_one(&force);
        assert!(!outcome.is_allowed());
        assert_eq!(outcome.reset_us, 700, "50 and 20 are owed: {quota:?}");
    }
}
