//! Asking for places: a token bucket is asked by the quota that lets debt stand for those who wait.

use super::rooms::WaitPermit;
use crate::question::PreparedRequest;
use smallvec::SmallVec;
use tidegate_core::{Algorithm, Ask, Outcome, PartialAnswer, Quota, Reply, Wait};

/// A question as somebody asks it who may wait.
pub(super) struct WaitQuestion {
    /// One for each ask: as it is asked, and whether that is for a place.
    quotas: SmallVec<[(Quota, bool); 4]>,
    /// Leave to wait, one for each limit that gives places.
    permits: SmallVec<[WaitPermit; 2]>,
}

impl WaitQuestion {
    /// Asks for a place wherever one can be had, and leave to wait in it. Where all places are
    /// taken that may be, the limit is asked as by somebody who does not wait: it then passes only
    /// if nobody waits before it.
    pub(super) fn of(question: &PreparedRequest<'_>) -> Self {
        let mut places = Self {
            quotas: SmallVec::new(),
            permits: SmallVec::new(),
        };
        for asks in question.asks.chunk_by(|one, next| one.limit == next.limit) {
            let permit = asks.first().and_then(|ask| leave(question, ask));
            let is_place = permit.is_some();
            places.permits.extend(permit);
            places.quotas.extend(asks.iter().map(|ask| {
                let quota = if is_place {
                    ask.quota.queueing()
                } else {
                    *ask.quota
                };
                (quota, is_place)
            }));
        }
        places
    }

    /// What is asked.
    pub(super) fn asks<'a>(&'a self, question: &'a PreparedRequest<'_>) -> SmallVec<[Ask<'a>; 4]> {
        let asks = question.asks.iter().zip(&self.quotas);
        asks.map(|(ask, (quota, _))| Ask { quota, ..*ask })
            .collect()
    }

    /// How long until the turn of a request that passed, in microseconds, for each ask.
    pub(super) fn waits_us(
        &self,
        question: &PreparedRequest<'_>,
        reply: &Reply,
    ) -> SmallVec<[u64; 4]> {
        let waits = self.each(question, &reply.outcomes);
        waits.map(|(_, wait_us)| wait_us).collect()
    }

    /// The reply as it is meant for people who know nothing of places.
    pub(super) fn plain(&self, question: &PreparedRequest<'_>, reply: &Reply) -> Reply {
        let outcomes = self.each(question, &reply.outcomes);
        let mut plain = reply.clone();
        plain.outcomes = outcomes.map(|(outcome, _)| outcome).collect();
        plain
    }

    /// What a store has answered that failed elsewhere: whoever has a place and cannot be let in yet
    /// is refused, for it is not known whether it will be.
    pub(super) fn plain_answers(
        &self,
        question: &PreparedRequest<'_>,
        answers: &[Option<PartialAnswer>],
    ) -> Box<[Option<PartialAnswer>]> {
        let quotas = question.asks.iter().zip(&self.quotas);
        let plain = |(partial, (ask, (_, is_place))): (&Option<_>, (&Ask<'_>, &(_, bool)))| {
            let mut partial: PartialAnswer = (*partial)?;
            let (outcome, wait_us) = plain(ask.quota, *is_place, partial.answer.outcome);
            partial.answer.outcome = refused_until(outcome, wait_us);
            Some(partial)
        };
        answers.iter().zip(quotas).map(plain).collect()
    }

    /// What each bucket says to somebody who will not wait for it.
    pub(super) fn refusals(
        &self,
        question: &PreparedRequest<'_>,
        reply: &Reply,
    ) -> Vec<Option<Outcome>> {
        let outcomes = self.each(question, &reply.outcomes);
        outcomes
            .map(|(outcome, wait_us)| Some(refused_until(outcome, wait_us)))
            .collect()
    }

    /// Leave to wait, for whoever has a place.
    pub(super) fn into_permits(self) -> SmallVec<[WaitPermit; 2]> {
        self.permits
    }

    fn each<'a>(
        &'a self,
        question: &'a PreparedRequest<'_>,
        outcomes: &'a [Outcome],
    ) -> impl Iterator<Item = (Outcome, u64)> {
        let asks = question.asks.iter().zip(&self.quotas).zip(outcomes);
        asks.map(|((ask, (_, is_place)), outcome)| plain(ask.quota, *is_place, *outcome))
    }
}

/// Leave to wait in a place of the limit that `ask` belongs to, if that has any for whoever asks so.
fn leave(question: &PreparedRequest<'_>, ask: &Ask<'_>) -> Option<WaitPermit> {
    let nth = usize::from(ask.limit);
    let limit = question.scene.nth(nth)?;
    let waiting = limit.waiting?;
    let has_places = limit.algorithm == Algorithm::TokenBucket && question.takes(nth);
    let room = question.room(nth).filter(|_| has_places)?;
    room.enter(waiting.max_waiting)
}

/// An outcome in the terms of `quota`, and how long until the turn of what was charged.
fn plain(quota: &Quota, is_place: bool, mut outcome: Outcome) -> (Outcome, u64) {
    if !is_place {
        return (outcome, 0);
    }
    let place = quota.place(&outcome);
    let wait_us = if outcome.is_allowed() {
        place.wait_us
    } else {
        0
    };
    outcome.remaining = place.remaining;
    (outcome, wait_us)
}

fn refused_until(outcome: Outcome, wait_us: u64) -> Outcome {
    if wait_us == 0 {
        return outcome;
    }
    outcome.with_wait(Wait::from_micros(wait_us))
}
