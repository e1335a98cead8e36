//! Fingerprints and words: a table that is allocated once and never grows.
//!
//! ```text
//! sets:   ┌ set 0 ─────────────────┐┌ set 1 ─────────────────┐ …        chosen by the fingerprint
//! slots:  │ fp word │ fp word │ …  ││ fp word │ fp word │ …  │          64 in a set, 16 bytes each
//!         └────────────────────────┘└────────────────────────┘
//! ```
//!
//! A key has two sets, its *home* and one *other*, both of one stripe (the mutex for claiming
//! slots). It gets a slot at home while fewer than half of the slots there hold a bucket that
//! matters, and in the emptier of the two after that. So a table rejects no key before 90 % of its
//! slots are in use; with one set for each key that happened at 58 %. A set from which a key went
//! to its other set is marked as *spilled*, permanently: only then is the other set searched after
//! a miss.
//!
//! Within a set, the search begins at a slot that the fingerprint determines and wraps around; it
//! ends at the key or at a slot that was never used. Slots go from *never used* to *used* and never
//! back: a bucket that is full again leaves its slot by being **taken over** by another key. So no
//! search is ever cut short by a removal, and nothing needs sweeping.
//!
//! Rules for writers and readers:
//!
//! 1. A thread that has found its key changes the word by compare-and-swap, from the value that it
//!    decided on.
//! 2. A fingerprint is written only under the stripe's mutex, so that no key ever gets two slots,
//!    and only while the slot's word is locked, so that (1) cannot succeed meanwhile. The mark of a
//!    spilled set is written before the fingerprint: a reader that misses it claims a slot, and
//!    then finds the key under the mutex.
//! 3. A reader reads the fingerprint, the word, and the fingerprint again. If both are its key, the
//!    word was its key's when it was read: had the slot been taken over before, the new word would
//!    have brought the new fingerprint with it (release, acquire).
//! 4. A swap that follows cannot hit another key's word by mistake, because words only ever move
//!    forward in time. A takeover writes an instant later than any before it, even for a full
//!    bucket ([`word::fresh`]). (A reset, a refund and a vacated slot, the exceptions, would have
//!    to be followed by a takeover to the very same microsecond and fraction between a neighbour's
//!    load and swap.)

mod claim;
#[cfg(not(loom))]
mod walk;

#[cfg(not(loom))]
pub(crate) use walk::SlotTags;

use crate::sync::{AtomicU8, AtomicU64, Mutex, MutexGuard, SpinBackoff};
use crate::word::{self, LOCKED};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Number of slots in a set. Sets are large so that most keys find a slot at home, and a search
/// there ends after one or two slots.
#[cfg(not(loom))]
const SET: usize = 64;
/// Number of slots in a set, in models by loom.
#[cfg(loom)]
const SET: usize = 2;

/// Maximum number of mutexes for claiming slots; sets share them.
const STRIPES_MAX: usize = 256;

/// Minimum number of sets of one stripe, if the table has as many: the two sets of a key are of one
/// stripe.
const STRIPE_SETS_MIN: usize = 64;

/// Mark of a set from which a key went to its other set. The bits below count the slots ever used.
const SPILLED: u8 = 1 << 7;

/// A fingerprint and a word. Zero means never used.
type WordSlot = [AtomicU64; 2];

/// Index of a key's slot in the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SlotIndex(usize);

/// Error: the slot belongs to another key by now. The caller searches again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotRetaken;

/// Error: every slot that the key could use holds a bucket that still matters. The caller uses the
/// overflow bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableFull;

/// A table of words by fingerprint. See the [module](self) for its layout and rules.
///
/// ```
/// use tidegate_memory::table::WordTable;
///
/// let table = WordTable::new(1_000).expect("memory for a small table");
/// assert!(table.slots() >= 2_000);
/// assert_eq!(table.live(0), 0);
/// assert!(table.find(42).is_none());
/// ```
pub struct WordTable {
    /// All slots, set by set.
    slots: Box<[WordSlot]>,
    /// One less than the number of sets, which is a power of two.
    set_mask: usize,
    /// [`SPILLED`] and the number of slots ever used, for each set. Written under its stripe.
    marks: Box<[AtomicU8]>,
    /// Mutexes, a power of two of them. Each holds the latest instant at which one of its slots was
    /// taken over.
    stripes: Box<[Mutex<u64>]>,
}

