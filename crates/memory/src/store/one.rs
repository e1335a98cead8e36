//! One bucket alone: a word by compare-and-swap, a record under its shard's mutex.
//!
//! ```text
//! find ──▶ load ──▶ take_word ──▶ swap ──▶ outcome
//!  │        │           │           └ another thread was first: load again
//!  │        │           └ not a usual take: step_unusual, and decide_ahead for a state ahead of now
//!  │        └ the slot was given to another key: find again
//!  └ no slot: decide_new_word claims one under the key's stripe, or uses the overflow bucket
//! ```
//!
//! The first line is the hot path: one compiled piece without a call, so that ask, state and outcome stay in
//! registers. Everything below it is out of line.

use super::MemoryStore;
use super::moving::{BucketLocation, can_move};
use crate::records::{NewKeyAdmission, Shard};
use crate::sync::{MutexGuard, SpinBackoff};
use crate::table::TableFull;
use crate::word::{NarrowState, with_state};
use tidegate_core::{
    Ask, Bucket, BucketState, ChargedOutcome, Clock, Op, Outcome, Quota, Timestamp, step,
};

impl<C: Clock> MemoryStore<C> {
    /// Decides one ask at `now`, by a word or by a record.
    #[inline]
    pub(super) fn decide_one_at(&self, ask: &Ask<'_>, now: Timestamp) -> ChargedOutcome {
        let fingerprint = self.fingerprint(ask.bucket, ask.quota);
        if !self.is_word(ask.quota, now) {
            return self.decide_record(ask, fingerprint, now);
        }
        with_state!(ask.quota, State => self.decide_word::<State>(ask, fingerprint, now))
    }

