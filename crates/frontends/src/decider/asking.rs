//! The check that all frontends share. Every frontend parses a request, starts the check here, and
//! responds in its own protocol. Waiting, metrics, traces and logs are the same for all.

use super::Decider;
use super::warning::LimitWarning;
use std::sync::Arc;
use tidegate::{
    AskPurpose, Attempt, AttemptTerms, CheckError, Decision, PendingDecision, RepeatedRequest,
    Request, Rules, Store,
};
use tidegate_net::promise::Promise;
use tidegate_telemetry::decisions::Timing;
use tidegate_telemetry::masked_key::MaskedKey;
use tidegate_telemetry::traces::{ChildSpan, RequestTrace, UNTRACED};
use tracing::debug;

/// A decision, or the reason why there is none. Borrowed: a decision is large, and few callers keep it.
pub(crate) type CheckOutcome<'o> = Result<&'o Decision, &'o CheckError>;

/// The terms of a frontend's check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskTerms<'a> {
    /// The purpose of the request.
    pub(crate) purpose: AskPurpose,
    /// An earlier request of the same list or pipeline is pending, and must not be overtaken.
    pub(crate) is_behind: bool,
    /// The place where a refusal is logged.
    pub(crate) logged: RefusalLogging,
    /// The trace that the decision belongs to.
    pub(crate) trace: &'a RequestTrace,
    /// The reason why a token of the request was rejected, if one was.
    pub(crate) token_refused: Option<&'static str>,
}

/// The place where a refusal is logged, if `logs.refusals` selects it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RefusalLogging {
    /// At the decision: no response contains an id by which the refusal could be found.
    Here,
    /// With the response, under the correlation id in it.
    WithAnswer,
}

/// The result of a check: decided, observed and answered; or still pending.
pub(crate) enum CheckAttempt<S, T, F> {
    /// The value that `tell` returned.
    Done(T),
    /// The store, or a limit, makes it wait.
    Pending(PendingCheck<S>, F),
}

/// A pending decision, with the data to observe it later. It owns everything it needs.
#[derive(Debug)]
pub(crate) struct PendingCheck<S> {
    pending: PendingDecision<S>,
    observing: PendingObservation,
}

/// The data to observe a decision once there is one.
#[derive(Debug)]
struct PendingObservation {
    purpose: AskPurpose,
    logged: RefusalLogging,
    timing: Timing,
    leg: ChildSpan,
}

impl<'a> AskTerms<'a> {
    /// Returns the terms of a check that decides whether a request passes. `token_refused` is the reason why
    /// its token was rejected; every frontend that reads tokens has to pass it on.
    pub(crate) fn pass(
        trace: &'a RequestTrace,
        logged: RefusalLogging,
        token_refused: Option<&'static str>,
    ) -> Self {
        Self {
            purpose: AskPurpose::Pass,
            is_behind: false,
            logged,
            trace,
            token_refused,
        }
    }
}

impl<S: Store> Decider<S> {
    /// Decides a request by the current rules. Returns true if it may pass, and `None` if that cannot be
    /// decided. For programs that are no frontend.
    pub async fn passes(&self, request: &Request<'_>) -> Option<bool> {
        let terms = AskTerms::pass(&UNTRACED, RefusalLogging::Here, None);
        let rules = self.rules().ok()?;
        let is_allowed = |outcome: CheckOutcome<'_>| outcome.ok().map(Decision::is_allowed);
        self.ask(&rules, request, terms, is_allowed).value().await
    }

    /// Checks a request by the rules that its client was identified by, and passes the outcome to `tell`:
    /// immediately, if neither the store nor a limit makes it wait.
    pub(crate) fn ask<'a, T: Send + 'a>(
        &'a self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        terms: AskTerms<'a>,
        tell: impl FnOnce(CheckOutcome<'_>) -> T + Send + 'a,
    ) -> Promise<'a, T> {
        match self.attempt(rules, request, terms, tell) {
            CheckAttempt::Done(told) => Promise::Now(told),
            CheckAttempt::Pending(pending, tell) => {
                let later = async move { tell(pending.outcome(self, terms.trace).await.as_ref()) };
                Promise::Later(Box::pin(later))
            }
        }
    }

    /// Checks a request like [`ask`](Self::ask), for frontends that do their own waiting.
    pub(crate) fn attempt<T, F: FnOnce(CheckOutcome<'_>) -> T>(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        terms: AskTerms<'_>,
        tell: F,
    ) -> CheckAttempt<S, T, F> {
        self.count_token(terms.token_refused);
        let observing = PendingObservation {
            purpose: terms.purpose,
            logged: terms.logged,
            timing: Timing::start(self.limiter.waits()),
            leg: terms.trace.leg(),
        };
        let asked = (&**rules, request);
        let mut telling = Some((observing, tell));
        let mut take = || telling.take().expect("it is sent once");
        // A decision is observed and passed on where it is made: it is large, and would have to be moved
        // otherwise.
        let order = AttemptTerms {
            purpose: terms.purpose,
            is_behind: terms.is_behind,
        };
        let attempt = self
            .limiter
            .attempt_with(rules, request, order, |decision| {
                let (observing, tell) = take();
                self.observe(asked, Ok(&decision), observing, terms.trace);
                tell(Ok(&decision))
            });
        match attempt {
            Ok(Attempt::Done(told)) => CheckAttempt::Done(told),
            Ok(Attempt::Pending(pending)) => {
                let (observing, tell) = take();
                CheckAttempt::Pending(PendingCheck { pending, observing }, tell)
            }
            Err(error) => {
                let (observing, tell) = take();
                self.observe(asked, Err(&error), observing, terms.trace);
                CheckAttempt::Done(tell(Err(&error)))
            }
        }
    }

