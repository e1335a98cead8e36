//! The last known level of each bucket: a table of fixed size that forgets rather than grows.

use foldhash::quality::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_core::{Algorithm, Ask, Outcome, Timestamp};

/// The number of buckets remembered. If two share a cell, the last written wins. A power of two.
const PLACES: usize = 1 << 16;

/// Odd numbers without a pattern.
const MIX: [u64; 2] = [0x9e37_79b9_7f4a_7c15, 0xc2b2_ae3d_27d4_eb4f];

/// The last known level of each bucket, for a while.
#[derive(Debug)]
pub(super) struct LevelCache {
    /// Seeded per process, so that clients cannot choose keys that collide.
    hasher: RandomState,
    places: Box<[LevelCell]>,
}

/// The last level of one bucket. Any thread writes it without a lock. A reader between two writes finds a
/// `check` that does not match the rest, and treats the cell as empty.
#[derive(Debug, Default)]
struct LevelCell {
    check: AtomicU64,
    remaining: AtomicU64,
    instant: AtomicU64,
    /// The `check` of the level that was last applied to a local bucket; 0 if none was.
    applied: AtomicU64,
}

/// The last known level of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LastLevel {
    /// Whole units that were left.
    pub(super) remaining: u64,
    /// For a token bucket, the time of that level; for a window, the time when it will be full. By the clock
    /// of this process, because the store's may differ by hours.
    pub(super) instant: Timestamp,
    /// True if no local bucket has been [adjusted](LevelCache::apply) to it since it was received.
    pub(super) is_news: bool,
    check: u64,
}

impl Default for LevelCache {
    fn default() -> Self {
        Self {
            hasher: RandomState::default(),
            places: (0..PLACES).map(|_| LevelCell::default()).collect(),
        }
    }
}

impl LevelCache {
    /// Remembers the outcome of a bucket.
    pub(super) fn note(&self, ask: &Ask<'_>, outcome: &Outcome, now: Timestamp) {
        let instant = match ask.quota.algorithm() {
            Algorithm::TokenBucket => now,
            Algorithm::FixedWindow(_)
            | Algorithm::SlidingWindow
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => now.plus(outcome.reset_us),
        };
        let fingerprint = self.fingerprint(ask);
        if let Some(place) = self.place(fingerprint) {
            let (remaining, instant) = (outcome.remaining, instant.as_micros());
            place.remaining.store(remaining, Relaxed);
            place.instant.store(instant, Relaxed);
            place.applied.store(0, Relaxed);
            let check = mixed(fingerprint, remaining, instant);
            place.check.store(check, Relaxed);
        }
    }

    /// Returns the last known level of a bucket, if it is still remembered.
    pub(super) fn get(&self, ask: &Ask<'_>) -> Option<LastLevel> {
        let fingerprint = self.fingerprint(ask);
        let place = self.place(fingerprint)?;
        let (remaining, instant) = (place.remaining.load(Relaxed), place.instant.load(Relaxed));
        let check = mixed(fingerprint, remaining, instant);
        (place.check.load(Relaxed) == check).then(|| LastLevel {
            remaining,
            instant: Timestamp::from_micros(instant),
            is_news: place.applied.load(Relaxed) != check,
            check,
        })
    }

    /// Records that a local bucket has been adjusted to the level `heard`. A level noted later is news again.
    pub(super) fn apply(&self, ask: &Ask<'_>, heard: &LastLevel) {
        if let Some(place) = self.place(self.fingerprint(ask)) {
            place.applied.store(heard.check, Relaxed);
        }
    }

    /// Returns a hash that identifies the bucket; never 0, so that an empty cell matches no bucket.
    fn fingerprint(&self, ask: &Ask<'_>) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(ask.bucket);
        hasher.write_u64(ask.quota.id().as_u64());
        hasher.finish().max(1)
    }

    fn place(&self, fingerprint: u64) -> Option<&LevelCell> {
        let last = self.places.len().saturating_sub(1);
        self.places
            .get(usize::try_from(fingerprint >> 32).ok()? & last)
    }
}

fn mixed(fingerprint: u64, remaining: u64, instant: u64) -> u64 {
    let [a, b] = MIX;
    fingerprint ^ remaining.wrapping_mul(a) ^ instant.wrapping_mul(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_core::{Quota, Wait};

    #[test]
    fn the_last_received_level_counts() {
        let known = LevelCache::default();
        let quota = Quota::new(10, 1_000_000).build().unwrap();
        let other = Quota::new(10, 2_000_000).build().unwrap();
        let outcome = |remaining| Outcome::new(remaining, Wait::NONE, 7);
        let now = Timestamp::from_micros(1_000);
        let ask = Ask::look(b"a", &quota);
        assert_eq!(known.get(&ask), None);
        for remaining in [3, 9] {
            known.note(&ask, &outcome(remaining), now);
            let heard = known.get(&ask).unwrap();
            assert_eq!((heard.remaining, heard.is_news), (remaining, true));
            known.apply(&ask, &heard);
            assert!(!known.get(&ask).unwrap().is_news);
        }
        known.note(&ask, &outcome(9), now);
        assert!(known.get(&ask).unwrap().is_news, "even for the same level");
        assert_eq!(known.get(&ask).unwrap().instant, now);
        assert_eq!(known.get(&Ask::look(b"a", &other)), None);
        assert_eq!(known.get(&Ask::look(b"b", &quota)), None);
    }

    #[test]
    fn colliding_buckets_evict_and_never_answer_for_each_other() {
        let known = LevelCache::default();
        let quota = Quota::new(10, 1_000_000).build().unwrap();
        let count = 3 * PLACES as u64;
        let note = |n: u64| {
            let outcome = Outcome::new(n, Wait::NONE, 0);
            let name = n.to_be_bytes();
            known.note(&Ask::look(&name, &quota), &outcome, Timestamp::default());
        };
        (0..count).for_each(note);
        let mut found = 0;
        for n in 0..count {
            if let Some(heard) = known.get(&Ask::look(&n.to_be_bytes(), &quota)) {
                assert_eq!(heard.remaining, n);
                found += 1;
            }
        }
        assert!((1..=PLACES).contains(&found), "{found}");
    }
}
