//! The compare-and-swap driver: the store laws over a map, skewed clocks, and a failing store.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tidegate_core::cas::{CasStore, CompareAndSwap, KeyChange, KeySwap, Snapshot, VersionedValue};
use tidegate_core::{
    Ask, Clock, ManualClock, Op, Quota, Store, StoreError, StoreErrorKind, Timestamp,
};
use tidegate_testkit::laws::{Manual, StoreUnderTest, block_on, law_12_unknown_is_an_error};
use tidegate_testkit::store_laws;

#[expect(clippy::disallowed_types, reason = "core has no other mutex")]
type SharedValue<T> = Arc<std::sync::Mutex<T>>;

const SECOND: u64 = 1_000_000;

/// A map shared by several instances, each with its own clock.
#[derive(Clone, Debug)]
struct SharedMap {
    entries: SharedValue<BTreeMap<Vec<u8>, MapEntry>>,
    /// The time by which entries expire.
    wall: ManualClock,
    /// How far this instance's clock is ahead of `wall`.
    ahead_us: u64,
    writes: Arc<AtomicU64>,
    pauses: SharedValue<Vec<Duration>>,
    is_down: Arc<AtomicBool>,
    is_contended: bool,
}

#[derive(Debug)]
struct MapEntry {
    version: u64,
    value: Vec<u8>,
    until: Timestamp,
}

impl SharedMap {
    fn new() -> Self {
        Self {
            entries: SharedValue::default(),
            wall: ManualClock::at(Timestamp::from_millis(1_700_000_000_000)),
            ahead_us: 0,
            writes: Arc::default(),
            pauses: SharedValue::default(),
            is_down: Arc::default(),
            is_contended: false,
        }
    }

    /// Another instance, whose clock is ahead.
    fn ahead(&self, ahead_us: u64) -> CasStore<Self> {
        CasStore::new(Self {
            ahead_us,
            ..self.clone()
        })
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.is_down.load(Relaxed) {
            return Err(StoreError::transient("the map is down"));
        }
        Ok(())
    }

    fn read_now(&self, keys: &[Vec<u8>]) -> Result<Snapshot<u64>, StoreError> {
        self.check()?;
        let mut entries = self.entries.lock().unwrap();
        entries.retain(|_, entry| entry.until > self.wall.now());
        let values = keys.iter().map(|key| match entries.get(key) {
            Some(entry) => VersionedValue {
                version: entry.version,
                value: Some(entry.value.clone()),
            },
            None => VersionedValue {
                version: 0,
                value: None,
            },
        });
        Ok(Snapshot {
            values: values.collect(),
            at: self.wall.now().plus(self.ahead_us),
        })
    }

    fn swap_now(&self, swaps: &[KeySwap<'_, u64>]) -> Result<bool, StoreError> {
        self.check()?;
        let mut entries = self.entries.lock().unwrap();
        let version = |key: &[u8]| entries.get(key).map_or(0, |entry| entry.version);
        if self.is_contended || swaps.iter().any(|it| version(it.key) != *it.expected) {
            return Ok(false);
        }
        let next = self.writes.fetch_add(1, Relaxed) + 1;
        for swap in swaps {
            match &swap.change {
                KeyChange::Keep => {}
                KeyChange::Delete => drop(entries.remove(swap.key)),
                KeyChange::Put { value, keep_for } => {
                    let keep_us = u64::try_from(keep_for.as_micros()).unwrap();
                    let entry = MapEntry {
                        version: next,
                        value: value.clone(),
                        until: self.wall.now().plus(keep_us),
                    };
                    drop(entries.insert(swap.key.to_vec(), entry));
                }
            }
        }
        Ok(true)
    }
}

impl CompareAndSwap for SharedMap {
    type Version = u64;

    async fn read(&self, keys: &[Vec<u8>]) -> Result<Snapshot<u64>, StoreError> {
        self.read_now(keys)
    }

