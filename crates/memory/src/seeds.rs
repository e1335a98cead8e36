//! The seeds by which a store hashes the names of its buckets, so that clients cannot choose names that
//! collide.
//!
//! Seeds of a process are enough for a store that ends with it. A store that is written to a snapshot
//! needs seeds that a later process can have as well: there are only hashes in the snapshot, and no names.

use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::fmt;
#[cfg(not(loom))]
use std::hash::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Names of which the hashes are compared, one for each way in which names are hashed by their length.
const PROBES: [&[u8]; 6] = [
    b"",
    b"ip",
    b"api/ip:1",
    b"api/ip:192.0.2.1",
    b"api/per-client/ip:192.0.2.1",
    b"api/per-client/user:a-name-that-is-longer-than-any-of-the-others,route:/and/a/path/as/well",
];

/// The seeds of one store.
#[derive(Clone, Copy)]
pub(crate) struct HashSeeds {
    seed: u64,
    shared: &'static SharedSeed,
    /// The number that `shared` was made of; `None` if it is this process's own.
    kept: Option<u64>,
}

/// The seeds as two numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct KeptSeeds {
    pub(crate) seed: u64,
    pub(crate) shared: u64,
}

impl HashSeeds {
    /// Returns random seeds that end with this process.
    pub(crate) fn of_process() -> Self {
        #[cfg(not(loom))]
        let shared = SharedSeed::global_random();
        #[cfg(loom)]
        let shared = SharedSeed::global_fixed();
        Self {
            seed: random(),
            shared,
            kept: None,
        }
    }

    /// Returns random seeds that a snapshot can carry.
    #[cfg(not(loom))]
    pub(crate) fn to_keep() -> Self {
        Self::of(KeptSeeds {
            seed: random(),
            shared: random(),
        })
    }

    /// Returns the seeds that a snapshot carries.
    ///
    /// It takes 48 bytes that are never freed. A hasher borrows them for as long as the program runs,
    /// and a program opens few stores with snapshots.
    #[cfg(not(loom))]
    pub(crate) fn of(kept: KeptSeeds) -> Self {
        Self {
            seed: kept.seed,
            shared: Box::leak(Box::new(SharedSeed::from_u64(kept.shared))),
            kept: Some(kept.shared),
        }
    }

    /// Returns the seeds as numbers, if another process can have them.
    #[cfg(not(loom))]
    pub(crate) fn kept(&self) -> Option<KeptSeeds> {
        let shared = self.kept?;
        let seed = self.seed;
        Some(KeptSeeds { seed, shared })
    }

    /// Begins a hash of something that belongs to the band with this number.
    #[inline]
    pub(crate) fn hasher(&self, band: u64) -> impl Hasher + use<> {
        // Of the quality kind: every bit of it chooses a place somewhere.
        SeedableRandomState::with_seed(self.seed ^ band, self.shared).build_hasher()
    }

    /// Returns a hash of hashes. It differs if another version of the program, or another kind of
    /// machine, hashes names differently: then no bucket of a snapshot would be found.
    pub(crate) fn probe(&self) -> u64 {
        let mut all = self.hasher(1);
        for (band, name) in (2..).zip(PROBES) {
            let mut hasher = self.hasher(band);
            hasher.write(name);
            hasher.write_u64(band);
            all.write_u64(hasher.finish());
        }
        all.finish()
    }
}

// By hand: a client that knows the seeds can choose names that collide.
impl fmt::Debug for HashSeeds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HashSeeds").finish_non_exhaustive()
    }
}

/// Returns a random number.
#[cfg(not(loom))]
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

/// Returns the same number in every run of a model, because a run must be repeatable.
#[cfg(loom)]
fn random() -> u64 {
    crate::sync::SEED.get()
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{HashSeeds, KeptSeeds};
    use std::hash::Hasher;

    fn hash(seeds: &HashSeeds, name: &[u8]) -> u64 {
        let mut hasher = seeds.hasher(7);
        hasher.write(name);
        hasher.finish()
    }

    #[test]
    fn kept_seeds_hash_alike_in_another_store_and_others_do_not() {
        let seeds = HashSeeds::to_keep();
        let again = HashSeeds::of(seeds.kept().unwrap());
        assert_eq!(hash(&seeds, b"api/ip:1"), hash(&again, b"api/ip:1"));
        assert_eq!(seeds.probe(), again.probe());
        let other = HashSeeds::to_keep();
        assert_ne!(hash(&seeds, b"api/ip:1"), hash(&other, b"api/ip:1"));
        assert!(HashSeeds::of_process().kept().is_none());
    }

    /// A snapshot of an earlier version is of use only as long as this stays.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn names_are_hashed_as_in_every_version_before() {
        let seeds = HashSeeds::of(KeptSeeds { seed: 1, shared: 2 });
        assert_eq!(seeds.probe(), 2_403_479_314_785_683_686);
    }

    #[test]
    fn seeds_are_not_shown() {
        assert_eq!(format!("{:?}", HashSeeds::to_keep()), "HashSeeds { .. }");
    }
}
