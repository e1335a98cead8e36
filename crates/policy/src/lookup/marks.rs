//! A number for each mark, found by one look into memory.
//!
//! ```text
//! lines:  ┌ 64 bytes ─────────────────────────────────────────┐┌ …
//!         │ mark, number │ mark, number │ free   │ free       ││
//!         └───────────────────────────────────────────────────┘└ …
//! ```
//!
//! A line is what a processor fetches at once. A mark is in the line that it names, or where that is
//! full in the next one; lines are filled from their beginning, and nothing is ever taken out, so that
//! the first line with a free end ends the search. With two thirds of all places taken, nine of ten
//! marks are in the line that they name.

use super::mark::{TextDigest, part_of};
use std::hint::black_box;

/// Places in a line.
const PLACES: usize = 4;

/// The number of nobody.
const FREE: u32 = u32::MAX;

/// A mark, and the number that goes with it.
#[derive(Clone, Copy)]
struct DigestEntry {
    high: u64,
    low: u32,
    number: u32,
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct CacheLine([DigestEntry; PLACES]);

/// A number for each mark.
#[derive(Default)]
pub(crate) struct Marks {
    lines: Vec<CacheLine>,
    len: usize,
}

/// Where a mark is, and its number. The places of one table are below [`Marks::places`], each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DigestSlot {
    pub(crate) at: usize,
    pub(crate) number: u32,
}

impl Marks {
    /// One with room for so many.
    pub(crate) fn with_room(marks: usize) -> Self {
        // Two thirds full, and at least one place that is free: it is what ends a search.
        let places = marks.saturating_add(marks.div_ceil(2));
        let lines = places.checked_div(PLACES).unwrap_or(0).saturating_add(1);
        Self {
            lines: vec![CacheLine([DigestEntry::NONE; PLACES]); lines],
            len: 0,
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many places there are, taken or free.
    pub(crate) fn places(&self) -> usize {
        self.lines.len().saturating_mul(PLACES)
    }

    /// How many more would fit.
    pub(crate) fn room(&self) -> usize {
        let most = self.places() / 3 * 2;
        most.saturating_sub(self.len)
    }

    /// Where a mark is, and the number that goes with it.
    #[inline]
    pub(crate) fn find(&self, mark: TextDigest) -> Option<DigestSlot> {
        let first = part_of(mark.spread(), self.lines.len());
        let mut nth = first;
        loop {
            let CacheLine(slots) = self.lines.get(nth)?;
            // All are looked at, and none by a branch: which of them it is cannot be foreseen, and whoever
            // guesses wrong waits for the line before anything else is begun.
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

    /// Begins to fetch the line that a mark names, and does not wait for it: whoever has something else
    /// to do before it asks for the mark has it done meanwhile.
    #[inline]
    pub(crate) fn fetch(&self, mark: TextDigest) {
        let nth = part_of(mark.spread(), self.lines.len());
        if let Some(CacheLine([first, ..])) = self.lines.get(nth) {
            // A look whose result nobody uses, and which is not left out for that.
            black_box(first.number);
        }
    }

    /// Adds a mark with its number: where it is now. `None` where it is there already, where there is no
    /// [room](Self::room), and where the number is that of nobody.
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

    /// Makes room for so many in all, and lets go of room for more. Every mark has another place then.
    pub(crate) fn resize(&mut self, marks: usize) {
        let mut resized = Self::with_room(marks.max(self.len));
        for (mark, number) in self.iter() {
            resized.add(mark, number);
        }
        *self = resized;
    }

    /// All of them, in no order that says anything.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (TextDigest, u32)> {
        let slots = self.lines.iter().flat_map(|CacheLine(slots)| slots);
        let taken = slots.filter(|slot| slot.number != FREE);
        taken.map(|slot| {
            let DigestEntry { high, low, number } = *slot;
            (TextDigest { high, low }, number)
        })
    }

    /// How many bytes it takes.
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
        // In one comparison, for each would be a branch.
        (self.high ^ mark.high) | u64::from(self.low ^ mark.low) == 0
    }
}

/// Whether a line has a free place: they are taken from its beginning.
#[inline]
fn has_room(slots: &[DigestEntry; PLACES]) -> bool {
    let [.., last] = slots;
    last.number == FREE
}
