//! A request over a few buckets that are all words and all there: the usual request with several
//! limits or bands, decided without the machinery of [`several`](super::several).
//!
//! 1. Read every word and decide on it. If one refuses, the request is refused, and nothing has
//!    been written.
//! 2. Lock the words, each from the value that was read. If one has changed since, unlock and begin
//!    again, a few times; then leave it to the general way.
//! 3. Write and unlock.
//!
//! Everything out of the ordinary is left to the general way as well: a shadow, something other
//! than a take, a bucket that is not there yet, is asked for twice or is in somebody's hands, or
//! has a state to [settle](tidegate_core::Meter::settle).

use super::MemoryStore;
use crate::sync::SpinBackoff;
use crate::table::SlotIndex;
use crate::word::{LOCKED, with_state};
use tidegate_core::{Ask, ChargedOutcome, Clock, LimitMode, Op, Outcome, Outcomes, Timestamp};

/// Requests over more buckets than this are left to the general way.
const FEW: usize = 8;

/// How often it begins again because a word has changed meanwhile.
const TRIES_MAX: u32 = 8;

/// A word as it was read, and as it is to be.
#[derive(Clone, Copy, Default)]
struct WordChange {
    place: SlotIndex,
    old: u64,
    new: u64,
}

/// Whether a bucket is asked for twice: then the second has less room than it seems. Of a request that
/// passes, it is noticed when the words are locked.
fn is_any_twice(changes: &[WordChange]) -> bool {
    let mut rest = changes;
    while let [change, others @ ..] = rest {
        if others.iter().any(|other| other.place == change.place) {
            return true;
        }
        rest = others;
    }
    false
}

impl<C: Clock> MemoryStore<C> {
    /// Decides the request, if it is of the usual kind, and tells whether it passes. `outcomes` are
    /// of no use if it is not.
    ///
    /// The answer is written where it is to be in the end, for moving it costs as much as a bucket.
    #[inline]
    pub(super) fn decide_words(
        &self,
        asks: &[Ask<'_>],
        outcomes: &mut Outcomes,
        now: Timestamp,
    ) -> Option<bool> {
        let mut changes = [WordChange::default(); FEW];
        let changes = changes.get_mut(..asks.len())?;
        let mut backoff = SpinBackoff::default();
        // Whoever changes a word that all requests meet does so in a moment; the general way would
        // take longer than looking again.
        for _ in 0..TRIES_MAX {
            let passed = self.draft_words(asks, changes, outcomes, now)?;
            if !passed {
                if is_any_twice(changes) {
                    return None;
                }
                self.withdraw(asks, outcomes, now)?;
                return Some(false);
            }
            if self.lock_and_write(changes) {
                return Some(true);
            }
            *outcomes = Outcomes::new();
            backoff.wait();
        }
        None
    }

    /// Step 1: what is to become of each word, and whether the request passes.
    #[inline]
    fn draft_words(
        &self,
        asks: &[Ask<'_>],
        changes: &mut [WordChange],
        outcomes: &mut Outcomes,
        now: Timestamp,
    ) -> Option<bool> {
        let mut passed = true;
        for (ask, change) in asks.iter().zip(changes) {
            if ask.mode != LimitMode::Enforce || !self.is_word(ask.quota, now) {
                return None;
            }
            let fingerprint = self.fingerprint(ask.bucket, ask.quota);
            let place = self.table.find(fingerprint)?;
            let old = self.table.load(place, fingerprint).ok()?;
            let (outcome, new) = self.take_usual(ask, old, now)?;
            *change = WordChange { place, old, new };
            passed &= outcome.is_allowed();
            outcomes.push(outcome);
        }
        Some(passed)
    }

    /// Steps 2 and 3; fails if a word has changed since it was read, or is there twice.
    ///
    /// The order does not matter here, for nobody waits: a word that is locked already has changed.
    #[inline]
    fn lock_and_write(&self, changes: &[WordChange]) -> bool {
        for (nth, change) in changes.iter().enumerate() {
            let locked = change.old | LOCKED;
            if !self.table.swap(change.place, change.old, locked) {
                for locked in changes.iter().take(nth) {
                    self.table.unlock(locked.place, locked.old);
                }
                return false;
            }
        }
        for change in changes {
            self.table.unlock(change.place, change.new);
        }
        true
    }

    /// The request is refused: those who had room are not charged, and answer as to a look.
    fn withdraw(&self, asks: &[Ask<'_>], outcomes: &mut Outcomes, now: Timestamp) -> Option<()> {
        for (ask, outcome) in asks.iter().zip(outcomes.iter_mut()) {
            if outcome.is_allowed() {
                let fingerprint = self.fingerprint(ask.bucket, ask.quota);
                let place = self.table.find(fingerprint)?;
                let word = self.table.load(place, fingerprint).ok()?;
                let look = Ask {
                    op: Op::Look,
                    ..*ask
                };
                *outcome = self.step(&look, word, now).0.outcome;
            }
        }
        Some(())
    }

    /// What becomes of `word`, if it is of the usual kind.
    #[inline]
    fn take_usual(&self, ask: &Ask<'_>, word: u64, now: Timestamp) -> Option<(Outcome, u64)> {
        with_state!(ask.quota, State => self.take_word::<State>(ask, word, now))
    }

    #[inline]
    fn step(&self, ask: &Ask<'_>, word: u64, now: Timestamp) -> (ChargedOutcome, u64) {
        with_state!(ask.quota, State => self.step_word::<State>(ask, word, now))
    }
}