impl WordTable {
    /// Creates a table with room for `keys` keys at half load; `None` if the system has no room for
    /// it.
    ///
    /// The number of sets is the next power of two, so a table may have up to twice the slots.
    pub fn new(keys: usize) -> Option<Self> {
        let sets = keys
            .saturating_mul(2)
            .div_ceil(SET)
            .max(1)
            .checked_next_power_of_two()?;
        Some(Self {
            slots: zeroed(sets.checked_mul(SET)?)?,
            set_mask: sets.saturating_sub(1),
            marks: zeroed_marks(sets)?,
            stripes: (0..(sets / STRIPE_SETS_MIN).clamp(1, STRIPES_MAX))
                .map(|_| Mutex::default())
                .collect(),
        })
    }

    /// Returns the slot of `fingerprint`, which must not be 0, if it has one. Takes no lock.
    ///
    /// The slot may be taken over at any time after that; [`load`](Self::load) and
    /// [`lock`](Self::lock) detect it.
    #[inline]
    pub fn find(&self, fingerprint: u64) -> Option<SlotIndex> {
        let home = self.home(fingerprint);
        self.find_in(home, fingerprint)
            .or_else(|| self.find_spilled(home, fingerprint))
    }

    /// Searches the other set for a key that is not in its home set.
    #[inline(never)]
    fn find_spilled(&self, home: usize, fingerprint: u64) -> Option<SlotIndex> {
        let is_spilled = self.marks.get(home)?.load(Acquire) & SPILLED != 0;
        is_spilled
            .then(|| self.find_in(self.other(home, fingerprint), fingerprint))
            .flatten()
    }

    /// Searches one set; ends at the key or at a slot that was never used.
    #[inline]
    fn find_in(&self, nth: usize, fingerprint: u64) -> Option<SlotIndex> {
        let first = nth.wrapping_mul(SET);
        let set: &[WordSlot; SET] = self.slots.get(first..)?.first_chunk()?;
        let start = start_of(fingerprint);
        for step in 0..SET {
            let nth = (start.wrapping_add(step)) % SET;
            let [key, _] = set.get(nth)?;
            match key.load(Acquire) {
                found if found == fingerprint => return Some(SlotIndex(first.wrapping_add(nth))),
                0 => return None,
                _ => {}
            }
        }
        None
    }

    /// Returns the number of the stripe that guards the fingerprints of both sets of `fingerprint`.
    /// Callers that hold several lock them in rising order.
    pub fn stripe_of(&self, fingerprint: u64) -> usize {
        self.home(fingerprint) % self.stripes.len().max(1)
    }

