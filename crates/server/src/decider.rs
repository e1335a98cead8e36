//! Decides and observes: what every door has in common behind its protocol.

use crate::telemetry::decisions::Decisions;
use crate::telemetry::masked::Masked;
use crate::telemetry::metrics::Metrics;
use crate::telemetry::store::StoreStats;
use crate::telemetry::without_store::WithoutStore;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    AnyStore, BuildError, CheckError, Config, Decision, Limiter, Request, Rules, Store,
};
use tidegate_policy::Policy;
use tokio::time::timeout;
use tracing::debug;

/// How long it may take to tell other instances that this one goes.
const FAREWELL: Duration = Duration::from_millis(200);

/// Decides requests, and counts and logs what came of them. Clones are cheap and share everything.
#[derive(Debug)]
pub struct Decider<S = AnyStore> {
    limiter: Limiter<S>,
    metrics: Arc<Metrics>,
}

/// How it stands with deciding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// As it should be.
    Sound,
    /// The store is away, and limits go on without it.
    Degraded,
    /// The store is away, and nothing can pass without it.
    Stuck,
}

impl<S> Clone for Decider<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            metrics: Arc::clone(&self.metrics),
        }
    }
}

impl Decider {
    /// Decides by the policies of `config`, in the store that it names, whether or not that is
    /// there yet.
    pub async fn start(config: Config) -> Result<Self, BuildError> {
        let decisions = Decisions::new(&config.policies);
        let without_store = WithoutStore::new(&config.policies);
        let limiter = Limiter::builder().config(config).start().await?;
        Ok(Self::observed(limiter, decisions, without_store))
    }

    /// Tells those who share the store that this instance goes, unless that takes long.
    pub async fn leave(&self) {
        // They notice anyhow, a little later.
        timeout(FAREWELL, self.limiter.leave()).await.ok();
    }
}

impl<S: StoreStats> Decider<S> {
    /// Decides by `limiter`, whose policies are `policies`.
    pub fn new(limiter: Limiter<S>, policies: &[Policy]) -> Self {
        let decisions = Decisions::new(policies);
        let without_store = WithoutStore::new(policies);
        Self::observed(limiter, decisions, without_store)
    }

    fn observed(limiter: Limiter<S>, decisions: Decisions, without_store: WithoutStore) -> Self {
        let metrics = Metrics::new(decisions, without_store, limiter.clone());
        Self {
            limiter,
            metrics: Arc::new(metrics),
        }
    }
}

impl<S: Store> Decider<S> {
    /// What is decided by at present, for doors that have to find out who asks.
    pub fn rules(&self) -> Result<Arc<Rules>, CheckError> {
        self.limiter.rules()
    }

    /// Whether a decision may have to wait for the store.
    pub fn waits(&self) -> bool {
        self.limiter.waits()
    }

    /// Whether any decision may have to wait at present: for the store, or for a limit.
    pub fn may_wait(&self) -> bool {
        self.limiter.may_wait()
    }

    /// Decides a request.
    pub async fn decide(&self, request: &Request<'_>) -> Result<Decision, CheckError> {
        self.decide_by(&self.rules()?, request).await
    }

    /// Decides a request by the rules by which it was found out who asks.
    pub async fn decide_by(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Result<Decision, CheckError> {
        let outcome = self.limiter.check_by(rules, request).await;
        self.observe(rules, request, &outcome);
        outcome
    }

    /// The same, if the store decides at once; `None` means that nothing was done.
    pub fn decide_at_once(
        &self,
        rules: &Arc<Rules>,
        request: &Request<'_>,
    ) -> Option<Result<Decision, CheckError>> {
        let outcome = self.limiter.check_at_once(rules, request);
        if let Some(outcome) = &outcome {
            self.observe(rules, request, outcome);
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

    fn observe(
        &self,
        rules: &Rules,
        request: &Request<'_>,
        outcome: &Result<Decision, CheckError>,
    ) {
        match outcome {
            Ok(decision) => {
                self.metrics.decisions.count(decision);
                self.metrics.without_store.count(decision);
                if !decision.is_allowed() {
                    log_refusal(decision);
                }
            }
            Err(CheckError::Store(_)) => {
                if let Some(policy) = rules.policy(request.policy) {
                    self.metrics.without_store.count_error(&policy.name);
                }
            }
            Err(_) => {}
        }
    }

    /// Decides by `config` from now on. Decisions under way keep what they began with, and are
    /// counted all the same. An error leaves everything as it was. One at a time.
    pub(crate) fn reload(&self, config: Config) -> Result<(), BuildError> {
        let before = self.metrics.lay_out(&config.policies);
        let reloaded = self.limiter.reload(config);
        if reloaded.is_err() {
            self.metrics.put_back(before);
        }
        reloaded
    }

    /// Whether a request could be decided: changes nothing, counts nothing.
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        self.limiter.accepts(request)
    }

    /// How it stands. A store that was away is asked, for perhaps nobody else does.
    pub async fn standing(&self) -> Standing {
        let is_up = match self.limiter.store_health() {
            Some(health) if !health.is_up => {
                let probed = self.limiter.probe_store().await;
                probed.is_none_or(|health| health.is_up)
            }
            _ => true,
        };
        match is_up {
            true => Standing::Sound,
            false if self.limiter.goes_on_without_store() => Standing::Degraded,
            false => Standing::Stuck,
        }
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