    async fn swap(&self, swaps: &[KeySwap<'_, u64>]) -> Result<bool, StoreError> {
        self.swap_now(swaps)
    }

    async fn pause(&self, time: Duration) {
        self.pauses.lock().unwrap().push(time);
        std::thread::yield_now();
    }
}

fn subject() -> Manual<CasStore<SharedMap>> {
    let map = SharedMap::new();
    let clock = map.wall.clone();
    Manual::new(CasStore::new(map), clock)
}

store_laws!(subject);

fn ten_seconds() -> Quota {
    Quota::new(10, 10 * SECOND).build().unwrap()
}

fn take(store: &CasStore<SharedMap>, quota: &Quota, cost: u64) -> (Timestamp, bool) {
    let reply = block_on(store.decide(&[Ask::take(b"a", quota, cost)])).unwrap();
    (reply.at, reply.passed)
}

#[test]
fn law_12() {
    let subject = subject();
    law_12_unknown_is_an_error(&subject, || {
        subject.store().backend().is_down.store(true, Relaxed);
    });
}

#[test]
fn bucket_instants_are_monotonic_across_instances() {
    let (map, quota) = (SharedMap::new(), ten_seconds());
    let (ahead, behind) = (map.ahead(SECOND / 2), map.ahead(0));
    let (first, passed) = take(&ahead, &quota, 9);
    assert!(passed);
    map.wall.advance_micros(1);
    let (second, passed) = take(&behind, &quota, 1);
    assert!(passed);
    assert_eq!(second, first, "its own clock is behind that stamp");
    map.wall.advance_micros(SECOND);
    let (third, passed) = take(&behind, &quota, 1);
    assert!(
        !passed,
        "the bucket refills half a second later, by its own clock"
    );
    assert_eq!(third, first.plus(SECOND / 2 + 1));
    map.wall.advance_micros(SECOND / 2);
    assert!(take(&behind, &quota, 1).1);
}

#[test]
fn a_bucket_is_kept_long_enough_for_instances_with_slow_clocks() {
    let map = SharedMap::new();
    let quota = Quota::new(10, 10 * SECOND);
    let quota = quota.algorithm(tidegate_core::Algorithm::SlidingLog);
    let quota = quota.build().unwrap();
    let (ahead, behind) = (map.ahead(SECOND), map.ahead(0));
    assert!(take(&ahead, &quota, 10).1);
    map.wall.advance_micros(11 * SECOND - 1);
    assert!(
        !take(&behind, &quota, 10).1,
        "the wait is not counted by its own clock"
    );
    map.wall.advance_micros(1);
    assert!(take(&behind, &quota, 10).1);
}

#[test]
fn buckets_expire_with_an_allowance_for_clock_differences() {
    let (map, quota) = (SharedMap::new(), ten_seconds());
    let store = map.ahead(0);
    take(&store, &quota, 10);
    map.wall.advance_micros(11 * SECOND - 1);
    block_on(store.inspect(b"a", &quota)).unwrap();
    assert_eq!(map.entries.lock().unwrap().len(), 1);
    map.wall.advance_micros(1);
    block_on(store.inspect(b"a", &quota)).unwrap();
    assert!(map.entries.lock().unwrap().is_empty());
}

#[test]
fn a_broken_clock_costs_at_most_a_full_bucket() {
    let (map, quota) = (SharedMap::new(), ten_seconds());
    let (broken, sound) = (map.ahead(365 * 86_400 * SECOND), map.ahead(0));
    assert!(take(&broken, &quota, 1).1);
    let (at, passed) = take(&sound, &quota, 1);
    assert!(!passed, "by that clock, the debt is a full bucket");
    assert_eq!(at, map.wall.now());
    // Clamped although refused: from now on the bucket refills by the correct clock.
    map.wall.advance_micros(10 * SECOND);
    assert!(take(&sound, &quota, 10).1);
}

#[test]
fn attempts_are_bounded_with_growing_pauses() {
    let map = SharedMap {
        is_contended: true,
        ..SharedMap::new()
    };
    let pauses = Arc::clone(&map.pauses);
    let error = block_on(CasStore::new(map).decide(&[Ask::take(b"a", &ten_seconds(), 1)]));
    let error = error.unwrap_err();
    assert!(error.is_transient());
    assert_eq!(error.kind(), StoreErrorKind::Overloaded);
    let millis: Vec<u128> = pauses
        .lock()
        .unwrap()
        .iter()
        .map(Duration::as_millis)
        .collect();
    assert_eq!(millis.len(), 15);
    assert_eq!(millis[..7], [1, 2, 4, 8, 16, 32, 32]);
}

#[test]
fn damaged_values_are_errors_and_not_new_buckets() {
    let (map, quota) = (SharedMap::new(), ten_seconds());
    let store = map.ahead(0);
    take(&store, &quota, 1);
    let whole = map
        .entries
        .lock()
        .unwrap()
        .values()
        .next()
        .unwrap()
        .value
        .clone();
    for damaged in [
        &[][..],
        b"x",
        &whole[..whole.len() - 1],
        &whole[..whole.len() - 8],
    ] {
        for entry in map.entries.lock().unwrap().values_mut() {
            entry.value = damaged.to_vec();
        }
        let error = block_on(store.decide(&[Ask::look(b"a", &quota)])).unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Corrupt, "{damaged:?}");
        assert!(block_on(store.inspect(b"a", &quota)).is_err());
        assert!(block_on(store.reset(b"a", &quota)).is_err());
    }
}

#[test]
fn refunds_free_units_for_an_instance_with_a_slow_clock() {
    let map = SharedMap::new();
    let quota = Quota::new(1, SECOND).build().unwrap().with_refundable(true);
    let (behind, ahead) = (map.ahead(0), map.ahead(900_000));
    let decide = |store: &CasStore<SharedMap>, op| {
        let ask = Ask {
            op,
            ..Ask::look(b"a", &quota)
        };
        block_on(store.decide(&[ask])).unwrap()
    };
    let mut passed = 0;
    for _ in 0..10 {
        passed += u32::from(decide(&behind, Op::Take(1)).passed);
        map.wall.advance_micros(SECOND / 10);
        let reply = decide(&ahead, Op::Take(1));
        if let Some(receipt) = reply.receipt(0, Op::Take(1)) {
            decide(&ahead, Op::GiveBack(receipt));
        }
    }
    assert!(
        passed <= 2,
        "{passed} in a second; expected one, plus one for each refill by the clock ahead"
    );
}

#[test]
fn instances_share_the_first_secret() {
    let map = SharedMap::new();
    let ask = |proposal| {
        let store = map.ahead(0);
        let state = store.shared_state().expect("the store shares a secret");
        block_on(state.secret(proposal).expect("the store has a secret")).unwrap()
    };
    assert_eq!(ask([1; 32]), [1; 32]);
    map.wall.advance_micros(86_400 * SECOND);
    assert_eq!(ask([2; 32]), [1; 32]);
    map.wall.advance_micros(86_400 * SECOND);
    assert_eq!(
        ask([3; 32]),
        [1; 32],
        "one day after the last request for it"
    );
}
