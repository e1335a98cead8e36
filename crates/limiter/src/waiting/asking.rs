//! Asking for places, and what comes of it.

use super::places::Places;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::giving::{Charges, Ledger, Watch};
use crate::limiter::Limiter;
use crate::question::Question;
use std::sync::Arc;
use tidegate_core::{Reply, Store};

/// What came of asking.
#[expect(
    clippy::large_enum_variant,
    reason = "taken apart as soon as it is made"
)]
pub(super) enum Asked {
    /// It passes, now or later.
    Passed(Places, Reply, Taken),
    /// It does not.
    Refused(Reply),
    /// It was decided without the store.
    Elsewhere(Decision),
}

/// What a request was charged that passes.
pub(super) struct Taken {
    pub(super) charges: Arc<Charges>,
    /// Absent if its turn is now.
    pub(super) watch: Option<Watch>,
}

/// Asks for a place wherever one can be had.
pub(super) async fn ask<S: Store>(
    limiter: &Limiter<S>,
    question: &Question<'_>,
) -> Result<Asked, CheckError> {
    let places = Places::of(question);
    let decided = match ask_here(limiter, question, &places) {
        Some(decided) => Ok(decided),
        None => {
            let reply = limiter.store().decide(&places.asks(question)).await;
            reply.map(|reply| {
                let taken = taken(question, &places, &reply, limiter.giving().credits.hold());
                (reply, taken)
            })
        }
    };
    let error = match decided {
        Ok((reply, taken)) => {
            let plain = places.plain(question, &reply);
            if let Some(failover) = limiter.failover() {
                failover.note(&question.asks, &plain);
            }
            return Ok(match taken {
                Some(taken) => Asked::Passed(places, reply, taken),
                None => Asked::Refused(plain),
            });
        }
        Err(error) => error,
    };
    let Some(failover) = limiter.failover() else {
        return Err(CheckError::Store(error));
    };
    let answers = places.plain_answers(question, error.answers());
    let decision = failover.decide(question, error, &answers)?;
    Ok(Asked::Elsewhere(decision))
}

/// Asks a store that decides at once. Nobody is credited between that and the beginning of a wait:
/// whoever has a place hears of every credit before it.
fn ask_here<S: Store>(
    limiter: &Limiter<S>,
    question: &Question<'_>,
    places: &Places,
) -> Option<(Reply, Option<Taken>)> {
    if limiter.waits() {
        return None;
    }
    let ledger = limiter.giving().credits.hold().of_all();
    let reply = limiter.store().decide_at_once(&places.asks(question))?;
    let taken = taken(question, places, &reply, ledger);
    Some((reply, taken))
}

/// What `reply` has charged, if it passes; who has to wait for it does so from here on.
fn taken(
    question: &Question<'_>,
    places: &Places,
    reply: &Reply,
    ledger: Ledger<'_>,
) -> Option<Taken> {
    if !reply.passed {
        return None;
    }
    let charges = question.charges(reply);
    let waits = places.waits_us(question, reply);
    let is_now = waits.iter().all(|wait_us| *wait_us == 0);
    let watch = (!is_now).then(|| ledger.watch(&charges, &waits));
    Some(Taken { charges, watch })
}