    /// Locks a stripe, so that no other thread writes fingerprints into its sets. Returns the
    /// latest instant at which one of their slots was taken over. As of an earlier instant, a key
    /// without a slot need not be full, because it may have come and gone since.
    #[expect(
        clippy::indexing_slicing,
        reason = "stripes are named by `stripe_of` alone, which stays within them"
    )]
    pub(crate) fn hold(&self, stripe: usize) -> MutexGuard<'_, u64> {
        self.stripes[stripe].lock()
    }

    /// Returns the unlocked word of `fingerprint` at `place`; waits while another thread has it
    /// locked.
    ///
    /// It reads the word and then the fingerprint, so that the word was the key's at the time of
    /// the read (rule 3 of the [module](self)).
    ///
    /// # Errors
    ///
    /// [`SlotRetaken`] if the slot belongs to another key by now.
    #[inline]
    pub fn load(&self, place: SlotIndex, fingerprint: u64) -> Result<u64, SlotRetaken> {
        let mut backoff = SpinBackoff::default();
        loop {
            let word = self.word(place).load(Acquire);
            if self.fingerprint(place) != fingerprint {
                return Err(SlotRetaken);
            }
            if word & LOCKED == 0 {
                return Ok(word);
            }
            backoff.wait();
        }
    }

    /// Replaces the word `old` by `new`. Returns true if `old` was still there.
    ///
    /// A failure means that another thread has charged, locked or taken over the slot since `old`
    /// was read. The caller decides again from the present word.
    #[inline]
    pub fn swap(&self, place: SlotIndex, old: u64, new: u64) -> bool {
        self.word(place)
            .compare_exchange(old, new, AcqRel, Relaxed)
            .is_ok()
    }

    /// Locks the word of `fingerprint` and returns it. Callers that lock several do so in the order
    /// of their places.
    ///
    /// While the word is locked, every [`swap`](Self::swap) fails and every [`load`](Self::load)
    /// waits. So a caller holds a lock for nanoseconds only, and never while it waits for a mutex.
    ///
    /// # Errors
    ///
    /// [`SlotRetaken`] if the slot belongs to another key by now.
    #[inline]
    pub fn lock(&self, place: SlotIndex, fingerprint: u64) -> Result<u64, SlotRetaken> {
        loop {
            let word = self.load(place, fingerprint)?;
            if self.swap(place, word, word | LOCKED) {
                return Ok(word);
            }
        }
    }

    /// Unlocks a word that the caller has locked, and leaves `word` in it.
    ///
    /// # Panics
    ///
    /// In debug builds, if `word` has its lock bit set.
    #[inline]
    pub fn unlock(&self, place: SlotIndex, word: u64) {
        debug_assert_eq!(word & LOCKED, 0, "unlocking leaves no lock");
        self.word(place).store(word, Release);
    }

    /// Returns the number of slots.
    pub fn slots(&self) -> usize {
        self.slots.len()
    }

    /// Counts the slots that hold a bucket that still matters at `now`. Reads the whole table.
    pub fn live(&self, now: u64) -> usize {
        let is_live = |slot: &&WordSlot| {
            let [key, state] = slot;
            key.load(Relaxed) != 0 && !word::is_fresh(state.load(Relaxed), now)
        };
        self.slots.iter().filter(is_live).count()
    }

    /// Returns the number of the set that is searched first for `fingerprint`.
    #[inline]
    fn home(&self, fingerprint: u64) -> usize {
        // The high half chooses the set, the low bits the slot in it, so that they are independent.
        usize::try_from(fingerprint >> 32).unwrap_or(0) & self.set_mask
    }

    /// Returns the other set of a key that has its home in `home`, of the same stripe; `home`
    /// itself if the table has one set.
    fn other(&self, home: usize, fingerprint: u64) -> usize {
        let stripes = self.stripes.len();
        let bits = usize::try_from(fingerprint >> 8 & 0xff_ffff).unwrap_or(0);
        // The number of the stripe is in the lower bits, which stay.
        match bits.wrapping_mul(stripes) & self.set_mask {
            0 => home ^ (stripes & self.set_mask),
            chosen => home ^ chosen,
        }
    }

    /// Returns the fingerprint in a slot; 0 if it was never used.
    #[inline]
    fn fingerprint(&self, place: SlotIndex) -> u64 {
        match self.slots.get(place.0) {
            Some([key, _]) => key.load(Acquire),
            None => 0,
        }
    }

    /// Returns the word in a slot.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "places are made by `find_in` and `probe` alone, which stay within the table"
    )]
    fn word(&self, place: SlotIndex) -> &AtomicU64 {
        let [_, state] = &self.slots[place.0];
        state
    }
}

impl std::fmt::Debug for WordTable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("slots", &self.slots.len())
            .finish_non_exhaustive()
    }
}

/// Returns the position in a set at which the search for `fingerprint` begins.
#[inline]
fn start_of(fingerprint: u64) -> usize {
    usize::try_from(fingerprint & 0xffff).unwrap_or(0)
}

/// Allocates slots that were never used; `None` if the system has no room for them. It hands out
/// zeroed pages as they are touched, so a large table costs nothing until it is used.
#[cfg(not(loom))]
fn zeroed(slots: usize) -> Option<Box<[WordSlot]>> {
    bytemuck::try_zeroed_slice_box(slots).ok()
}

/// Allocates marks of sets that were never used.
#[cfg(not(loom))]
fn zeroed_marks(sets: usize) -> Option<Box<[AtomicU8]>> {
    bytemuck::try_zeroed_slice_box(sets).ok()
}

/// Allocates marks of loom's atomics.
#[cfg(loom)]
#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn zeroed_marks(sets: usize) -> Option<Box<[AtomicU8]>> {
    Some((0..sets).map(|_| AtomicU8::new(0)).collect())
}

/// Allocates slots of loom's atomics.
#[cfg(loom)]
#[expect(clippy::unnecessary_wraps, reason = "as above")]
fn zeroed(slots: usize) -> Option<Box<[WordSlot]>> {
    let slot = || [AtomicU64::new(0), AtomicU64::new(0)];
    Some((0..slots).map(|_| slot()).collect())
}
