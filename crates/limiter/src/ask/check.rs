//! Deciding requests: immediately if the store can, otherwise across the network.

use super::attempt::{Attempt, AttemptTerms, PendingDecision};
use super::each_limit;
use crate::backend::Backend;
use crate::decision::Decision;
use crate::error::CheckError;
use crate::purpose::AskPurpose;
use crate::queue::{self, WaitQueue};
use crate::request::{BUFFERS, Buffers, NextStep, PreparedRequest, RepeatedRequest};
use crate::rules::Rules;
use crate::state::LimiterState;
use std::sync::Arc;
use tidegate_core::Store;
use tidegate_policy::Request;
use tokio::runtime::Handle;

/// Decides a request by `rules` immediately, and passes the decision to `read` in place; or returns it prepared
/// if the store or a limit makes it wait.
#[inline]
pub(crate) fn attempt<S: Store, T>(
    state: &Arc<LimiterState<S>>,
    rules: &Arc<Rules>,
    request: &Request<'_>,
    terms: AttemptTerms,
    read: impl FnOnce(Decision) -> T,
) -> Result<Attempt<S, T>, CheckError> {
    let mut buffers = BUFFERS.take().unwrap_or_default();
    let mut attempted = attempt_in(&mut buffers, state, (rules, request), terms, read);
    match &mut attempted {
        Ok(Attempt::Pending(pending)) => pending.lend(buffers),
        _ => BUFFERS.set(Some(buffers)),
    }
    attempted
}

#[inline]
fn attempt_in<S: Store, T>(
    buffers: &mut Buffers,
    state: &Arc<LimiterState<S>>,
    (rules, request): (&Arc<Rules>, &Request<'_>),
    AttemptTerms { purpose, is_behind }: AttemptTerms,
    read: impl FnOnce(Decision) -> T,
) -> Result<Attempt<S, T>, CheckError> {
    let mut prepared = PreparedRequest::begin(rules, request, purpose, buffers);
    if matches!(purpose, AskPurpose::Pass | AskPurpose::Guards)
        && let Ok(prepared) = &prepared
    {
        prepared.count(rules, request);
    }
    let pending = |question: &PreparedRequest<'_>| {
        Attempt::Pending(PendingDecision::new(state, rules, question.keep(request)))
    };
    // Inspect it in place: it is large, and moving it would take a good part of the time of a decision.
    if let Ok(NextStep::Ask(question)) = &mut prepared
        && !question.may_wait
        && !is_behind
        && !state.backend.waits()
    {
        question.ask(request, purpose);
        let decided = decide_at_once(&state.backend, &state.queue, question, read);
        return Ok(decided.map_or_else(|| pending(question), Attempt::Done));
    }
    Ok(match prepared? {
        NextStep::Ask(question) => pending(&question),
        NextStep::Decided(decision) => Attempt::Done(read(decision)),
    })
}

/// Evaluates the guards alone, without counting the request for its address.
pub(crate) fn guards(rules: &Arc<Rules>, request: &Request<'_>) -> Result<Decision, CheckError> {
    let mut buffers = BUFFERS.take().unwrap_or_default();
    let prepared = PreparedRequest::begin(rules, request, AskPurpose::Guards, &mut buffers);
    let decided = prepared.map(|prepared| match prepared {
        NextStep::Decided(decision) => decision,
        NextStep::Ask(_) => unreachable!("guards match no limit"),
    });
    BUFFERS.set(Some(buffers));
    decided
}

/// Decides a request that is sent repeatedly.
pub(crate) async fn repeat<S: Store>(
    backend: &Backend<S>,
    queue: &WaitQueue,
    repeated: &mut RepeatedRequest,
) -> Result<Decision, CheckError> {
    let RepeatedRequest {
        rules,
        kept,
        buffers,
    } = repeated;
    let pairs = kept.pairs();
    let request = kept.request(&pairs);
    let decided = {
        let prepared = PreparedRequest::prepare(rules, &request, AskPurpose::Pass, buffers)?;
        prepared.count(rules, &request);
        match prepared {
            NextStep::Ask(question) => decide(backend, queue, &question).await,
            NextStep::Decided(decision) => Ok(decision),
        }
    };
    buffers.release();
    decided
}

/// Decides a prepared request with a store that answers without waiting, and passes the decision to `read` in
/// place. Returns `None` if the store cannot.
#[inline]
pub(super) fn decide_at_once<S: Store, T>(
    backend: &Backend<S>,
    queue: &WaitQueue,
    question: &PreparedRequest<'_>,
    read: impl FnOnce(Decision) -> T,
) -> Option<T> {
    // Requests that wait must be charged in the order of their timestamps.
    let _in_order = question.is_in_line.then(|| queue.hold());
    if question.is_apart() {
        return each_limit::decide_at_once(backend, question).map(read);
    }
    let reply = backend.reply_at_once(&question.asks);
    Some(read(question.answer(reply.as_ref()?)))
}

/// Decides a prepared request with any store, and waits for limits that let it.
pub(super) async fn decide<S: Store>(
    backend: &Backend<S>,
    queue: &WaitQueue,
    question: &PreparedRequest<'_>,
) -> Result<Decision, CheckError> {
    // Without a runtime there are no timers, and no request waits.
    if question.may_wait && Handle::try_current().is_ok() {
        return queue::decide(backend, queue, question).await;
    }
    if !backend.waits()
        && let Some(decision) = decide_at_once(backend, queue, question, |decision| decision)
    {
        return Ok(decision);
    }
    if question.is_apart() {
        return each_limit::decide(backend, question).await;
    }
    let answers = backend.ask(question.terms(), &question.asks).await?;
    Ok(question.decide_refundable(&answers))
}
