//! A request of which some keys have no place: what is different where overflow buckets decide.

use super::{Draft, Few, Home, Plan, Target};
use crate::overflow::Overflow;
use crate::store::MemoryStore;
use crate::store::overflow::{charges, count, gives_back, without_credit};
use tidegate_core::{Ask, Bucket, Clock, Mode, Timestamp};

impl<C: Clock> MemoryStore<C> {
    /// Counts what the overflow buckets have decided, and remembers which keys they charged. They are
    /// put back afterwards.
    pub(super) fn note_shared(
        &self,
        overflow: &mut Overflow,
        asks: &[Ask<'_>],
        plan: &Plan<'_>,
        done: &Draft,
    ) {
        for ((ask, place), outcome) in asks.iter().zip(&plan.places).zip(done.outcomes.iter()) {
            let Some(bucket) = done.buckets.get(*place).filter(|_| plan.is_shared(*place)) else {
                continue;
            };
            count(overflow, ask, outcome, done.at);
            let passed = done.passed && (ask.mode == Mode::Enforce || outcome.is_allowed());
            if charges(ask.op, passed, done.taken) {
                let key = self.fingerprint(ask.bucket, ask.quota);
                let name = self.overflow_of(ask, key);
                overflow.note_charge((name, key), bucket, ask.quota, done.at);
            }
        }
    }
}

impl Draft {
    /// Decides on `buckets`, of which overflow buckets are credited with nothing.
    pub(super) fn without_credits(
        asks: &[Ask<'_>],
        plan: &Plan<'_>,
        buckets: Few<Bucket>,
        now: Timestamp,
    ) -> Self {
        let carried_out: Few<Ask<'_>> = asks
            .iter()
            .zip(&plan.places)
            .map(|(ask, place)| Ask {
                op: if plan.is_shared(*place) {
                    without_credit(ask.op)
                } else {
                    ask.op
                },
                ..*ask
            })
            .collect();
        let mut draft = Self::of(&carried_out, plan, buckets, now);
        let outcomes = draft.outcomes.iter_mut();
        for ((ask, place), outcome) in asks.iter().zip(&plan.places).zip(outcomes) {
            if gives_back(ask.op) && plan.is_shared(*place) {
                outcome.mark = 0;
            }
        }
        draft
    }
}

impl Plan<'_> {
    /// Two new keys that were both turned away to one overflow bucket mean that bucket now: the asks for
    /// the second mean the first.
    pub(super) fn share_overflow(&mut self, overflow_of: impl Fn(&Target<'_>) -> u64) {
        for i in (0..self.targets.len()).rev() {
            let Some((earlier, [target, ..])) = self.targets.split_at_checked(i) else {
                continue;
            };
            let name = overflow_of(target);
            let same =
                |other: &Target<'_>| other.home == Home::Overflow && overflow_of(other) == name;
            if target.home == Home::Overflow
                && let Some(first) = earlier.iter().position(same)
            {
                for place in &mut self.places {
                    let meant = if *place == i { first } else { *place };
                    *place = meant.saturating_sub(usize::from(meant > i));
                }
                self.targets.remove(i);
            }
        }
    }
    fn is_shared(&self, place: usize) -> bool {
        let target = self.targets.get(place);
        target.is_some_and(|target| target.home == Home::Overflow)
    }
}
