//! Deciding requests: immediately if the store can, otherwise across the network.

use crate::attempt::{Attempt, AttemptTerms, PendingDecision};
use crate::decision::{Decision, RequestLimits};
use crate::each;
use crate::error::CheckError;
use crate::limiter::Limiter;
use crate::purpose::AskPurpose;
use crate::question::{Buffers, NextStep, PreparedRequest};
use crate::repeated::Repeated;
use crate::rules::Rules;
use crate::waiting;
use std::cell::Cell;
use std::sync::Arc;
use tidegate_core::{Clock, Store};
use tidegate_memory::MemoryStore;
use tidegate_policy::Request;

thread_local! {
    // Buffers that stay warm, so that a decision allocates nothing. They are taken and put back rather than
    // borrowed in a closure: the decision would be returned through the closure, and copied three times.
    pub(crate) static BUFFERS: Cell<Option<Box<Buffers>>> = const { Cell::new(None) };
}

impl<S: Store> Limiter<S> {
    /// Decides a request.
    ///
    /// A limit with `on_refusal: wait` may queue it until it fits, for a bounded time and in order of
    /// arrival; see [`Decision::waited`]. That needs a `tokio` runtime with timers; without one, no request
    /// waits. Dropping the future releases its place: the requests behind it move up, and all its charges are
    /// refunded. In a shared store, only requests of this limiter and its clones move up, and the last of
    /// their places expires.
    ///
    /// If the store does not answer, the `on_failure` of each matched limit applies, and
    /// [`Decision::decided_by`] reports it.
    ///
    /// # Errors
    ///
    /// If the policy is unknown, a limit that the request carries is invalid, or the limiter is closed.
    /// [`CheckError::Store`] only if the store did not answer and a matched limit has `on_failure: error`.
    pub async fn check(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Pass).await
    }

    /// Decides a request by `rules` for a purpose: immediately, if neither the store nor a limit makes it
    /// wait. Otherwise returns it prepared, so that no guard is evaluated and no limit is matched twice. All
    /// frontends use this method; [`check`](Self::check), [`test`](Self::test) and [`report`](Self::report)
    /// are conveniences.
    ///
    /// A frontend identifies the client by `rules`; a reload in between does not change the rules that the
    /// request is decided by. They must come from [`rules`](Self::rules) of this limiter; rules from before a
    /// reload are valid. With the rules of another limiter, requests would be counted in buckets of this
    /// store under the policies of the other. A debug build panics in that case.
    ///
    /// # Errors
    ///
    /// If the policy is unknown, or a limit that the request carries is invalid.
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{Attempt, Limiter, AskPurpose, Request};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 5/h }] }]")?;
    /// let rules = limiter.rules()?;
    /// let decision = match limiter.attempt(&rules, &Request::new(), AskPurpose::Pass)? {
    ///     Attempt::Done(decision) => decision,
    ///     Attempt::Pending(pending) => pending.decision().await?,
    /// };
    /// assert!(decision.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn attempt(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        purpose: AskPurpose,
    ) -> Result<Attempt<S>, CheckError> {
        self.attempt_with(rules, request, purpose, |decision| decision)
    }

    /// Like [`attempt`](Self::attempt), but passes an immediate decision to `read` in place. A decision is
    /// large; callers that only read it, or store it elsewhere, avoid a move.
    ///
    /// # Errors
    ///
    /// Those of [`attempt`](Self::attempt).
    #[inline]
    pub fn attempt_with<T>(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        terms: impl Into<AttemptTerms>,
        read: impl FnOnce(Decision) -> T,
    ) -> Result<Attempt<S, T>, CheckError> {
        debug_assert!(
            self.is_owner(rules.owner),
            "these rules are another limiter's"
        );
        let mut buffers = BUFFERS.take().unwrap_or_default();
        let mut attempted = self.attempt_in(&mut buffers, (rules, request), terms.into(), read);
        match &mut attempted {
            Ok(Attempt::Pending(pending)) => pending.lend(buffers),
            _ => BUFFERS.set(Some(buffers)),
        }
        attempted
    }

    #[inline]
    fn attempt_in<T>(
        &self,
        buffers: &mut Buffers,
        (rules, request): (&Arc<Rules>, &Request<'_>),
        AttemptTerms { purpose, is_behind }: AttemptTerms,
        read: impl FnOnce(Decision) -> T,
    ) -> Result<Attempt<S, T>, CheckError> {
        let mut prepared = if purpose == AskPurpose::Guards {
            let guarded = rules.guard(request, &mut buffers.guards);
            guarded.map(NextStep::Decided)
        } else {
            PreparedRequest::begin(rules, request, purpose, buffers)
        };
        if matches!(purpose, AskPurpose::Pass | AskPurpose::Guards)
            && let Ok(prepared) = &prepared
        {
            prepared.count(rules, request);
        }
        let pending = |question: &PreparedRequest<'_>| {
            Attempt::Pending(PendingDecision::new(self, rules, question.keep(request)))
        };
        // Inspect it in place: it is large, and moving it would take a good part of the time of a decision.
        if let Ok(NextStep::Ask(question)) = &mut prepared
            && !question.may_wait
            && !is_behind
            && !self.waits()
        {
            question.ask(request, purpose);
            let told = self.answer_at_once(question, read);
            return Ok(told.map_or_else(|| pending(question), Attempt::Done));
        }
        Ok(match prepared? {
            NextStep::Ask(question) => pending(&question),
            NextStep::Decided(decision) => Attempt::Done(read(decision)),
        })
    }

    /// Decides a request that is sent repeatedly, such as each message of a connection, like
    /// [`check`](Self::check): by the rules it was created with, and in order with other requests that wait.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check), except [`CheckError::Closed`].
    pub async fn check_repeated(&self, repeated: &mut Repeated) -> Result<Decision, CheckError> {
        let Repeated {
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
                NextStep::Ask(question) => self.resolve(&question).await,
                NextStep::Decided(decision) => Ok(decision),
            }
        };
        buffers.let_go();
        decided
    }

    /// Returns the decision that the request would get now, without consuming anything. Every matched limit
    /// is tested for the cost of the request, a cost of 0 as 1. Waits for no limit.
    ///
    /// The result holds for this moment only. To pass, use [`check`](Self::check).
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{Limiter, Request};
    ///
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// let limiter = Limiter::from_yaml("policies: [{ name: api, limits: [{ name: all, rate: 5/h }] }]")?;
    /// let request = Request::new();
    /// assert!(limiter.test(&request.cost(5)).await?.is_allowed());
    /// assert!(!limiter.test(&request.cost(6)).await?.is_allowed());
    ///
    /// // Seven were used all the same.
    /// assert!(limiter.report(&request.cost(7)).await?.is_allowed());
    /// assert!(!limiter.test(&request).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn test(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Test).await
    }

    /// Reports usage that has already happened. Charges all matched limits, even if it does not fit, down to
    /// their `overdraft`. Waits for no limit.
    ///
    /// The decision is a refusal if a limit had less than one whole unit left before; the charge is made all
    /// the same. Exception: while a limit blocks the client (`block`), nothing is counted, including this
    /// report; see [`blocked_for`](Decision::blocked_for). Limits in shadow mode are charged as usual, if all
    /// limits would have let the request pass.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    pub async fn report(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Report).await
    }

    async fn decide(
        &self,
        request: &Request<'_>,
        purpose: AskPurpose,
    ) -> Result<Decision, CheckError> {
        match self.attempt(&self.rules()?, request, purpose)? {
            Attempt::Done(decision) => Ok(decision),
            Attempt::Pending(pending) => pending.decision().await,
        }
    }

    /// Decides a prepared request with a store that answers without waiting, and passes the decision to
    /// `read` in place. Returns `None` if the store cannot.
    #[inline]
    pub(crate) fn answer_at_once<T>(
        &self,
        question: &PreparedRequest<'_>,
        read: impl FnOnce(Decision) -> T,
    ) -> Option<T> {
        // Requests that wait must be charged in the order of their timestamps.
        let _in_order = question.is_in_line.then(|| self.giving().credits.hold());
        if question.is_apart() {
            return each::decide_at_once(self, question).map(read);
        }
        let reply = self.store().decide_at_once(&question.asks);
        Some(read(question.answer(reply.as_ref()?)))
    }

    /// Decides a prepared request with any store, and waits for limits that let it.
    pub(crate) async fn resolve(
        &self,
        question: &PreparedRequest<'_>,
    ) -> Result<Decision, CheckError> {
        if question.may_wait {
            return waiting::decide(self, question).await;
        }
        if !self.waits()
            && let Some(decision) = self.answer_at_once(question, |decision| decision)
        {
            return Ok(decision);
        }
        if question.is_apart() {
            return each::decide(self, question).await;
        }
        self.ask(question).await
    }

    /// Calls the store for a request that does not wait for limits.
    pub(crate) async fn ask(&self, question: &PreparedRequest<'_>) -> Result<Decision, CheckError> {
        let answers = self.ask_store(question.terms(), &question.asks).await?;
        Ok(question.decide_refundable(&answers))
    }

    /// Checks if `request` can be decided: the policy it names exists, the limits it carries are valid, and
    /// the limiter is not closed. Calls no store.
    ///
    /// # Errors
    ///
    /// The error that [`check`](Self::check) would return for one of these reasons.
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        let rules = self.rules()?;
        let (_, policy) = rules.find(request)?;
        RequestLimits::of(policy, request.descriptors).map(drop)
    }
}

impl<C: Clock> Limiter<MemoryStore<C>> {
    /// Decides a request immediately, for callers that are not asynchronous. Like [`check`](Self::check),
    /// which does not wait for an in-memory store either. But this method does not wait for limits,
    /// regardless of their `on_refusal`: a request that does not fit now is refused. On a token bucket it
    /// cannot overtake requests that wait; on windows it may.
    ///
    /// # Errors
    ///
    /// If the policy is unknown, a limit that the request carries is invalid, or the limiter is closed.
    #[expect(clippy::missing_panics_doc, reason = "this store never waits")]
    pub fn check_now(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        let mut decided = None;
        // Written to its final place: a move through the attempt would copy it twice more.
        let keep = |decision| decided = Some(decision);
        let attempt = self.attempt_with(&self.rules()?, request, AskPurpose::Pass, keep)?;
        if let Attempt::Pending(pending) = attempt {
            decided = pending.decision_now();
        }
        Ok(decided.expect("a store in this process decides at once"))
    }
}
