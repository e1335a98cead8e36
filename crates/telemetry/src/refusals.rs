//! Refusals in the log (`logs.refusals`): of every frontend, with the id that was sent to the client, if any.

use super::masked_key::MaskedKey;
use super::traces::Context;
use http::HeaderMap;
use tidegate::{AppliedBand, Decision};
use tidegate_config::traces::Sample;
use tidegate_http::answer::Correlation;
use tidegate_net::random::chance;
use tracing::info;

/// The sample of refusals that are logged.
#[derive(Clone, Copy, Debug, Default)]
pub struct Refusals(Sample);

impl Refusals {
    /// Logs this sample of refusals.
    pub fn of(sample: Sample) -> Self {
        Self(sample)
    }

    /// Logs a refusal, if it is in the sample. `told` is the id and the headers of the response to it.
    #[inline]
    pub fn log(self, decision: &Decision, told: Option<(&Correlation, &HeaderMap)>) {
        if self.takes() {
            tell(decision, told);
        }
    }

    /// Logs what limits and guards in shadow mode would have refused, for the same sample of requests.
    #[cold]
    pub fn log_shadow(self, decision: &Decision) {
        let would_refuse =
            decision.has_shadow_guards() || decision.shadow_refusals().next().is_some();
        if would_refuse && self.takes() {
            tell_shadow(decision);
        }
    }

    #[inline]
    fn takes(self) -> bool {
        !self.0.is_none() && self.0.takes(chance())
    }
}

#[cold]
fn tell(decision: &Decision, told: Option<(&Correlation, &HeaderMap)>) {
    let binding = decision.binding();
    let binding = binding.as_ref();
    let context = told.and_then(|(_, headers)| Context::of(headers));
    info!(
        event = "request_refused",
        correlation = told.map(|(correlation, _)| correlation.as_str()),
        trace = context.map(|context| format!("{:032x}", context.trace)),
        policy = decision.policy(),
        limit = binding.map(AppliedBand::limit),
        band = binding.and_then(AppliedBand::band),
        unit = binding.and_then(AppliedBand::unit),
        guard = decision.guard().map(|guard| guard.name.as_str()),
        reason = decision.reason().as_str(),
        key = binding.map(|it| MaskedKey(it.key()).to_string()),
        decided_by = decision.decided_by().as_str(),
        retry_after_ms = binding
            .and_then(AppliedBand::retry_after)
            .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        "request refused"
    );
}

fn tell_shadow(decision: &Decision) {
    for guard in decision.shadow_guards() {
        info!(
            event = "shadow_refused",
            policy = decision.policy(),
            guard = guard.name,
            reason = guard.reason.as_str(),
            "shadow mode: request would be refused"
        );
    }
    for limit in decision.shadow_refusals() {
        info!(
            event = "shadow_refused",
            policy = decision.policy(),
            limit = limit.limit(),
            band = limit.band(),
            unit = limit.unit(),
            reason = limit.reason().as_str(),
            decided_by = decision.decided_by().as_str(),
            "shadow mode: request would be refused"
        );
    }
}
