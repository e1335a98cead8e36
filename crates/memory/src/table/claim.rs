//! Claiming, taking over and leaving slots: all code that writes a fingerprint, under its stripe.
//!
//! A claim prefers, in this order: the key's own slot, a slot that was never used or has been full
//! for a second, and a slot that is full at this moment. If both sets of the key have none, the
//! table is full for this key.

use super::{MutexGuard, SET, SPILLED, SlotIndex, TableFull, WordSlot, WordTable, start_of};
use crate::word::{self, LOCKED};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// Time that a full bucket keeps its slot while there are other free slots: one second.
const REST_US: u64 = 1_000_000;

/// Slots of its home set that may matter before a new key looks at its other set.
const CROWDED: usize = SET / 2;

/// Fingerprint of a slot that was [vacated](WordTable::vacate). A key with the same fingerprint,
/// one in 2^64, finds the same there as anywhere: a full bucket.
pub(super) const NOBODY: u64 = u64::MAX;

/// A set, and its load.
struct Survey {
    /// Number of the set.
    nth: usize,
    /// Slots that hold a bucket that mattered a while ago.
    live: usize,
    /// True if all slots hold a bucket that matters now.
    is_full: bool,
}

impl WordTable {
    /// Finds or claims a slot for `fingerprint`; a claimed one starts with `word`. Returns true if
    /// it was claimed.
    ///
    /// `now` decides which buckets are full and may be taken over. The caller holds the
    /// fingerprint's stripe, and keeps holding it if the slot must not be taken over.
    ///
    /// # Errors
    ///
    /// [`TableFull`] if every slot in both sets of the key holds a bucket that matters at `now`.
    pub(crate) fn claim(
        &self,
        stripe: &mut MutexGuard<'_, u64>,
        fingerprint: u64,
        word: u64,
        now: u64,
    ) -> Result<(SlotIndex, bool), TableFull> {
        if let Some(place) = self.find(fingerprint) {
            return Ok((place, false));
        }
        // A bucket that drains within milliseconds is full most of the time, and yet in constant
        // use: while there is room, it keeps its slot for a while.
        let rested = now.saturating_sub(REST_US);
        let sets = self.emptier_first(fingerprint, (rested, now));
        for fresh_by in [rested, now] {
            for set in sets.iter().filter(|set| !set.is_full) {
                let (key, by) = ((fingerprint, set.nth), (fresh_by, now));
                if let Some(place) = self.seize(key, word, by, stripe) {
                    return Ok((place, true));
                }
            }
        }
        Err(TableFull)
    }

    /// Returns the two sets of a key, the preferred one for a claim first.
    fn emptier_first(&self, fingerprint: u64, by: (u64, u64)) -> [Survey; 2] {
        let nth = self.home(fingerprint);
        let unseen = |nth| Survey {
            nth,
            live: 0,
            is_full: false,
        };
        let other = unseen(self.other(nth, fingerprint));
        // The usual case, in one load: there is a slot that was never used.
        if self.used(nth) < CROWDED {
            return [unseen(nth), other];
        }
        let home = self.survey(nth, by);
        if home.live < CROWDED {
            return [home, other];
        }
        let other = self.survey(other.nth, by);
        if other.live < home.live {
            [other, home]
        } else {
            [home, other]
        }
    }

    /// Counts the slots of a set that hold a bucket that mattered a while ago, and returns true if
    /// all of them hold one that matters now.
    fn survey(&self, nth: usize, (rested, now): (u64, u64)) -> Survey {
        let (mut live, mut is_full) = (0_usize, true);
        for [key, state] in self.slots_of(nth) {
            let (is_used, word) = (key.load(Relaxed) != 0, state.load(Relaxed));
            live = live.wrapping_add(usize::from(is_used && !word::is_fresh(word, rested)));
            is_full &= is_used && !word::is_fresh(word, now);
        }
        Survey { nth, live, is_full }
    }

    /// Claims the first slot of a set that was never used, or whose bucket was full by `fresh_by`.
    fn seize(
        &self,
        (fingerprint, set): (u64, usize),
        word: u64,
        (fresh_by, now): (u64, u64),
        stripe: &mut MutexGuard<'_, u64>,
    ) -> Option<SlotIndex> {
        probe(set, fingerprint).find(|place| {
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
                if unused {
                    self.mark(set, |mark| mark.wrapping_add(1));
                } else {
                    **stripe = now.max(**stripe);
                }
                let home = self.home(fingerprint);
                if set != home {
                    self.mark(home, |mark| mark | SPILLED);
                }
                key.store(fingerprint, Release);
                state.store(word, Release);
            }
            seized
        })
    }

    /// Returns true if `fingerprint` has a slot or could claim one at `now`. The caller holds its
    /// stripe, so that no other thread claims one; but the bucket in it may be charged meanwhile.
    pub(crate) fn has_room(
        &self,
        _stripe: &MutexGuard<'_, u64>,
        fingerprint: u64,
        now: u64,
    ) -> bool {
        let home = self.home(fingerprint);
        let is_free = |slot: &WordSlot| {
            let [key, state] = slot;
            let key = key.load(Relaxed);
            key == 0 || key == fingerprint || word::is_fresh(state.load(Acquire), now)
        };
        [home, self.other(home, fingerprint)]
            .into_iter()
            .any(|set| self.slots_of(set).iter().any(is_free))
    }

    /// Takes the word of `fingerprint`, if it has a slot, and frees the slot. The caller holds its
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

    /// Returns the slots of a set.
    fn slots_of(&self, set: usize) -> &[WordSlot] {
        let first = set.wrapping_mul(SET);
        let slots = self.slots.get(first..first.wrapping_add(SET));
        slots.unwrap_or_default()
    }

    /// Returns the number of slots of a set that were ever used.
    pub(super) fn used(&self, set: usize) -> usize {
        let mark = self.marks.get(set).map_or(0, |mark| mark.load(Relaxed));
        usize::from(mark & !SPILLED)
    }

    /// Changes the marks of a set. The caller holds its stripe, so that no other thread does.
    fn mark(&self, set: usize, change: impl Fn(u8) -> u8) {
        if let Some(mark) = self.marks.get(set) {
            mark.store(change(mark.load(Relaxed)), Release);
        }
    }
}

/// Iterates over the slots of a set in the search order of `fingerprint`.
fn probe(set: usize, fingerprint: u64) -> impl Iterator<Item = SlotIndex> {
    let (first, start) = (set * SET, start_of(fingerprint));
    (0..SET).map(move |step| SlotIndex(first + (start + step) % SET))
}
