//! Decides and observes: what every door has in common behind its protocol.

use crate::telemetry::decisions::Decisions;
use crate::telemetry::masked::Masked;
use crate::telemetry::metrics::Metrics;
use std::sync::Arc;
use tidegate::{BuildError, CheckError, Config, Decision, Limiter, Request};
use tracing::debug;

/// Decides requests, and counts and logs what came of them. Clones are cheap and share everything.
#[derive(Clone, Debug)]
pub struct Decider {
    limiter: Limiter,
    metrics: Arc<Metrics>,
}

impl Decider {
    /// Decides by the policies of `config`, in the store that it names.
    pub fn new(config: Config) -> Result<Self, BuildError> {
        let decisions = Decisions::new(&config.policies);
        let limiter = Limiter::builder().config(config).build()?;
        let metrics = Arc::new(Metrics::new(decisions, limiter.clone()));
        Ok(Self { limiter, metrics })
    }

    /// Decides a request.
    pub fn decide(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        let decision = self.limiter.check_now(request)?;
        self.metrics.decisions.count(&decision);
        if !decision.is_allowed() {
            log_refusal(&decision);
        }
        Ok(decision)
    }

    /// Whether a request could be decided: changes nothing, counts nothing.
    pub fn probe(&self, request: &Request<'_>) -> Result<(), CheckError> {
        self.limiter.check_now(&request.cost(0)).map(drop)
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }
}

fn log_refusal(decision: &Decision) {
    let Some(binding) = decision.binding() else {
        return;
    };
    debug!(
        policy = decision.policy(),
        limit = binding.limit(),
        band = binding.band(),
        key = %Masked(binding.key()),
        decided_by = decision.decided_by().as_str(),
        "refused"
    );
}
