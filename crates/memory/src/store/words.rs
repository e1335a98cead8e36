//! A request over a few buckets that all exist as words: the usual request with several limits or
//! bands, decided without the machinery of [`several`](super::several).
//!
//! 1. Read every word and decide on it. If one refuses, the request is refused, and nothing has
//!    been written.
//! 2. Lock the words, each from the value that was read. If one has changed since, unlock and start
//!    over, a few times; then use the general way.
//! 3. Write and unlock.
//!
//! Every other case uses the general way as well: a shadow, an operation other than a take, a
//! bucket that does not exist yet, occurs twice or is locked, or has a state to
//! [clamp](tidegate_core::BucketState::clamp_to_now).

use super::MemoryStore;
use crate::sync::SpinBackoff;
use crate::table::SlotIndex;
use crate::word::{LOCKED, with_state};
use tidegate_core::{Ask, ChargedOutcome, Clock, LimitMode, Op, Outcome, Outcomes, Timestamp};

/// Number of buckets above which a request uses the general way.
const FEW: usize = 8;

/// Maximum attempts while words change concurrently.
const TRIES_MAX: u32 = 8;

/// A word as it was read, and its replacement.
#[derive(Clone, Copy, Default)]
struct WordChange {
    /// Slot of the word.
    place: SlotIndex,
    /// Word that was read.
    old: u64,
    /// Word to write.
    new: u64,
}

/// Returns true if a bucket occurs twice: then the second has less room than it seems. In a request
/// that passes, locking the words detects it.
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
    /// Decides the request, if it is of the usual kind, and returns true if it passes. Otherwise
    /// `outcomes` are invalid.
    ///
    /// The outcomes are written to their final place, because moving them costs as much as a
    /// bucket.
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
        // Another thread changes a shared word within nanoseconds; the general way would take
        // longer than a retry.
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

    /// Carries out step 1: computes each next word, and returns true if the request passes.
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

    /// Carries out steps 2 and 3. Fails if a word has changed since it was read, or occurs twice.
    ///
    /// The order does not matter here, because no thread waits: a word that is locked has changed.
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

    /// Turns the outcomes of buckets with room into readings, after a refusal: they are not
    /// charged.
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

    /// Computes the outcome and the next word, if it is of the usual kind.
    #[inline]
    fn take_usual(&self, ask: &Ask<'_>, word: u64, now: Timestamp) -> Option<(Outcome, u64)> {
        with_state!(ask.quota, State => self.take_word::<State>(ask, word, now))
    }

    /// Computes the outcome and the next word, for any operation.
    #[inline]
    fn step(&self, ask: &Ask<'_>, word: u64, now: Timestamp) -> (ChargedOutcome, u64) {
        with_state!(ask.quota, State => self.step_word::<State>(ask, word, now))
    }
}