    /// Counts the token of a request, if it was rejected for this reason. Called once for each
    /// identification.
    #[inline]
    pub(crate) fn count_token(&self, refused: Option<&'static str>) {
        if let Some(why) = refused {
            self.metrics.callers.count_token(why);
        }
    }

    /// Decides a request that is decided repeatedly, by the rules that it began with.
    pub(crate) async fn ask_again(
        &self,
        repeated: &mut RepeatedRequest,
    ) -> Result<Decision, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let outcome = self.limiter.check_repeated(repeated).await;
        let asked = (&**repeated.rules(), &repeated.counted());
        self.count(asked, outcome.as_ref(), timing, RefusalLogging::Here);
        outcome
    }

    /// Refunds the charge of an allowed decision. Returns true if there was anything to refund.
    pub(crate) async fn refund_decision(&self, decision: &Decision) -> bool {
        match self.limiter.refund_decision(decision).await {
            Ok(given) => given,
            Err(error) => {
                debug!(event = "refund_failed", %error, "refund failed; the charge stays");
                false
            }
        }
    }

    /// Counts, traces and logs the outcome of a request.
    fn observe(
        &self,
        asked: (&Rules, &Request<'_>),
        outcome: CheckOutcome<'_>,
        observing: PendingObservation,
        trace: &RequestTrace,
    ) {
        let PendingObservation {
            purpose,
            logged,
            timing,
            leg,
        } = observing;
        trace.decided(leg, outcome);
        match outcome {
            Ok(decision) if purpose == AskPurpose::Guards => self.count_guarded(asked.0, decision),
            _ => self.count(asked, outcome, timing, logged),
        }
    }

    /// Counts a request to which no limit applies, and which only guards may refuse.
    fn count_guarded(&self, rules: &Rules, decision: &Decision) {
        self.metrics.guards.count(decision);
        if !decision.is_allowed() {
            log_refusal(decision);
        }
        self.log_shadow(rules, decision);
    }

    /// Counts and logs the outcome of a request.
    pub(super) fn count(
        &self,
        (rules, request): (&Rules, &Request<'_>),
        outcome: CheckOutcome<'_>,
        timing: Timing,
        logged: RefusalLogging,
    ) {
        match outcome {
            Ok(decision) => {
                self.metrics.decisions.count(decision, request, timing);
                if decision.reports_reason() {
                    self.metrics.guards.count(decision);
                }
                if decision.is_planned() {
                    self.metrics.plans.count(decision);
                }
                self.metrics.without_store.count(decision);
                decision
                    .warnings()
                    .for_each(|band| self.warn_of(&LimitWarning::of_band(decision, &band)));
                if !decision.is_allowed() {
                    log_refusal(decision);
                    if logged == RefusalLogging::Here {
                        self.refusals.log(decision, None);
                    }
                }
                self.log_shadow(rules, decision);
            }
            Err(CheckError::Store(_)) => {
                if let Some(policy) = rules.policy(request.policy) {
                    self.metrics.without_store.count_error(&policy.name);
                }
            }
            Err(_) => {}
        }
    }

    /// Logs a refusal that global shadow mode prevented.
    fn log_shadow(&self, rules: &Rules, decision: &Decision) {
        if rules.is_shadow() {
            self.refusals.log_shadow(decision);
        }
    }
}

impl<S: Store> PendingCheck<S> {
    /// Waits for the outcome, and observes it.
    pub(crate) async fn outcome(
        self,
        decider: &Decider<S>,
        trace: &RequestTrace,
    ) -> Result<Decision, CheckError> {
        let Self { pending, observing } = self;
        let outcome = pending.decision().await;
        let counted = pending.counted();
        let asked = (&**pending.rules(), &counted.request());
        decider.observe(asked, outcome.as_ref(), observing, trace);
        outcome
    }
}

fn log_refusal(decision: &Decision) {
    if let Some(guard) = decision.guard() {
        // The client is in the list, and may be a secret.
        debug!(
            event = "decision_refused",
            policy = decision.policy(),
            guard = guard.name,
            reason = guard.reason.as_str(),
            "request refused"
        );
    }
    let Some(binding) = decision.binding() else {
        return;
    };
    debug!(
        event = "decision_refused",
        policy = decision.policy(),
        limit = binding.limit(),
        band = binding.band(),
        unit = binding.unit(),
        key = %MaskedKey(binding.key()),
        reason = decision.reason().as_str(),
        decided_by = decision.decided_by().as_str(),
        "request refused"
    );
}
