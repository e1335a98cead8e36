//! Acquiring: an attempt whose permits are held by an id in place of a guard.

use super::attempt::{Attempt, AttemptTerms};
use super::check;
use crate::error::CheckError;
use crate::purpose::AskPurpose;
use crate::reservations::{Acquisition, PermitPayload, new_permit_id};
use crate::rules::Rules;
use crate::state::LimiterState;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::{PermitTerm, Request};

/// Decides a request whose permits end after `ttl_us`, or after the time of their limits.
pub(crate) async fn acquire<S: Store>(
    state: &Arc<LimiterState<S>>,
    rules: &Arc<Rules>,
    request: &Request<'_>,
    ttl_us: Option<u64>,
) -> Result<Acquisition, CheckError> {
    let term = PermitTerm {
        id: Some(new_permit_id()),
        ttl_us,
    };
    // Undecided even if the store decides immediately: without a seal the permits could not be released.
    let later = AttemptTerms {
        purpose: AskPurpose::Pass,
        is_behind: true,
    };
    let attempt = check::attempt(state, rules, &request.permit(&term), later, |it| it)?;
    let pending = match attempt {
        Attempt::Done(decision) => return Ok(Acquisition::without_id(decision)),
        Attempt::Pending(pending) => pending,
    };
    let permits = {
        let question = pending.prepared();
        PermitPayload::of(&question.asks, question.matched.policy)?
    };
    let seal = state.reservations.permit_seal(rules, &state.backend).await;
    let decision = pending.decision().await?;
    Ok(if decision.is_allowed() {
        permits.conclude(decision, seal)
    } else {
        Acquisition::without_id(decision)
    })
}