    /// Decides one ask on one word: read, decide, swap. A refusal writes nothing.
    ///
    /// If another thread swaps first, it starts over with the new word.
    ///
    /// The loop ends: a swap fails only if another thread's has succeeded. A key without a slot
    /// goes to [`decide_new_word`](Self::decide_new_word).
    #[expect(
        clippy::inline_always,
        reason = "a call would put ask and outcome into memory: 2 ns of 22 on a hot key"
    )]
    #[inline(always)]
    pub(super) fn decide_word<N: NarrowState>(
        &self,
        ask: &Ask<'_>,
        fingerprint: u64,
        now: Timestamp,
    ) -> ChargedOutcome {
        loop {
            let Some(place) = self.table.find(fingerprint) else {
                match self.decide_new_word::<N>(ask, fingerprint, now) {
                    Some(outcome) => return outcome,
                    None => continue,
                }
            };
            let mut backoff = SpinBackoff::default();
            // Another thread wins only by deciding something, so the loop as a whole advances.
            while let Ok(word) = self.table.load(place, fingerprint) {
                let usual = self.take_word::<N>(ask, word, now);
                let (outcome, next) = match usual {
                    Some((outcome, next)) => (taken_alone(ask.op, outcome), next),
                    None => match self.step_unusual::<N>(ask, word, now) {
                        Some(stepped) => stepped,
                        None => return self.decide_ahead::<N>(ask, fingerprint, now),
                    },
                };
                if next == word || self.table.swap(place, word, next) {
                    return outcome;
                }
                backoff.wait();
            }
        }
    }

    /// Returns true if the state in `word` is further ahead of `now` than the quota allows.
    #[inline]
    pub(super) fn is_word_ahead(&self, ask: &Ask<'_>, word: u64, now: Timestamp) -> bool {
        with_state!(ask.quota, State => {
            State::unpack(word, self.epoch, ask.quota).is_beyond_reach(ask.quota, now)
        })
    }

    /// Decides by a word that was further ahead of `now` than the quota allows. Either this thread
    /// was suspended after it had read the clock, or the quota was cut: then the word is settled.
    #[cold]
    pub(super) fn decide_ahead<N: NarrowState>(
        &self,
        ask: &Ask<'_>,
        fingerprint: u64,
        then: Timestamp,
    ) -> ChargedOutcome {
        let mut now = then;
        if let Some(place) = self.table.find(fingerprint)
            && let Ok(word) = self.table.load(place, fingerprint)
        {
            let latest = self.clock.now();
            let mut state = N::unpack(word, self.epoch, ask.quota);
            state.clamp_to_now(ask.quota, latest);
            let settled = state.pack(self.epoch, ask.quota);
            if settled == word || self.table.swap(place, word, settled) {
                now = latest;
            }
        }
        self.decide_word::<N>(ask, fingerprint, now)
    }

    /// Computes the next word in the usual case: a take, of a cost that can pass, from a state that
    /// is not ahead. Here everything stays in registers.
    #[inline]
    pub(super) fn take_word<N: NarrowState>(
        &self,
        ask: &Ask<'_>,
        word: u64,
        now: Timestamp,
    ) -> Option<(Outcome, u64)> {
        let Op::Take(cost @ 1..) = ask.op else {
            return None;
        };
        let state = N::unpack(word, self.epoch, ask.quota);
        let (next, outcome) = state.take_usual(ask.quota, cost, now)?;
        let next = if outcome.is_allowed() {
            next.pack(self.epoch, ask.quota)
        } else {
            word
        };
        Some((outcome, next))
    }

    /// Computes the next word in any other case; `None` if the state is further ahead of `now` than
    /// the quota allows and refuses.
    // Out of line, for the sake of the usual case. Not cold: there the compiler inlines nothing, and the
    // limits of a policy may be debited by every request.
    #[inline(never)]
    pub(super) fn step_unusual<N: NarrowState>(
        &self,
        ask: &Ask<'_>,
        word: u64,
        now: Timestamp,
    ) -> Option<(ChargedOutcome, u64)> {
        let (charged, next) = self.step_word::<N>(ask, word, now);
        let refused = !charged.outcome.is_allowed();
        (!refused || !self.is_word_ahead(ask, word, now)).then_some((charged, next))
    }

    /// Computes the next word and the outcome.
    #[inline]
    pub(super) fn step_word<N: NarrowState>(
        &self,
        ask: &Ask<'_>,
        word: u64,
        now: Timestamp,
    ) -> (ChargedOutcome, u64) {
        let mut state = N::unpack(word, self.epoch, ask.quota);
        let charged = step::charge_one(ask.quota, &mut state, ask.op, now);
        (charged, state.pack(self.epoch, ask.quota))
    }

    /// Decides for a key that has no slot; `None` if another thread has just given it one.
    ///
    /// An ask that changes nothing, such as a look, needs no slot and in general no lock. Otherwise
    /// it holds the key's stripe until the slot is claimed, so that no other thread claims one for
    /// the same key. If there is no room, the overflow bucket decides under the same stripe.
    #[cold]
    pub(super) fn decide_new_word<N: NarrowState>(
        &self,
        ask: &Ask<'_>,
        fingerprint: u64,
        now: Timestamp,
    ) -> Option<ChargedOutcome> {
        let (mut outcome, mut word) = self.step_word::<N>(ask, 0, now);
        let changes_nothing = word == 0 && !self.is_overflowing(now);
        if changes_nothing && !self.has_movable() {
            return Some(outcome);
        }
        let mut stripe = self.table.hold(self.table.stripe_of(fingerprint));
        if self.has_movable() {
            if self.table.find(fingerprint).is_some() {
                return None;
            }
            match self.fetch_record(&mut stripe, (fingerprint, ask.quota)) {
                BucketLocation::Word(_) => return None,
                BucketLocation::Record => {
                    let shard = self.records.lock(self.records.shard_of(fingerprint));
                    return Some(self.decide_in(shard, ask, fingerprint, now));
                }
                BucketLocation::Nowhere if changes_nothing => return Some(outcome),
                BucketLocation::Nowhere => {}
            }
        }
        let mut now = now;
        if self.since_epoch(now) < *stripe {
            now = self.clock.now();
            (outcome, word) = self.step_word::<N>(ask, 0, now);
        }
        if self.is_overflowing(now) {
            let first;
            (now, first) = self.first_word(ask, fingerprint, now);
            (outcome, word) = self.step_word::<N>(ask, first, now);
            if word == first
                && is_look(ask, &outcome.outcome)
                && self
                    .table
                    .has_room(&stripe, fingerprint, self.since_epoch(now))
            {
                let is_new = self.table.find(fingerprint).is_none();
                return is_new.then_some(outcome);
            }
        }
        let instant = self.since_epoch(now);
        match self.table.claim(&mut stripe, fingerprint, word, instant) {
            Ok((_, true)) => Some(outcome),
            Ok((_, false)) => None,
            Err(TableFull) => Some(self.decide_overflow(ask, fingerprint, now)),
        }
    }

    /// Decides one ask by a record. If there is none and the key may be a word, the table is
    /// searched under the key's stripe, which is locked before the shard.
    #[cold]
    pub(super) fn decide_record(
        &self,
        ask: &Ask<'_>,
        fingerprint: u64,
        now: Timestamp,
    ) -> ChargedOutcome {
        let nth = self.records.shard_of(fingerprint);
        let shard = self.records.lock(nth);
        if !can_move(ask.quota) || shard.contains(fingerprint) {
            return self.decide_in(shard, ask, fingerprint, now);
        }
        // A stripe comes before a shard.
        drop(shard);
        let mut stripe = self.table.hold(self.table.stripe_of(fingerprint));
        let mut shard = self.records.lock(nth);
        self.fetch_word(&mut stripe, &mut shard, (fingerprint, ask.quota));
        self.decide_in(shard, ask, fingerprint, now)
    }

    /// Decides by the record in its shard. Creates one if there is none, or uses the overflow
    /// bucket if there is no room.
    fn decide_in(
        &self,
        mut shard: MutexGuard<'_, Shard>,
        ask: &Ask<'_>,
        fingerprint: u64,
        now: Timestamp,
    ) -> ChargedOutcome {
        let now = if shard.may_have_dropped(fingerprint, now) {
            self.clock.now()
        } else {
            now
        };
        if !shard.has_room(fingerprint, NewKeyAdmission::of(ask), now) {
            return self.decide_overflow(ask, fingerprint, now);
        }
        let (now, copy) = if shard.contains(fingerprint) {
            (now, None)
        } else {
            self.begin(ask, fingerprint, now)
        };
        let is_copy = copy.is_some();
        let mut bucket = copy.unwrap_or_else(|| shard.take(fingerprint, ask.quota, now));
        let now = self.clamp_to_now([(&mut bucket, ask.quota)], now);
        let charged = step::charge_one(ask.quota, &mut bucket, ask.op, now);
        if !(is_copy && is_look(ask, &charged.outcome)) {
            shard.put(fingerprint, bucket, ask.quota, now);
        }
        charged
    }

    /// Settles states that are further ahead of `now` than their quotas allow. Returns the instant
    /// at which to decide them. The caller holds them, so that the clock is read after them.
    pub(super) fn clamp_to_now<'a>(
        &self,
        states: impl IntoIterator<Item = (&'a mut Bucket, &'a Quota)>,
        now: Timestamp,
    ) -> Timestamp {
        let mut latest = now;
        for (bucket, quota) in states {
            if bucket.is_beyond_reach(quota, latest) {
                latest = self.clock.now();
                bucket.clamp_to_now(quota, latest);
            }
        }
        latest
    }
}

/// Returns the charge of a take from a word.
#[inline]
fn taken_alone(op: Op, outcome: Outcome) -> ChargedOutcome {
    let units = if outcome.is_allowed() { op.cost() } else { 0 };
    ChargedOutcome { outcome, units }
}

/// Returns true if the ask can have changed nothing, now or later.
pub(super) fn is_look(ask: &Ask<'_>, outcome: &Outcome) -> bool {
    match ask.op {
        Op::Look | Op::Take(0) | Op::Debit(0) | Op::Test(_) | Op::Block => true,
        // It is charged even where it can never pass.
        Op::Debit(_) => false,
        Op::Take(_)
        | Op::Force(_)
        | Op::GiveBack(_)
        | Op::Return { .. }
        | Op::Acquire(_)
        | Op::Renew { .. }
        | Op::Release(_) => outcome.wait.is_never(),
    }
}
