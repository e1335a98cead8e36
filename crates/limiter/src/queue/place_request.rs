//! Requesting places, and the result.

use super::WaitQueue;
use super::credits::{CreditWatch, Ledger};
use super::places::WaitQuestion;
use crate::backend::Backend;
use crate::charges::Charges;
use crate::decision::Answers;
use crate::error::CheckError;
use crate::request::PreparedRequest;
use std::sync::Arc;
use tidegate_core::{Reply, Store};

/// The result of requesting places.
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart as soon as it is made"
)]
pub(super) enum TurnReply {
    /// The request has places, now or later.
    Placed(WaitQuestion, Reply, TurnCharges),
    /// The request has none: it is refused, or was decided without the store.
    Decided(Answers),
}

/// The charges of a request that has places.
pub(super) struct TurnCharges {
    pub(super) charges: Arc<Charges>,
    /// Absent if its turn is now.
    pub(super) watch: Option<CreditWatch>,
}

/// Requests a place in every bucket that has places.
pub(super) async fn ask<S: Store>(
    backend: &Backend<S>,
    queue: &WaitQueue,
    question: &PreparedRequest<'_>,
) -> Result<TurnReply, CheckError> {
    let places = WaitQuestion::of(question);
    let (reply, charges) = match ask_here(backend, queue, question, &places) {
        Some((reply, charges)) => (Ok(reply), charges),
        None => {
            let reply = backend.store.decide(&places.asks(question)).await;
            let charges = reply
                .as_ref()
                .ok()
                .and_then(|reply| charges(question, &places, reply, queue.credits.hold()));
            (reply, charges)
        }
    };
    let (reply, plain) = match reply {
        Ok(reply) => {
            let plain = places.plain(question, &reply);
            (Some(reply), Ok(plain))
        }
        Err(error) => {
            let partial = places.plain_answers(question, error.answers());
            (None, Err(error.with_answers(partial)))
        }
    };
    let answers = backend.answers(question.terms(), &question.asks, plain)?;
    Ok(match (reply, charges) {
        (Some(reply), Some(charges)) => TurnReply::Placed(places, reply, charges),
        _ => TurnReply::Decided(answers),
    })
}

/// Calls a store that decides immediately. Holds the ledger until the wait begins, so that a request with a
/// place is notified of every credit before it.
fn ask_here<S: Store>(
    backend: &Backend<S>,
    queue: &WaitQueue,
    question: &PreparedRequest<'_>,
    places: &WaitQuestion,
) -> Option<(Reply, Option<TurnCharges>)> {
    if backend.waits() {
        return None;
    }
    let ledger = queue.credits.hold().of_all();
    let reply = backend.reply_at_once(&places.asks(question))?;
    let charges = charges(question, places, &reply, ledger);
    Some((reply, charges))
}

/// Returns the charges of `reply`, if it passes. A request that has to wait is watched from here on.
fn charges(
    question: &PreparedRequest<'_>,
    places: &WaitQuestion,
    reply: &Reply,
    ledger: Ledger<'_>,
) -> Option<TurnCharges> {
    if !reply.passed {
        return None;
    }
    let charges = question.charges(reply);
    let waits = places.waits_us(question, reply);
    let is_now = waits.iter().all(|wait_us| *wait_us == 0);
    let watch = (!is_now).then(|| ledger.watch(&charges, &waits));
    Some(TurnCharges { charges, watch })
}
