//! Fingerprints and words: a table that is laid out once and never grows.
//!
//! ```text
//! sets:   ┌ set 0 ─────────────────┐┌ set 1 ─────────────────┐ …        chosen by the fingerprint
//! slots:  │ fp word │ fp word │ …  ││ fp word │ fp word │ …  │          64 in a set, 16 bytes each
//!         └────────────────────────┘└────────────────────────┘
//! ```
//!
//! A key lives in one set. Within it, the search begins at a slot that the fingerprint names and
//! goes round; it ends at the key or at a slot that was never used. Slots go from *never used* to
//! *used* and never back: a bucket that is as good as new leaves its slot by being **taken over**
//! by another key. So no search is ever cut short by a removal, and nothing needs sweeping.
//!
//! Who may write what:
//!
//! 1. Anybody who has found their key changes its word by compare-and-swap, from the value they
//!    decided on.
//! 2. A fingerprint is written only under the set's mutex, so that no key ever gets two slots, and
//!    only while the slot's word is locked, so that (1) cannot succeed meanwhile.
//! 3. A reader reads the fingerprint, the word, and the fingerprint again. If both are its key,
//!    the word was its key's when it was read: had the slot been taken over before, the new word
//!    would have brought the new fingerprint with it (release, acquire).
//! 4. A swap that follows cannot hit another key's word by mistake, because words only ever move
//!    forward in time: whoever takes a slot over writes an instant later than any before it, even
//!    for a bucket that is as good as new ([`word::fresh`]). (A reset, a give-back and a vacated
//!    slot, the exceptions, would have to be followed by a takeover to the very same microsecond and fraction
//!    between a neighbour's load and swap.)

use crate::sync::{AtomicU64, Backoff, Mutex, MutexGuard};
use crate::word::{self, LOCKED};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Slots in a set. Sets are large so that, with the table half full, one that overflows is a once in
/// ten thousand tables event, and a search still ends after one or two slots.
#[cfg(not(loom))]
const SET: usize = 64;
#[cfg(loom)]
const SET: usize = 2;

/// How long a bucket that is as good as new keeps its slot while there are others: one second.
const REST_US: u64 = 1_000_000;

/// Mutexes for claiming slots; sets share them.
const STRIPES_MAX: usize = 256;

/// The fingerprint of a slot that was [vacated](Table::vacate). A key that is known by the same, one in
/// 2^64, finds there what it would find anywhere: a bucket as good as new.
const NOBODY: u64 = u64::MAX;

/// A fingerprint and a word. Zero means never used.
type Slot = [AtomicU64; 2];

/// Where a key's slot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(usize);

/// The slot belongs to another key by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved;

/// Every slot that the key could use holds a bucket that still matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full;

/// The table.
pub struct Table {
    slots: Box<[Slot]>,
    /// One less than the number of sets, which is a power of two.
    set_mask: usize,
    /// Each holds the latest instant at which one of its slots was taken over.
    stripes: Box<[Mutex<u64>]>,
}

impl Table {
    /// A table with room for `keys` keys at half load, or `None` where the system has no room for it.
    pub fn new(keys: usize) -> Option<Self> {
        let sets = keys
            .saturating_mul(2)
            .div_ceil(SET)
            .max(1)
            .checked_next_power_of_two()?;
        Some(Self {
            slots: zeroed(sets.checked_mul(SET)?)?,
            set_mask: sets.saturating_sub(1),
            stripes: (0..sets.min(STRIPES_MAX))
                .map(|_| Mutex::default())
                .collect(),
        })
    }

