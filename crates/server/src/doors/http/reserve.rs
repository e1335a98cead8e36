//! `POST /v1/reserve` for reservations; `/v1/commit` and `/v1/refund` settle them.

use super::{DECISION_BYTES, HttpDoor};
use crate::doors::respond::{self, DoorResponse};
use crate::telemetry::traces::RequestTrace;
use crate::wire::question::{JsonQuestion, QuestionBody};
use crate::wire::settle::{SettleVerb, Settlement, ToSettle};
use crate::wire::{reserve, settle};
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{CheckError, Reservation, Rules, Store};
use tidegate_http::unix_seconds;

/// The capacity for one reservation in JSON; nearly every reservation fits.
const RESERVATION_BYTES: usize = DECISION_BYTES + 512;

impl<S: Store> HttpDoor<S> {
    /// Answers a body of one reservation or a list of reservations.
    pub(super) async fn reserve(&self, text: &[u8], trace: &RequestTrace) -> DoorResponse {
        let reserved = match QuestionBody::read_reserving(text) {
            Err(fault) => return respond::bad_question(&fault),
            Ok(QuestionBody::One(question)) => self
                .reserve_one(&question, trace)
                .await
                .map_err(|error| (error, None)),
            Ok(QuestionBody::Several(questions)) => self
                .reserve_several(&questions, trace)
                .await
                .map_err(|(error, nth)| (error, Some(nth))),
        };
        match reserved {
            Ok(json) => respond::decided(json),
            Err((error, item)) => respond::undecided(&error, item),
        }
    }

    async fn reserve_one(
        &self,
        question: &JsonQuestion<'_>,
        trace: &RequestTrace,
    ) -> Result<Vec<u8>, CheckError> {
        let rules = self.decider.rules()?;
        let leg = trace.leg();
        let reserved = self.reserve_by(&rules, question).await;
        trace.decided(leg, reserved.as_ref().map(Reservation::decision));
        let reservation = reserved?;
        let mut json = Vec::with_capacity(RESERVATION_BYTES);
        reserve::write(&reservation, &mut json);
        Ok(json)
    }

    async fn reserve_by(
        &self,
        rules: &Arc<Rules>,
        question: &JsonQuestion<'_>,
    ) -> Result<Reservation, CheckError> {
        let learnt = question.learn(rules.client(), &unix_seconds);
        let pairs = question.pairs_with(learnt.as_ref());
        let descriptors = question.descriptors(&pairs);
        let request = question.request(&pairs).descriptors(&descriptors);
        self.decider.reserve(rules, &request, ttl(question)).await
    }

    /// Reserves a list. Each reservation is separate; they are started in order, all at once. An invalid
    /// one fails the list before any is reserved, so a list that is corrected and sent again is charged
    /// once.
    async fn reserve_several(
        &self,
        questions: &[JsonQuestion<'_>],
        trace: &RequestTrace,
    ) -> Result<Vec<u8>, (CheckError, usize)> {
        let rules = self.decider.rules().map_err(|error| (error, 0))?;
        // Built once, so that the requests that are checked are the ones that are reserved.
        let each = || questions.iter();
        let learnt: Vec<_> = each()
            .map(|question| question.learn(rules.client(), &unix_seconds))
            .collect();
        let pairs: Vec<_> = each()
            .zip(&learnt)
            .map(|(question, learnt)| question.pairs_with(learnt.as_ref()))
            .collect();
        let described: Vec<_> = each()
            .zip(&pairs)
            .map(|(question, pairs)| question.descriptors(pairs))
            .collect();
        let requests: Vec<_> = each()
            .zip(pairs.iter().zip(&described))
            .map(|(question, (pairs, described))| {
                let request = question.request(pairs).descriptors(described);
                (request, ttl(question))
            })
            .collect();
        for (nth, (request, ttl)) in requests.iter().enumerate() {
            let accepted = self.decider.accepts_reserving(&rules, request, *ttl);
            accepted.map_err(|error| (error, nth))?;
        }
        let each = requests.iter();
        let rules = &rules;
        let reserved = each.map(async |(request, ttl)| {
            let leg = trace.leg();
            let reserved = self.decider.reserve(rules, request, *ttl).await;
            trace.decided(leg, reserved.as_ref().map(Reservation::decision));
            reserved
        });
        let reserved = join_all(reserved).await;
        let mut json = Vec::with_capacity(RESERVATION_BYTES.saturating_mul(questions.len()));
        json.push(b'[');
        for (nth, reservation) in reserved.into_iter().enumerate() {
            if nth > 0 {
                json.push(b',');
            }
            let reservation = reservation.map_err(|error| (error, nth))?;
            reserve::write(&reservation, &mut json);
        }
        json.push(b']');
        Ok(json)
    }

    /// Settles reservations. Each item of a list gets its own result: a failed item does not undo a
    /// settled one.
    pub(super) async fn settle(&self, text: &[u8], kind: SettleVerb) -> DoorResponse {
        let settlements = match ToSettle::read(text, kind) {
            Err(fault) => return respond::bad_question(&fault),
            Ok(ToSettle::One(settlement)) => {
                return match self.settle_one(&settlement).await {
                    Ok(settled) => {
                        let mut json = Vec::new();
                        settle::write(&settled, &mut json);
                        respond::decided(json)
                    }
                    Err(error) => respond::unsettled(&error),
                };
            }
            Ok(ToSettle::Several(settlements)) => settlements,
        };
        let each = settlements.iter();
        let settled = join_all(each.map(|settlement| self.settle_one(settlement))).await;
        let mut json = vec![b'['];
        for (nth, settled) in settled.iter().enumerate() {
            if nth > 0 {
                json.push(b',');
            }
            match settled {
                Ok(settled) => settle::write(settled, &mut json),
                Err(error) => settle::write_unsettled(error, &mut json),
            }
        }
        json.push(b']');
        respond::decided(json)
    }

    async fn settle_one(
        &self,
        settlement: &Settlement<'_>,
    ) -> Result<tidegate::SettledReservation, tidegate::SettleError> {
        let Settlement {
            reservation,
            actual,
        } = settlement;
        self.decider.commit(reservation, *actual).await
    }
}

/// Returns the reservation's lifetime, if the request specifies one.
fn ttl(question: &JsonQuestion<'_>) -> Option<Duration> {
    question.ttl_ms.map(Duration::from_millis)
}
