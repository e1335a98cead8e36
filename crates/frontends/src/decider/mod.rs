//! Decides and observes: the part that all frontends have in common behind their protocols.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the decider itself: rules, reloads, health |
//! | `asking` | checks for all frontends, and observation of the outcome |
//! | `reserving` | reservations, and their settlement |
//! | `throttling` | a check of one bucket by the caller's own quota |
//! | `warning` | alerts that a band reached a share |

mod acquiring;
mod asking;
mod reserving;
mod throttling;
mod warning;

pub(crate) use asking::{AskTerms, CheckAttempt, CheckOutcome, PendingCheck, RefusalLogging};

use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    AnyStore, BuildError, CheckError, Config, LimitMode, Limiter, LoadPlans, PlansError, Rules,
    Store,
};
use tidegate_config::statsd::Statsd;
use tidegate_policy::Policy;
use tidegate_telemetry::alerts::AlertSender;
use tidegate_telemetry::metrics::{Metrics, NamedCounters};
use tidegate_telemetry::refusals::Refusals;
use tidegate_telemetry::statsd::Outlet;
use tidegate_telemetry::store::StoreStats;
use tidegate_telemetry::traces::{RequestTrace, Tracer};
use tokio::time::timeout;
use tracing::{info, warn};

/// The timeout for telling other instances that this one leaves.
const FAREWELL: Duration = Duration::from_millis(200);

/// Decides requests, and counts and logs the outcomes. Clones are cheap and share everything.
#[derive(Debug)]
pub struct Decider<S = AnyStore> {
    limiter: Limiter<S>,
    metrics: Arc<Metrics>,
    /// Sends alerts.
    bell: AlertSender,
    /// Records traces of requests, if tracing is configured.
    tracer: Option<Arc<Tracer>>,
    /// Sends statistics to statsd.
    statsd: Option<Arc<Outlet>>,
    refusals: Refusals,
}

/// The health of the decider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeciderHealth {
    /// The store is reachable.
    Sound,
    /// The store is unreachable, and some limits can be decided without it.
    Degraded,
    /// The store is unreachable, and no request can pass without it.
    Stuck,
}

impl<S> Clone for Decider<S> {
    fn clone(&self) -> Self {
        Self {
            limiter: self.limiter.clone(),
            metrics: Arc::clone(&self.metrics),
            bell: self.bell.clone(),
            tracer: self.tracer.clone(),
            statsd: self.statsd.clone(),
            refusals: self.refusals,
        }
    }
}

impl Decider {
    /// Starts a decider with the policies of `config`, in the store that it names, and with the plans that
    /// `plans` loads. The store need not be reachable yet.
    ///
    /// Plan sources that cannot be reached are retried while the decider serves.
    ///
    /// # Errors
    ///
    /// [`BuildError::Plans`] if a plan document is invalid or a plan file cannot be read, and the errors of
    /// [`LimiterBuilder::start`](tidegate::LimiterBuilder::start).
    pub async fn start(config: Config, plans: &impl LoadPlans) -> Result<Self, BuildError> {
        let counters = NamedCounters::new(&config.policies);
        if config.mode == LimitMode::Shadow {
            tell(config.mode);
        }
        // Both are boxed: they are large, and each runs once.
        let builder = Limiter::builder().config(config).announce();
        let limiter = Box::pin(builder.start()).await?;
        let decider = Self::observed(limiter, counters);
        decider.load_plans(plans).await?;
        Ok(decider)
    }

    /// Loads plans, so that the first requests find them. Fails on a mistake: an invalid document, or a
    /// file that cannot be read. Unreachable sources are retried while the decider serves.
    async fn load_plans(&self, plans: &impl LoadPlans) -> Result<(), BuildError> {
        let wrong = Box::pin(self.limiter.load_plans(plans)).await;
        let states = self.limiter.plans();
        let is_file = |name: &str| states.iter().any(|it| it.name == name && it.kind == "file");
        let mistakes = wrong
            .into_iter()
            .filter(|(name, error)| !matches!(error, PlansError::Load { .. }) || is_file(name));
        let mistakes: Vec<String> = mistakes
            .map(|(name, error)| format!("`{name}`: {error}"))
            .collect();
        if mistakes.is_empty() {
            return Ok(());
        }
        Err(BuildError::Plans {
            reason: mistakes.join("; "),
        })
    }

    /// Announces to the instances that share the store that this one leaves, unless that takes long.
    pub async fn leave(&self) {
        // On a timeout they notice anyhow, a little later.
        timeout(FAREWELL, self.limiter.leave()).await.ok();
    }
}

/// Logs whether limits are enforced from now on.
fn tell(mode: LimitMode) {
    match mode {
        LimitMode::Shadow => warn!(
            event = "shadow_mode_on",
            "shadow mode: every request passes, refusals are only counted"
        ),
        LimitMode::Enforce => info!(event = "shadow_mode_off", "shadow mode ended; enforcing"),
    }
}

