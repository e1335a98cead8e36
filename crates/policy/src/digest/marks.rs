//! A map from digests to numbers, with one memory access per lookup.
//!
//! ```text
//! lines:  ┌ 64 bytes ─────────────────────────────────────────┐┌ …
//!         │ mark, number │ mark, number │ free   │ free       ││
//!         └───────────────────────────────────────────────────┘└ …
//! ```
//!
//! A line is the unit that a processor fetches. A digest is in the line that it selects or, if that is full,
//! in the next one with room. Lines are filled from their beginning and entries are never removed, so a line
//! with a free last place ends the search. With two thirds of all places occupied, nine of ten digests are in
//! the line that they select.

use super::mark::{TextDigest, part_of};
use std::hint::black_box;

/// The number of places in a line.
const PLACES: usize = 4;

/// The number that marks a free place.
const FREE: u32 = u32::MAX;

/// A digest and its number.
#[derive(Clone, Copy)]
struct DigestEntry {
    high: u64,
    low: u32,
    number: u32,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine([DigestEntry; PLACES]);

/// A map from digests to numbers.
#[derive(Default)]
pub(crate) struct Marks {
    lines: Vec<CacheLine>,
    len: usize,
}

/// The position of a digest, and its number. Positions in one table are distinct and below [`Marks::places`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DigestSlot {
    pub(crate) at: usize,
    pub(crate) number: u32,
}

impl Marks {
    /// Creates a table with room for this many digests.
    pub(crate) fn with_room(marks: usize) -> Self {
        // Two thirds full, with at least one free place: a free place ends a search.
        let places = marks.saturating_add(marks.div_ceil(2));
        let lines = places.checked_div(PLACES).unwrap_or(0).saturating_add(1);
        Self {
            lines: vec![CacheLine([DigestEntry::NONE; PLACES]); lines],
            len: 0,
        }
    }

    /// Returns the number of digests.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of places, occupied or free.
    pub(crate) fn places(&self) -> usize {
        self.lines.len().saturating_mul(PLACES)
    }

    /// Returns the number of digests that can be added.
    pub(crate) fn room(&self) -> usize {
        let most = self.places() / 3 * 2;
        most.saturating_sub(self.len)
    }

    /// Returns the position and the number of a digest, or `None` if it is absent.
    #[inline]
    pub(crate) fn find(&self, mark: TextDigest) -> Option<DigestSlot> {
        let first = part_of(mark.spread(), self.lines.len());
        let mut nth = first;
        loop {
            let CacheLine(slots) = self.lines.get(nth)?;
            // Compare all places without a branch: the matching place is unpredictable, and a mispredicted
            // branch would wait for the line before any other work starts.
            let (mut number, mut at) = (FREE, 0);
            for (place, slot) in slots.iter().enumerate() {
                let is_it = slot.is(mark);
                number = if is_it { slot.number } else { number };
                at = if is_it { place } else { at };
            }
            if number != FREE {
                let at = nth.wrapping_mul(PLACES).wrapping_add(at);
                return Some(DigestSlot { at, number });
            }
            if has_room(slots) {
                return None;
            }
            nth = self.after(nth);
        }
    }

    /// Starts to fetch the line of a digest without waiting for it. The caller can do other work before it
    /// looks the digest up.
    #[inline]
    pub(crate) fn fetch(&self, mark: TextDigest) {
        let nth = part_of(mark.spread(), self.lines.len());
        if let Some(CacheLine([first, ..])) = self.lines.get(nth) {
            // A read whose result is unused; `black_box` keeps the compiler from removing it.
            black_box(first.number);
        }
    }

    /// Adds a digest with its number and returns its position. Returns `None` if it is present already, if
    /// there is no [room](Self::room), or if the number is the one reserved for free places.
    pub(crate) fn add(&mut self, mark: TextDigest, number: u32) -> Option<usize> {
        if number == FREE || self.room() == 0 || self.find(mark).is_some() {
            return None;
        }
        let mut nth = part_of(mark.spread(), self.lines.len());
        loop {
            let CacheLine(slots) = self.lines.get_mut(nth)?;
            let mut free = slots.iter_mut().enumerate();
            if let Some((place, slot)) = free.find(|(_, slot)| slot.number == FREE) {
                let TextDigest { high, low } = mark;
                *slot = DigestEntry { high, low, number };
                self.len = self.len.saturating_add(1);
                return Some(nth.wrapping_mul(PLACES).wrapping_add(place));
            }
            nth = self.after(nth);
        }
    }

    /// Changes the capacity to this many digests, at least the present number. All positions change.
    pub(crate) fn resize(&mut self, marks: usize) {
        let mut resized = Self::with_room(marks.max(self.len));
        for (mark, number) in self.iter() {
            resized.add(mark, number);
        }
        *self = resized;
    }

    /// Returns all digests with their numbers, in arbitrary order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TextDigest, u32)> {
        let slots = self.lines.iter().flat_map(|CacheLine(slots)| slots);
        let taken = slots.filter(|slot| slot.number != FREE);
        taken.map(|slot| {
            let DigestEntry { high, low, number } = *slot;
            (TextDigest { high, low }, number)
        })
    }

    /// Returns its size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lines.capacity().saturating_mul(size_of::<CacheLine>())
    }

    #[inline]
    fn after(&self, nth: usize) -> usize {
        let next = nth.wrapping_add(1);
        if next < self.lines.len() { next } else { 0 }
    }
}

impl DigestEntry {
    const NONE: Self = Self {
        high: 0,
        low: 0,
        number: FREE,
    };

    #[inline]
    fn is(&self, mark: TextDigest) -> bool {
        // One comparison, because each would be a branch.
        (self.high ^ mark.high) | u64::from(self.low ^ mark.low) == 0
    }
}

/// Returns true if a line has a free place. Lines are filled from their beginning.
#[inline]
fn has_room(slots: &[DigestEntry; PLACES]) -> bool {
    let [.., last] = slots;
    last.number == FREE
}
