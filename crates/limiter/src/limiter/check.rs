//! Deciding requests.

use super::Limiter;
use crate::ask::{self, Attempt, AttemptTerms};
use crate::decision::Decision;
use crate::error::CheckError;
use crate::purpose::AskPurpose;
use crate::request::RepeatedRequest;
use crate::rules::Rules;
use std::sync::Arc;
use tidegate_core::{Clock, Store};
use tidegate_memory::MemoryStore;
use tidegate_policy::Request;

impl<S: Store> Limiter<S> {
    /// Decides a request, and consumes its cost if it passes.
    ///
    /// All matched limits are charged together, or none is. A limit with `on_refusal: wait` may queue the
    /// request until it fits, for a bounded time and in order of arrival; see [`Decision::waited`]. That
    /// needs a `tokio` runtime with timers; without one, no request waits.
    ///
    /// If the store does not answer, the `on_failure` of each matched limit applies, and
    /// [`Decision::decided_by`] reports it.
    ///
    /// # Cancellation
    ///
    /// Dropping the future while the request is queued releases its place: the requests behind it move up,
    /// and all its charges are refunded. In a shared store, only requests of this limiter and its clones move
    /// up, and the last of their places expires. Dropping it during a call to the store may leave the request
    /// charged.
    ///
    /// # Errors
    ///
    /// - [`CheckError::UnknownPolicy`] if the request names a policy that does not exist.
    /// - [`CheckError::BadLimit`] if a limit that the request carries is invalid.
    /// - [`CheckError::Store`] if the store did not answer and a matched limit has `on_failure: error`.
    /// - [`CheckError::Closed`] if the limiter is [closed](Self::close).
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{KeyPart, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("per-user").key(KeyPart::User).band("2/h"))
    ///     .build()?;
    /// let request = Request::new().user("ann");
    /// for expected in [true, true, false] {
    ///     assert_eq!(limiter.check(&request).await?.is_allowed(), expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn check(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide(request, AskPurpose::Pass).await
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
    /// their `overdraft`. Waits for no limit. Guards do not apply.
    ///
    /// The decision is a refusal if a limit had less than one whole unit left before; the charge is made all
    /// the same. Exception: while a limit blocks the client (`block`), nothing is counted, including this
    /// report; see [`blocked_for`](Decision::blocked_for). Limits in shadow mode are charged as usual, if all
    /// limits would have let the request pass.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check).
    ///
    /// # Example
    ///
    /// A response turned out larger than the budget: the next request has to wait for the difference.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("bytes").band("1000/h")).build()?;
    /// assert!(limiter.report(&Request::new().cost(1000)).await?.is_allowed());
    /// assert!(!limiter.check(&Request::new()).await?.is_allowed());
    /// assert!(!limiter.report(&Request::new().cost(1)).await?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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

    /// Evaluates the guards alone: no limit applies, and nothing is charged. The decision is a refusal if a
    /// guard refuses, and allowed otherwise; see its [`reason`](Decision::reason) and
    /// [`guard`](Decision::guard). Never waits, because lists are in memory.
    ///
    /// # Errors
    ///
    /// If the policy is unknown or the limiter is closed.
    ///
    /// # Example
    ///
    /// Checks if a project is blocked, or an address is on a blocklist:
    ///
    /// ```
    /// use tidegate::{Limiter, AnswerReason, Request};
    ///
    /// let limiter = Limiter::from_yaml("
    /// guards:
    ///   - { name: blocked, deny: attr:project, list: [65fa01] }
    ///   - { name: blacklist, deny: ip, list: [192.0.2.0/24] }
    /// policies: [{ name: events, limits: [{ name: all, rate: 10/s }] }]
    /// ")?;
    ///
    /// // IsBlocked(project)
    /// let project = [("project", "65fa01")];
    /// let blocked = limiter.check_guards(&Request::new().attributes(&project))?;
    /// assert_eq!(blocked.reason(), AnswerReason::Blocked);
    ///
    /// // CheckBlacklist(ip)
    /// let listed = limiter.check_guards(&Request::new().ip("192.0.2.7".parse()?))?;
    /// assert_eq!(listed.guard().map(|guard| guard.name.as_str()), Some("blacklist"));
    /// assert!(limiter.check_guards(&Request::new().ip("198.51.100.1".parse()?))?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check_guards(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        ask::guards(&self.rules()?, request)
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
    /// `terms` is a purpose, or [`AttemptTerms`] for a request that must not overtake an earlier one.
    ///
    /// # Errors
    ///
    /// Those of [`attempt`](Self::attempt).
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{AskPurpose, Attempt, LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("5/h")).build()?;
    /// let rules = limiter.rules()?;
    /// let remaining = limiter.attempt_with(&rules, &Request::new(), AskPurpose::Pass, |decision| {
    ///     decision.binding().map(|band| band.remaining())
    /// })?;
    /// assert!(matches!(remaining, Attempt::Done(Some(4))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn attempt_with<T>(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        terms: impl Into<AttemptTerms>,
        read: impl FnOnce(Decision) -> T,
    ) -> Result<Attempt<S, T>, CheckError> {
        self.owns(rules);
        ask::attempt(&self.state, rules, request, terms.into(), read)
    }

    /// Asserts that `rules` are of this limiter.
    #[inline]
    pub(super) fn owns(&self, rules: &Rules) {
        debug_assert!(
            self.state.owner == rules.owner,
            "these rules are another limiter's"
        );
    }

    /// Decides a request that is sent repeatedly, such as each message of a connection, like
    /// [`check`](Self::check): by the rules it was created with, and in order with other requests that wait.
    ///
    /// # Errors
    ///
    /// Those of [`check`](Self::check), except [`CheckError::Closed`].
    ///
    /// # Example
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use tidegate::{KeyPart, LimitSpec, Limiter, RepeatedRequest, Request};
    ///
    /// let limiter = Limiter::builder()
    ///     .limit(LimitSpec::new("messages").key(KeyPart::User).band("2/h"))
    ///     .build()?;
    /// let mut message = RepeatedRequest::new(&limiter.rules()?, &Request::new().user("ann"));
    /// for expected in [true, true, false] {
    ///     assert_eq!(limiter.check_repeated(&mut message).await?.is_allowed(), expected);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn check_repeated(
        &self,
        repeated: &mut RepeatedRequest,
    ) -> Result<Decision, CheckError> {
        ask::repeat(&self.state.backend, &self.state.queue, repeated).await
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
    ///
    /// # Example
    ///
    /// ```
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limiter = Limiter::builder().limit(LimitSpec::new("all").band("10/h")).build()?;
    /// let decision = limiter.check_now(&Request::new().cost(8))?;
    /// assert_eq!(decision.binding().map(|band| band.remaining()), Some(2));
    ///
    /// // It does not fit, and takes nothing.
    /// assert!(!limiter.check_now(&Request::new().cost(3))?.is_allowed());
    /// assert!(limiter.check_now(&Request::new().cost(2))?.is_allowed());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
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
