//! Places in token buckets: the asks use a quota whose debt represents the requests that wait.

use crate::request::PreparedRequest;
use crate::wait_room::WaitPermit;
use smallvec::SmallVec;
use tidegate_core::{Ask, Outcome, PartialAnswer, Quota, Reply, Wait};

/// The asks of a request that may wait.
pub(super) struct WaitQuestion {
    /// For each ask, its quota, and true if that is for a place.
    quotas: SmallVec<[(Quota, bool); 4]>,
    /// Permits to wait, one for each limit that has places.
    permits: SmallVec<[WaitPermit; 2]>,
}

impl WaitQuestion {
    /// Requests a place, and a permit to wait in it, wherever one is available. If a limit has no permit
    /// left, its ask is that of a request that does not wait: it passes only if no other request waits before
    /// it.
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

    /// Returns the asks.
    pub(super) fn asks<'a>(&'a self, question: &'a PreparedRequest<'_>) -> SmallVec<[Ask<'a>; 4]> {
        let asks = question.asks.iter().zip(&self.quotas);
        asks.map(|(ask, (quota, _))| Ask { quota, ..*ask })
            .collect()
    }

    /// Returns the time until the turn of a request that passed, in microseconds, per ask.
    pub(super) fn waits_us(
        &self,
        question: &PreparedRequest<'_>,
        reply: &Reply,
    ) -> SmallVec<[u64; 4]> {
        let waits = self.each(question, &reply.outcomes);
        waits.map(|(_, wait_us)| wait_us).collect()
    }

    /// Returns the reply in the terms of the original quotas, without places.
    pub(super) fn plain(&self, question: &PreparedRequest<'_>, reply: &Reply) -> Reply {
        let outcomes = self.each(question, &reply.outcomes);
        let mut plain = reply.clone();
        plain.outcomes = outcomes.map(|(outcome, _)| outcome).collect();
        plain
    }

    /// Converts the partial answers of a store that failed for other buckets. A request with a place that
    /// cannot pass yet is refused, because it is unknown if it ever will.
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

    /// Returns the outcome of each bucket for a request that will not wait for it.
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

    /// Returns the permits, for a request that has a place.
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

/// Returns a permit to wait in a place of the limit that `ask` belongs to, if that limit has places for this
/// request.
fn leave(question: &PreparedRequest<'_>, ask: &Ask<'_>) -> Option<WaitPermit> {
    let nth = usize::from(ask.limit);
    let limit = question.matched.nth(nth)?;
    let waiting = limit.waiting?;
    let has_places = limit.algorithm.has_places() && question.takes(nth);
    let room = question.room(nth).filter(|_| has_places)?;
    room.enter(waiting.max_waiting)
}

/// Returns an outcome in the terms of `quota`, and the time until the turn of the charge.
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
    outcome.overdrawn = place.overdrawn;
    (outcome, wait_us)
}

fn refused_until(outcome: Outcome, wait_us: u64) -> Outcome {
    if wait_us == 0 {
        return outcome;
    }
    outcome.with_wait(Wait::from_micros(wait_us))
}
