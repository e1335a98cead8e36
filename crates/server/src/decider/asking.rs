//! Deciding requests, and giving back what they were charged.

use super::{Decider, Logged};
use crate::alerts::{Alert, AlertKind};
use crate::telemetry::decisions::Timing;
use crate::telemetry::masked::Masked;
use std::sync::Arc;
use tidegate::{Applied, CheckError, Decision, Repeated, Request, Rules, Store};
use tracing::{debug, warn};

impl<S: Store> Decider<S> {
    /// Decides a request.
    pub async fn decide(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide_by(&self.rules()?, request, Logged::Here).await
    }

    /// Decides a request by the rules by which it was found out who asks.
    pub async fn decide_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        logged: Logged,
    ) -> Result<Decision, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let outcome = self.limiter.check_by(rules, request).await;
        self.observe((rules, request), outcome.as_ref(), timing, logged);
        outcome
    }

    /// Decides a request that is decided again and again, by the rules that it began with.
    pub async fn decide_repeated(&self, repeated: &mut Repeated) -> Result<Decision, CheckError> {
        let timing = Timing::start(self.limiter.waits());
        let outcome = self.limiter.check_repeated(repeated).await;
        let request = repeated.counted();
        let rules = repeated.rules();
        self.observe((rules, &request), outcome.as_ref(), timing, Logged::Here);
        outcome
    }

    /// Decides a request by these rules, if its policy is [decided at once](Self::decides_at_once);
    /// `None` means that nothing was done.
    pub fn decide_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
        logged: Logged,
    ) -> Option<Result<Decision, CheckError>> {
        if !self.decides_at_once(rules, request.policy) {
            return None;
        }
        let timing = Timing::start(false);
        let outcome = self.limiter.check_at_once(rules, request);
        if let Some(outcome) = &outcome {
            self.observe((rules, request), outcome.as_ref(), timing, logged);
        }
        outcome
    }

    /// Asks the guards alone, about a request to which no limit applies. A refusal is logged with the
    /// answer.
    pub fn guard_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        let outcome = self.limiter.check_guards_by(rules, request);
        if let Ok(decision) = &outcome {
            self.limiter.count_guarded(rules, request, decision);
            self.metrics.guards.count(decision);
            if !decision.is_allowed() {
                log_refusal(decision);
            }
            self.log_shadow(rules, decision);
        }
        outcome
    }

    /// Gives back what an allowed decision charged; whether there was anything to give back.
    pub async fn give_back(&self, decision: &Decision) -> bool {
        match self.limiter.give_back(decision).await {
            Ok(given) => given,
            Err(error) => {
                debug!(%error, "what was charged could not be given back");
                false
            }
        }
    }

    /// Tells that a limit is nearly used up, or is.
    #[cold]
    fn warn_of(&self, band: &Applied<'_>) {
        let (limit, left, capacity) = (band.limit(), band.remaining(), band.capacity());
        let whose = match band.key() {
            "" => String::new(),
            key => format!(" of {}", Masked(key)),
        };
        warn!(limit, left, capacity, key = %Masked(band.key()), "a limit is nearly used up");
        let message = format!("Limit `{limit}`{whose} has {left} of {capacity} left.");
        let subject = format!("{limit}{whose}");
        self.bell
            .ring(Alert::new(AlertKind::Threshold, &subject, message));
    }

    /// Counts and logs what came of a request.
    pub(super) fn observe(
        &self,
        (rules, request): (&Rules, &Request<'_>),
        outcome: Result<&Decision, &CheckError>,
        timing: Timing,
        logged: Logged,
    ) {
        match outcome {
            Ok(decision) => {
                self.metrics.decisions.count(decision, request, timing);
                if decision.tells_reason() {
                    self.metrics.guards.count(decision);
                }
                if decision.is_planned() {
                    self.metrics.plans.count(decision);
                }
                self.metrics.without_store.count(decision);
                decision.warnings().for_each(|band| self.warn_of(&band));
                if !decision.is_allowed() {
                    log_refusal(decision);
                    if logged == Logged::Here {
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

    /// Logs what would have been refused, had not everything been in shadow mode.
    fn log_shadow(&self, rules: &Rules, decision: &Decision) {
        if rules.is_shadow() {
            self.refusals.log_shadow(decision);
        }
    }
}

fn log_refusal(decision: &Decision) {
    if let Some(guard) = decision.guard() {
        // Who it was stands in the list, and may be a secret.
        debug!(
            policy = decision.policy(),
            guard = guard.name,
            reason = guard.reason.as_str(),
            "refused"
        );
    }
    let Some(binding) = decision.binding() else {
        return;
    };
    debug!(
        policy = decision.policy(),
        limit = binding.limit(),
        band = binding.band(),
        key = %Masked(binding.key()),
        reason = decision.reason().as_str(),
        decided_by = decision.decided_by().as_str(),
        "refused"
    );
}
