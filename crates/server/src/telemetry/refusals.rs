//! Refusals in the log: each that is logged has the id that its client was told.

use super::chance::chance;
use super::masked::Masked;
use super::traces::Context;
use http::HeaderMap;
use tidegate::{Applied, Decision};
use tidegate_http::answer::Correlation;
use tidegate_policy::traces::Sample;
use tracing::info;

/// Of how many refusals there is a line.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Refusals(Sample);

impl Refusals {
    /// Of so many.
    pub(crate) fn of(sample: Sample) -> Self {
        Self(sample)
    }

    /// Logs the refusal of a request with these headers, if it is one of those.
    #[inline]
    pub(crate) fn log(self, decision: &Decision, correlation: &Correlation, headers: &HeaderMap) {
        if !self.0.is_none() && self.0.takes(chance()) {
            tell(decision, correlation, headers);
        }
    }
}

#[cold]
fn tell(decision: &Decision, correlation: &Correlation, headers: &HeaderMap) {
    let binding = decision.binding();
    let binding = binding.as_ref();
    let context = Context::of(headers);
    info!(
        correlation = correlation.as_str(),
        trace = context.map(|context| format!("{:032x}", context.trace)),
        policy = decision.policy(),
        limit = binding.map(Applied::limit),
        band = binding.and_then(Applied::band),
        guard = decision.guard().map(|guard| guard.name.as_str()),
        reason = decision.reason().as_str(),
        key = binding.map(|it| Masked(it.key()).to_string()),
        decided_by = decision.decided_by().as_str(),
        retry_after_ms = binding
            .and_then(Applied::retry_after)
            .map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        "refused a request"
    );
}