impl<S: StoreStats> Decider<S> {
    /// Creates a decider with `limiter`, whose policies are `policies`.
    pub fn new(limiter: Limiter<S>, policies: &[Policy]) -> Self {
        Self::observed(limiter, NamedCounters::new(policies))
    }

    fn observed(limiter: Limiter<S>, counters: NamedCounters) -> Self {
        let metrics = Metrics::new(counters, limiter.clone());
        Self {
            limiter,
            metrics: Arc::new(metrics),
            bell: AlertSender::silent(),
            tracer: None,
            statsd: None,
            refusals: Refusals::default(),
        }
    }
}

impl<S: Store> Decider<S> {
    /// Returns the current rules, for frontends that have to identify the client.
    ///
    /// # Errors
    ///
    /// [`CheckError::Closed`] once the limiter is closed.
    pub fn rules(&self) -> Result<Arc<Rules>, CheckError> {
        self.limiter.rules()
    }

    /// Returns true if a decision may have to wait for the store.
    pub fn waits(&self) -> bool {
        self.limiter.waits()
    }

    /// Decides by `config` from now on. Decisions in flight keep their rules, and are counted. An error
    /// changes nothing. Calls must not overlap.
    ///
    /// # Errors
    ///
    /// Those of [`Limiter::reload`]. The counters then keep the names of the served configuration.
    pub fn reload(&self, config: Config) -> Result<(), BuildError> {
        let mode = config.mode;
        let was_shadow = self.is_shadow();
        let before = self.metrics.lay_out(&config.policies);
        let reloaded = self.limiter.reload(config);
        match &reloaded {
            Err(_) => self.metrics.put_back(before),
            Ok(()) if was_shadow != (mode == LimitMode::Shadow) => tell(mode),
            Ok(()) => {}
        }
        reloaded
    }

    /// Returns true in global shadow mode: requests are decided and counted, and none is refused.
    pub fn is_shadow(&self) -> bool {
        self.limiter.rules().is_ok_and(|rules| rules.is_shadow())
    }

    /// Returns the health. Probes a store that was unreachable, because perhaps no request does.
    pub async fn status(&self) -> DeciderHealth {
        let is_up = match self.limiter.store_health() {
            Some(health) if !health.is_up => {
                let probed = self.limiter.probe_store().await;
                probed.is_none_or(|health| health.is_up)
            }
            _ => true,
        };
        match is_up {
            true => DeciderHealth::Sound,
            false if self.limiter.can_pass_without_store() => DeciderHealth::Degraded,
            false => DeciderHealth::Stuck,
        }
    }

    /// Refreshes the lists of guards, as long as a decider exists.
    pub fn keep_lists(&self) -> impl Future<Output = ()> + Send + use<S> {
        self.limiter.keep_lists()
    }

    /// Returns the limiter.
    pub fn limiter(&self) -> &Limiter<S> {
        &self.limiter
    }

    /// Returns the sender of alerts.
    pub fn bell(&self) -> &AlertSender {
        &self.bell
    }

    /// Returns the decider with this sender of alerts.
    #[must_use]
    pub fn with_bell(self, bell: AlertSender) -> Self {
        Self { bell, ..self }
    }

    /// Returns the decider with traces recorded by `tracer`, and refusals logged at the rate of
    /// `refusals`.
    #[must_use]
    pub fn observed_by(self, tracer: Option<Arc<Tracer>>, refusals: Refusals) -> Self {
        Self {
            tracer,
            refusals,
            ..self
        }
    }

    /// Returns the decider with statistics sent to the statsd server of `settings`.
    #[must_use]
    pub fn with_statsd(self, settings: &Statsd) -> Self {
        let decisions = Arc::clone(&self.metrics.decisions);
        let outlet = Outlet::new(settings, decisions, self.metrics.statsd.clone());
        Self {
            statsd: Some(outlet),
            ..self
        }
    }

    /// Returns the statsd sender, if configured.
    pub fn statsd(&self) -> Option<&Arc<Outlet>> {
        self.statsd.as_ref()
    }

    /// Starts the trace of a request with these headers. `is_trusted` is called only if the result
    /// matters.
    #[inline]
    pub fn trace(&self, headers: &HeaderMap, is_trusted: impl FnOnce() -> bool) -> RequestTrace {
        match &self.tracer {
            Some(tracer) => tracer.begin(headers, is_trusted),
            None => RequestTrace::none(),
        }
    }

    /// Returns the tracer, if tracing is configured.
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }

    /// Returns the setting for logged refusals.
    #[inline]
    pub fn refusals(&self) -> Refusals {
        self.refusals
    }

    /// Returns the metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }
}
