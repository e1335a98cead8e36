//! Refusals in the log (`logs.refusals`): of every frontend, with the id that was sent to the client, if any.

use super::chance::chance;
use super::masked::MaskedKey;
use super::traces::Context;
use http::HeaderMap;
use tidegate::{AppliedBand, Decision};
use tidegate_http::answer::Correlation;
use tidegate_policy::traces::Sample;
use tracing::info;

/// The sample of refusals that are logged.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refusals(Sample);

impl Refusals {
    /// Logs this sample of refusals.
    pub(crate) fn of(sample: Sample) -> Self {
        Self(sample)
    }

    /// Logs a refusal, if it is in the sample. `told` is the id and the headers of the response to it.
    #[inline]
    pub(crate) fn log(self, decision: &Decision, told: Option<(&Correlation, &HeaderMap)>) {
        if self.takes() {
            tell(decision, told);
        }
    }

    /// Logs what limits and guards in shadow mode would have refused, for the same sample of requests.
    #[cold]
    pub(crate) fn log_shadow(self, decision: &Decision) {
        let would_refuse = decision.is_watched() || decision.shadow_refusals().next().is_some();
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
        correlation = told.map(|(correlation, _)| correlation.as_str()),
        trace = context.map(|context| format!("{:032x}", context.trace)),
        policy = decision.policy(),
        limit = binding.map(AppliedBand::limit),
        band = binding.and_then(AppliedBand::band),
        guard = decision.guard().map(|guard| guard.name.as_str()),
        reason = decision.reason().as_str(),
        key = binding.map(|it| MaskedKey(it.key()).to_string()),
        decided_by = decision.decided_by().as_str(),
        retry_after_ms = binding
            .and_then(AppliedBand::retry_after)
            .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        "refused a request"
    );
}

fn tell_shadow(decision: &Decision) {
    for guard in decision.watching_guards() {
        info!(
            policy = decision.policy(),
            guard = guard.name,
            reason = guard.reason.as_str(),
            "shadow mode: would have refused a request"
        );
    }
    for limit in decision.shadow_refusals() {
        info!(
            policy = decision.policy(),
            limit = limit.limit(),
            band = limit.band(),
            reason = limit.reason().as_str(),
            decided_by = decision.decided_by().as_str(),
            "shadow mode: would have refused a request"
        );
    }
}