    /// The slot of `fingerprint`, which must not be 0, if it has one.
    #[inline]
    pub fn find(&self, fingerprint: u64) -> Option<Place> {
        let first = self.first_slot(fingerprint);
        let set: &[Slot; SET] = self.slots.get(first..)?.first_chunk()?;
        let start = start_of(fingerprint);
        for step in 0..SET {
            let nth = (start.wrapping_add(step)) % SET;
            let [key, _] = set.get(nth)?;
            match key.load(Acquire) {
                found if found == fingerprint => return Some(Place(first.wrapping_add(nth))),
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Which mutex guards the fingerprints of the set that `fingerprint` lives in. Callers that hold
    /// several take them in rising order.
    pub fn stripe_of(&self, fingerprint: u64) -> usize {
        self.set(fingerprint) % self.stripes.len().max(1)
    }

    /// Keeps everybody else from writing fingerprints into the sets of a stripe. Tells the latest
    /// instant at which a slot of theirs was taken over: as of an earlier one, a key that has no slot
    /// need not be as good as new, for it may have come and gone since.
    #[expect(
        clippy::indexing_slicing,
        reason = "stripes are named by `stripe_of` alone, which stays within them"
    )]
    pub(crate) fn hold(&self, stripe: usize) -> MutexGuard<'_, u64> {
        self.stripes[stripe].lock()
    }

    /// Finds or claims a slot for `fingerprint`; a claimed one starts with `word`. Tells whether it
    /// was claimed.
    ///
    /// `now` decides which buckets are as good as new and may be taken over. The caller holds the
    /// fingerprint's stripe, and goes on holding it if the slot must not be taken over.
    pub(crate) fn claim(
        &self,
        stripe: &mut MutexGuard<'_, u64>,
        fingerprint: u64,
        word: u64,
        now: u64,
    ) -> Result<(Place, bool), Full> {
        if let Some(place) = self.find(fingerprint) {
            return Ok((place, false));
        }
        // A bucket that drains within milliseconds is as good as new most of the time, and yet asked
        // for again and again: while there is room, it keeps its slot for a while.
        let rested = now.saturating_sub(REST_US);
        [rested, now]
            .into_iter()
            .find_map(|fresh_by| self.seize(fingerprint, word, (fresh_by, now), stripe))
            .ok_or(Full)
            .map(|place| (place, true))
    }

    /// Claims the first slot that was never used, or whose bucket was as good as new by `fresh_by`.
    fn seize(
        &self,
        fingerprint: u64,
        word: u64,
        (fresh_by, now): (u64, u64),
        stripe: &mut MutexGuard<'_, u64>,
    ) -> Option<Place> {
        self.probe(fingerprint).find(|place| {
            let Some([key, state]) = self.slots.get(place.0) else {
                return false;
            };
            let old = state.load(Acquire);
            let unused = key.load(Relaxed) == 0;
            let seized = (unused || word::is_fresh(old, fresh_by))
                && state
                    .compare_exchange(old, old | LOCKED, AcqRel, Relaxed)
                    .is_ok();
            if seized {
                if !unused {
                    **stripe = now.max(**stripe);
                }
                key.store(fingerprint, Release);
                state.store(word, Release);
            }
            seized
        })
    }

    /// Whether `fingerprint` has a slot or could claim one at `now`. The caller holds its stripe, so
    /// that nobody else claims one; but the bucket in it may be charged meanwhile.
    pub(crate) fn has_room(
        &self,
        _stripe: &MutexGuard<'_, u64>,
        fingerprint: u64,
        now: u64,
    ) -> bool {
        self.probe(fingerprint).any(|place| {
            let key = self.fingerprint(place);
            key == 0 || key == fingerprint || word::is_fresh(self.word(place).load(Acquire), now)
        })
    }

    /// Takes the word of `fingerprint`, if it has a slot, which is then nobody's. The caller holds its
    /// stripe.
    pub(crate) fn vacate(
        &self,
        stripe: &mut MutexGuard<'_, u64>,
        fingerprint: u64,
        now: u64,
    ) -> Option<u64> {
        let place = self.find(fingerprint)?;
        let word = self.lock(place, fingerprint).ok()?;
        **stripe = now.max(**stripe);
        if let Some([key, _]) = self.slots.get(place.0) {
            key.store(NOBODY, Release);
        }
        self.unlock(place, word::fresh(now));
        Some(word)
    }

