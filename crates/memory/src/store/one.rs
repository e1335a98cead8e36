//! One bucket by itself: a word by compare-and-swap, a record under its shard's mutex.

use super::MemoryStore;
use super::moving::{BucketLocation, can_move};
use crate::records::{Entrance, Shard};
use crate::sync::{MutexGuard, SpinBackoff};
use crate::table::TableFull;
use crate::word::{Narrow, with_state};
use tidegate_core::{
    Ask, Bucket, BucketState, ChargedOutcome, Clock, Op, Outcome, Quota, Timestamp, step,
};

impl<C: Clock> MemoryStore<C> {
    #[inline]
    pub(super) fn decide_one_at(&self, ask: &Ask<'_>, now: Timestamp) -> ChargedOutcome {
        let fingerprint = self.fingerprint(ask.bucket, ask.quota);
        if !self.is_word(ask.quota, now) {
            return self.decide_record(ask, fingerprint, now);
        }
        with_state!(ask.quota, State => self.decide_word::<State>(ask, fingerprint, now))
    }

    /// One ask on one word: read, decide, swap; nothing is written for a refusal.
    #[inline]
    pub(super) fn decide_word<N: Narrow>(
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

    /// Whether the state in `word` is further ahead of `now` than the quota allows.
    #[inline]
    pub(super) fn is_word_ahead(&self, ask: &Ask<'_>, word: u64, now: Timestamp) -> bool {
        with_state!(ask.quota, State => {
            State::unpack(word, self.epoch, ask.quota).is_ahead(ask.quota, now)
        })
    }

    /// Decides by a word that was further ahead of `now` than the quota allows. Either this thread
    /// was put to sleep after it had read the clock, or the quota was cut: then the word is settled.
    #[cold]
    pub(super) fn decide_ahead<N: Narrow>(
        &self,
        ask: &Ask<'_>,
        fingerprint: u64,
        then: Timestamp,
    ) -> ChargedOutcome {
        if let Some(place) = self.table.find(fingerprint)
            && let Ok(word) = self.table.load(place, fingerprint)
        {
            let now = self.clock.now();
            let mut state = N::unpack(word, self.epoch, ask.quota);
            state.settle(ask.quota, now);
            let settled = state.pack(self.epoch, ask.quota);
            if settled == word || self.table.swap(place, word, settled) {
                return self.decide_word::<N>(ask, fingerprint, now);
            }
        }
        self.decide_word::<N>(ask, fingerprint, then)
    }

    /// What becomes of `word` if it is of the usual kind: a take, of a cost that can pass, from a
    /// state that is not ahead. Here everything stays in registers.
    #[inline]
    pub(super) fn take_word<N: Narrow>(
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

    /// What becomes of `word` otherwise; `None` if it is further ahead of `now` than the quota
    /// allows and refuses.
    #[cold]
    pub(super) fn step_unusual<N: Narrow>(
        &self,
        ask: &Ask<'_>,
        word: u64,
        now: Timestamp,
    ) -> Option<(ChargedOutcome, u64)> {
        let (charged, next) = self.step_word::<N>(ask, word, now);
        let refused = !charged.outcome.is_allowed();
        (!refused || !self.is_word_ahead(ask, word, now)).then_some((charged, next))
    }

    /// What becomes of `word`.
    #[inline]
    pub(super) fn step_word<N: Narrow>(
        &self,
        ask: &Ask<'_>,
        word: u64,
        now: Timestamp,
    ) -> (ChargedOutcome, u64) {
        let mut state = N::unpack(word, self.epoch, ask.quota);
        let charged = step::charge_one(ask.quota, &mut state, ask.op, now);
        (charged, state.pack(self.epoch, ask.quota))
    }

    /// Decides for a key that has no slot; `None` if it turns out to have one.
    #[cold]
    pub(super) fn decide_new_word<N: Narrow>(
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

    /// Decides by the record in its shard; one that is not there yet is made.
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
        if !shard.has_room(fingerprint, Entrance::IfRoom, now) {
            return self.decide_overflow(ask, fingerprint, now);
        }
        let (now, copy) = if shard.contains(fingerprint) {
            (now, None)
        } else {
            self.begin(ask, fingerprint, now)
        };
        let is_copy = copy.is_some();
        let mut bucket = copy.unwrap_or_else(|| shard.take(fingerprint, ask.quota, now));
        let now = self.settle([(&mut bucket, ask.quota)], now);
        let charged = step::charge_one(ask.quota, &mut bucket, ask.op, now);
        if !(is_copy && is_look(ask, &charged.outcome)) {
            shard.put(fingerprint, bucket, ask.quota, now);
        }
        charged
    }

    /// Settles states that are further ahead of `now` than their quotas allow; tells the instant to
    /// decide them at. The caller holds them, so that the clock is read after them.
    pub(super) fn settle<'a>(
        &self,
        states: impl IntoIterator<Item = (&'a mut Bucket, &'a Quota)>,
        now: Timestamp,
    ) -> Timestamp {
        let mut latest = now;
        for (bucket, quota) in states {
            if bucket.is_ahead(quota, latest) {
                latest = self.clock.now();
                bucket.settle(quota, latest);
            }
        }
        latest
    }
}

/// What a take from a word was charged.
#[inline]
fn taken_alone(op: Op, outcome: Outcome) -> ChargedOutcome {
    let units = if outcome.is_allowed() { op.cost() } else { 0 };
    ChargedOutcome { outcome, units }
}

/// Whether the ask can have changed nothing, now or later.
pub(super) fn is_look(ask: &Ask<'_>, outcome: &Outcome) -> bool {
    match ask.op {
        Op::Look | Op::Take(0) | Op::Debit(0) | Op::Test(_) | Op::Block => true,
        // It is charged even where it can never pass.
        Op::Debit(_) => false,
        Op::Take(_) | Op::Force(_) | Op::GiveBack(_) | Op::Return { .. } => outcome.wait.is_never(),
    }
}
