//! A request in which some keys have no slot: the differences if overflow buckets decide.

use super::{BucketTarget, DecidedCopies, InlineVec, RequestTargets, TargetState};
use crate::overflow::Overflow;
use crate::store::MemoryStore;
use crate::store::overflow::{count, without_credit};
use tidegate_core::{Ask, Bucket, Clock, Op, Timestamp};

impl<C: Clock> MemoryStore<C> {
    /// Counts the decisions of the overflow buckets, and remembers which keys they charged. The
    /// caller stores the buckets afterwards.
    pub(super) fn note_shared(
        &self,
        overflow: &mut Overflow,
        asks: &[Ask<'_>],
        plan: &RequestTargets<'_>,
        done: &DecidedCopies,
    ) {
        let reply = &done.reply;
        let outcomes = reply.outcomes.iter();
        for (nth, ((ask, place), outcome)) in
            asks.iter().zip(&plan.places).zip(outcomes).enumerate()
        {
            let (Some(target), Some(bucket)) = (plan.shared(*place), done.buckets.get(*place))
            else {
                continue;
            };
            count(overflow, ask, outcome, reply.at);
            if reply.applied.units(nth, ask.op) > 0 {
                let name = self.overflow_of(&target.ask, target.fingerprint);
                let key = self.fingerprint(ask.bucket, ask.quota);
                overflow.note_charge((name, key), bucket, target.quota, reply.at);
            }
        }
    }
}

impl DecidedCopies {
    /// Decides on `buckets`. Nothing is credited to overflow buckets or charged to blocks that are
    /// not kept.
    pub(super) fn without_places(
        asks: &[Ask<'_>],
        plan: &RequestTargets<'_>,
        buckets: InlineVec<Bucket>,
        now: Timestamp,
    ) -> Self {
        let carried_out: InlineVec<Ask<'_>> = asks
            .iter()
            .zip(&plan.places)
            .map(|(ask, place)| Ask {
                op: match (plan.targets.get(*place).map(|it| it.home), ask.op) {
                    (Some(TargetState::Overflow), op) => without_credit(op),
                    // It would answer that the subject is blocked, and the next request would pass.
                    (Some(TargetState::Unkept), Op::Block) => Op::Look,
                    (_, op) => op,
                },
                ..*ask
            })
            .collect();
        let mut draft = Self::of(&carried_out, plan, buckets, now);
        let outcomes = draft.reply.outcomes.iter_mut();
        for ((ask, place), outcome) in asks.iter().zip(&plan.places).zip(outcomes) {
            if ask.op.receipt().is_some() && plan.shared(*place).is_some() {
                outcome.mark = 0;
            }
        }
        draft
    }
}

impl RequestTargets<'_> {
    /// Joins new keys that were sent to the same overflow bucket: the asks for the second use the
    /// first as target.
    pub(super) fn share_overflow(&mut self, overflow_of: impl Fn(&BucketTarget<'_>) -> u64) {
        for i in (0..self.targets.len()).rev() {
            let Some((earlier, [target, ..])) = self.targets.split_at_checked(i) else {
                continue;
            };
            let name = overflow_of(target);
            let same = |other: &BucketTarget<'_>| {
                other.home == TargetState::Overflow && overflow_of(other) == name
            };
            if target.home == TargetState::Overflow
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

    /// Returns the target at `place`, if it is an overflow bucket.
    fn shared(&self, place: usize) -> Option<&BucketTarget<'_>> {
        let target = self.targets.get(place)?;
        (target.home == TargetState::Overflow).then_some(target)
    }
}
