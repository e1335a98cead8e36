//! Reading all words of a table while other threads change it.
//!
//! No lock is taken: each slot is read like any other reader reads it, so that its word was its key's.
//! Slots are read one after the other. A key that gets a slot behind the reader is missed; the second
//! walk, which reads only slots that the first did not, finds those that came before it.

use super::{SET, SlotIndex, WordTable};

/// Reads of a slot that others take over at the same time, before it is left out.
const TRIES_MAX: u32 = 8;

/// Notes of the first walk: for each slot, eight bits of the key that was there, or 0.
///
/// A key that takes over a slot between two walks is missed by the second if it has the same eight
/// bits as the key before, one in 255.
#[derive(Debug)]
pub(crate) struct SlotTags(Vec<u8>);

impl SlotTags {
    /// Returns tags of no keys, a byte for each slot of `table`.
    pub(crate) fn of(table: &WordTable) -> Self {
        Self(vec![0; table.slots()])
    }

    /// Notes a key. Returns false if it was noted already.
    fn note(&mut self, slot: usize, fingerprint: u64) -> bool {
        let tag = u8::try_from(fingerprint >> 24 & 0xff).unwrap_or(0).max(1);
        match self.0.get_mut(slot) {
            Some(known) if *known != tag => {
                *known = tag;
                true
            }
            _ => false,
        }
    }
}

impl WordTable {
    /// Calls `see` with the key and the word of every slot that `tags` has not noted, and notes it.
    /// `is_kept` chooses the words that matter. Ends at the first error.
    ///
    /// Sets in which no slot was ever used are skipped, so that a large table that is hardly used
    /// stays out of memory.
    pub(crate) fn walk<E>(
        &self,
        tags: &mut SlotTags,
        is_kept: impl Fn(u64) -> bool,
        mut see: impl FnMut(u64, u64) -> Result<(), E>,
    ) -> Result<(), E> {
        for set in (0..=self.set_mask).filter(|set| self.used(*set) > 0) {
            let first = set.wrapping_mul(SET);
            for slot in first..first.wrapping_add(SET) {
                if let Some((fingerprint, word)) = self.read(SlotIndex(slot))
                    && is_kept(word)
                    && tags.note(slot, fingerprint)
                {
                    see(fingerprint, word)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the key and the word of a slot. `None` if it was never used, its key has left it, or it
    /// is taken over all the time: then its key is new.
    fn read(&self, place: SlotIndex) -> Option<(u64, u64)> {
        for _ in 0..TRIES_MAX {
            let fingerprint = self.fingerprint(place);
            if fingerprint == 0 || fingerprint == super::claim::NOBODY {
                return None;
            }
            if let Ok(word) = self.load(place, fingerprint) {
                return Some((fingerprint, word));
            }
        }
        None
    }
}