    /// The unlocked word of `fingerprint` at `place`, once nobody has it locked.
    #[inline]
    pub fn load(&self, place: Place, fingerprint: u64) -> Result<u64, Moved> {
        let mut backoff = Backoff::default();
        loop {
            let word = self.word(place).load(Acquire);
            if self.fingerprint(place) != fingerprint {
                return Err(Moved);
            }
            if word & LOCKED == 0 {
                return Ok(word);
            }
            backoff.wait();
        }
    }

    /// Replaces the word `old` by `new`; gives back whether it was still there.
    #[inline]
    pub fn swap(&self, place: Place, old: u64, new: u64) -> bool {
        self.word(place)
            .compare_exchange(old, new, AcqRel, Relaxed)
            .is_ok()
    }

    /// Locks the word of `fingerprint` and gives it back. Callers that lock several do so in the
    /// order of their places.
    #[inline]
    pub fn lock(&self, place: Place, fingerprint: u64) -> Result<u64, Moved> {
        loop {
            let word = self.load(place, fingerprint)?;
            if self.swap(place, word, word | LOCKED) {
                return Ok(word);
            }
        }
    }

    /// Unlocks a word that the caller has locked, and leaves `word` in it.
    #[inline]
    pub fn unlock(&self, place: Place, word: u64) {
        debug_assert_eq!(word & LOCKED, 0, "unlocking leaves no lock");
        self.word(place).store(word, Release);
    }

    /// How many slots hold a bucket that still matters at `now`. Reads the whole table.
    pub fn live(&self, now: u64) -> usize {
        let is_live = |slot: &&Slot| {
            let [key, state] = slot;
            key.load(Relaxed) != 0 && !word::is_fresh(state.load(Relaxed), now)
        };
        self.slots.iter().filter(is_live).count()
    }

    #[inline]
    fn set(&self, fingerprint: u64) -> usize {
        // The high half chooses the set, the low bits the slot in it, so that they are independent.
        usize::try_from(fingerprint >> 32).unwrap_or(0) & self.set_mask
    }

    #[inline]
    fn first_slot(&self, fingerprint: u64) -> usize {
        self.set(fingerprint).wrapping_mul(SET)
    }

    fn probe(&self, fingerprint: u64) -> impl Iterator<Item = Place> + use<> {
        let first = self.first_slot(fingerprint);
        let start = start_of(fingerprint);
        (0..SET).map(move |step| Place(first + (start + step) % SET))
    }

    #[inline]
    fn fingerprint(&self, place: Place) -> u64 {
        match self.slots.get(place.0) {
            Some([key, _]) => key.load(Acquire),
            None => 0,
        }
    }

    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "places are made by `probe` alone, which stays within the table"
    )]
    fn word(&self, place: Place) -> &AtomicU64 {
        let [_, state] = &self.slots[place.0];
        state
    }
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("slots", &self.slots.len())
            .finish_non_exhaustive()
    }
}

/// Where in its set the search for `fingerprint` begins.
#[inline]
fn start_of(fingerprint: u64) -> usize {
    usize::try_from(fingerprint & 0xffff).unwrap_or(0)
}

/// Slots that were never used, if the system has room for them. It hands out zeroed pages as they are touched, so
/// a large table costs nothing until it is used.
#[cfg(not(loom))]
fn zeroed(slots: usize) -> Option<Box<[Slot]>> {
    bytemuck::try_zeroed_slice_box(slots).ok()
}

#[cfg(loom)]
#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn zeroed(slots: usize) -> Option<Box<[Slot]>> {
    let slot = || [AtomicU64::new(0), AtomicU64::new(0)];
    Some((0..slots).map(|_| slot()).collect())
}
