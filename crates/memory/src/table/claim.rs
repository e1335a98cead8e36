//! Claiming, taking over and leaving slots: everything that writes a fingerprint, under its stripe.

use super::{MutexGuard, SET, SPILLED, SlotIndex, TableFull, WordSlot, WordTable, start_of};
use crate::word::{self, LOCKED};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

/// How long a bucket that is as good as new keeps its slot while there are others: one second.
const REST_US: u64 = 1_000_000;

/// Slots of its home set that may matter before a new key looks at its other set.
const CROWDED: usize = SET / 2;

/// The fingerprint of a slot that was [vacated](WordTable::vacate). A key that is known by the same, one in
/// 2^64, finds there what it would find anywhere: a bucket as good as new.
const NOBODY: u64 = u64::MAX;

/// A set, and how crowded it is.
struct Survey {
    nth: usize,
    live: usize,
    is_full: bool,
}

impl WordTable {
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
    ) -> Result<(SlotIndex, bool), TableFull> {
        if let Some(place) = self.find(fingerprint) {
            return Ok((place, false));
        }
        // A bucket that drains within milliseconds is as good as new most of the time, and yet asked
        // for again and again: while there is room, it keeps its slot for a while.
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

    /// The two sets of a key, the one to claim a slot in first.
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

    /// Counts the slots of a set that hold a bucket that mattered a while ago, and tells whether all of
    /// them hold one that matters now.
    fn survey(&self, nth: usize, (rested, now): (u64, u64)) -> Survey {
        let (mut live, mut is_full) = (0_usize, true);
        for [key, state] in self.slots_of(nth) {
            let (is_used, word) = (key.load(Relaxed) != 0, state.load(Relaxed));
            live = live.wrapping_add(usize::from(is_used && !word::is_fresh(word, rested)));
            is_full &= is_used && !word::is_fresh(word, now);
        }
        Survey { nth, live, is_full }
    }

    /// Claims the first slot of a set that was never used, or whose bucket was as good as new by
    /// `fresh_by`.
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

    /// Whether `fingerprint` has a slot or could claim one at `now`. The caller holds its stripe, so
    /// that nobody else claims one; but the bucket in it may be charged meanwhile.
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

    fn slots_of(&self, set: usize) -> &[WordSlot] {
        let first = set.wrapping_mul(SET);
        let slots = self.slots.get(first..first.wrapping_add(SET));
        slots.unwrap_or_default()
    }

    /// How many slots of a set were ever used.
    fn used(&self, set: usize) -> usize {
        let mark = self.marks.get(set).map_or(0, |mark| mark.load(Relaxed));
        usize::from(mark & !SPILLED)
    }

    /// Changes the marks of a set. The caller holds its stripe, so that nobody else does.
    fn mark(&self, set: usize, change: impl Fn(u8) -> u8) {
        if let Some(mark) = self.marks.get(set) {
            mark.store(change(mark.load(Relaxed)), Release);
        }
    }
}

/// The slots of a set in the order in which `fingerprint` is looked for.
fn probe(set: usize, fingerprint: u64) -> impl Iterator<Item = SlotIndex> {
    let (first, start) = (set * SET, start_of(fingerprint));
    (0..SET).map(move |step| SlotIndex(first + (start + step) % SET))
}
