//! `POST /v1/reserve` for reservations; `/v1/commit` and `/v1/refund` settle them.

use super::{DECISION_BYTES, HttpFrontend};
use crate::respond::{self, FrontendResponse};
use crate::wire::question::{JsonQuestion, QuestionBody};
use crate::wire::settle::{SettleVerb, Settlement, SettlementBody};
use crate::wire::{reserve, settle};
use futures_util::future::join_all;
use std::time::Duration;
use tidegate::{CheckError, Reservation, Store};
use tidegate_http::unix_seconds;
use tidegate_telemetry::traces::RequestTrace;

/// The capacity for one reservation in JSON; nearly every reservation fits.
const RESERVATION_BYTES: usize = DECISION_BYTES + 512;

impl<S: Store> HttpFrontend<S> {
    /// Answers a body of one reservation or a list of reservations.
    pub(super) async fn reserve(&self, text: &[u8], trace: &RequestTrace) -> FrontendResponse {
        let (questions, is_list) = match QuestionBody::read_reserving(text) {
            Err(fault) => return respond::bad_question(&fault),
            Ok(QuestionBody::One(question)) => (vec![question], false),
            Ok(QuestionBody::Several(questions)) => (questions, true),
        };
        let reserved = self.reserve_each(&questions, is_list, trace).await;
        let written = reserved.and_then(|reserved| written(reserved, is_list));
        match written {
            Ok(json) => respond::decided(json),
            Err((error, nth)) => respond::undecided(&error, is_list.then_some(nth)),
        }
    }

    /// Reserves each of `questions`. Each reservation is separate; they are started in order, all at once. An
    /// invalid one fails a list before any is reserved, so a list that is corrected and sent again is charged
    /// once.
    async fn reserve_each(
        &self,
        questions: &[JsonQuestion<'_>],
        is_list: bool,
        trace: &RequestTrace,
    ) -> Result<Vec<Result<Reservation, CheckError>>, (CheckError, usize)> {
        let rules = self.decider.rules().map_err(|error| (error, 0))?;
        let rules = &rules;
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
        let requests = each()
            .zip(pairs.iter().zip(&described))
            .map(|(question, (pairs, described))| question.request(pairs).descriptors(described));
        let mut prepared = Vec::with_capacity(questions.len());
        for (nth, (question, request)) in each().zip(requests).enumerate() {
            let ttl = question.ttl_ms.map(Duration::from_millis);
            match self.decider.prepare_reservation(rules, &request, ttl) {
                Err(error) if is_list => return Err((error, nth)),
                pending => prepared.push((pending, request)),
            }
        }
        let reserving =
            prepared
                .into_iter()
                .zip(&learnt)
                .map(async |((pending, request), learnt)| {
                    let refused = learnt.as_ref().and_then(|learnt| learnt.token_refused);
                    let asked = (&**rules, &request);
                    self.decider.reserve(pending, asked, trace, refused).await
                });
        Ok(join_all(reserving).await)
    }

    /// Settles reservations. Each item of a list gets its own result: a failed item does not undo a
    /// settled one.
    pub(super) async fn settle(&self, text: &[u8], kind: SettleVerb) -> FrontendResponse {
        let settlements = match SettlementBody::read(text, kind) {
            Err(fault) => return respond::bad_question(&fault),
            Ok(SettlementBody::One(settlement)) => {
                return match self.settle_one(&settlement).await {
                    Ok(settled) => {
                        let mut json = Vec::new();
                        settle::write(&settled, &mut json);
                        respond::decided(json)
                    }
                    Err(error) => respond::unsettled(&error),
                };
            }
            Ok(SettlementBody::Several(settlements)) => settlements,
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
        match actual {
            Some(actual) => self.decider.commit(reservation, actual.into()).await,
            None => self.decider.refund(reservation).await,
        }
    }
}

/// Writes one reservation, or a list of them. The first error replaces them all.
fn written(
    reserved: Vec<Result<Reservation, CheckError>>,
    is_list: bool,
) -> Result<Vec<u8>, (CheckError, usize)> {
    let mut json = Vec::with_capacity(RESERVATION_BYTES.saturating_mul(reserved.len()));
    if is_list {
        json.push(b'[');
    }
    for (nth, reservation) in reserved.into_iter().enumerate() {
        if nth > 0 {
            json.push(b',');
        }
        reserve::write(&reservation.map_err(|error| (error, nth))?, &mut json);
    }
    if is_list {
        json.push(b']');
    }
    Ok(json)
}
