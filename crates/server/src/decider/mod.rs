//! Decides and observes: what every door has in common behind its protocol.
//!
//! | module | what it is |
//! |---|---|
//! | this one | the decider itself: what it decides by, reloads, how it stands |
//! | `asking` | deciding requests for all frontends, and observing the outcome |
//! | `reserving` | reserving, and settling what was reserved |
//! | `throttling` | one bucket by a quota that the caller brings |

mod asking;
mod reserving;
mod throttling;

pub(crate) use asking::{AskTerms, CheckAttempt, CheckOutcome, Logged, PendingCheck};

use crate::alerts::AlertSender;
use crate::sources::PlanLoader;
use crate::telemetry::metrics::{Metrics, NamedCounters};
use crate::telemetry::refusals::Refusals;
use crate::telemetry::statsd::Outlet;
use crate::telemetry::store::StoreStats;
use crate::telemetry::traces::{RequestTrace, Tracer};
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{
    AnyStore, BuildError, CheckError, Config, LimitMode, Limiter, PlansError, Request, Rules, Store,
};
use tidegate_policy::Policy;
use tidegate_policy::statsd::Statsd;
use tokio::time::timeout;
use tracing::{info, warn};

/// How long it may take to tell other instances that this one goes.
const FAREWELL: Duration = Duration::from_millis(200);

/// Decides requests, and counts and logs what came of them. Clones are cheap and share everything.
#[derive(Debug)]
pub struct Decider<S = AnyStore> {
    limiter: Limiter<S>,
    metrics: Arc<Metrics>,
    /// Rings when something needs a person.
    bell: AlertSender,
    /// Records single requests, if anybody wants to know of them.
    tracer: Option<Arc<Tracer>>,
    /// Sends statistics to statsd.
    statsd: Option<Arc<Outlet>>,
    refusals: Refusals,
    /// Where plans are loaded from, with the connections to there.
    plans: PlanLoader,
}

/// How it stands with deciding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeciderHealth {
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
            bell: self.bell.clone(),
            tracer: self.tracer.clone(),
            statsd: self.statsd.clone(),
            refusals: self.refusals,
            plans: self.plans.clone(),
        }
    }
}

impl Decider {
    /// Decides by the policies of `config`, in the store that it names, whether or not that is
    /// there yet.
    pub async fn start(config: Config) -> Result<Self, BuildError> {
        let counters = NamedCounters::new(&config.policies);
        if config.mode == LimitMode::Shadow {
            tell(config.mode);
        }
        // Put aside, both: they are large, and each of them happens once.
        let builder = Limiter::builder().config(config).listed();
        let limiter = Box::pin(builder.start()).await?;
        let decider = Self::observed(limiter, counters);
        decider.load_plans().await?;
        Ok(decider)
    }

    /// Loads plans, so that the first requests find them. Fails on a mistake: an invalid document, or a file
    /// that cannot be read. Other sources that cannot be reached are tried again while it serves.
    async fn load_plans(&self) -> Result<(), BuildError> {
        let wrong = Box::pin(self.limiter.load_plans(&self.plans)).await;
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

    /// Tells those who share the store that this instance goes, unless that takes long.
    pub async fn leave(&self) {
        // They notice anyhow, a little later.
        timeout(FAREWELL, self.limiter.leave()).await.ok();
    }
}

/// Logs whether anything is refused from now on.
fn tell(mode: LimitMode) {
    match mode {
        LimitMode::Shadow => warn!("shadow mode: every request passes, refusals are only counted"),
        LimitMode::Enforce => info!("enforcing: shadow mode has ended"),
    }
}

impl<S: StoreStats> Decider<S> {
    /// Decides by `limiter`, whose policies are `policies`.
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
            plans: PlanLoader::default(),
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

    /// Decides by `config` from now on. Decisions under way keep what they began with, and are
    /// counted all the same. An error leaves everything as it was. One at a time.
    pub(crate) fn reload(&self, config: Config) -> Result<(), BuildError> {
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

    /// Returns true if everything is in shadow mode: decided and counted, and nothing refuses.
    pub(crate) fn is_shadow(&self) -> bool {
        self.limiter.rules().is_ok_and(|rules| rules.is_shadow())
    }

    /// Whether a request could be decided: changes nothing, counts nothing.
    pub fn accepts(&self, request: &Request<'_>) -> Result<(), CheckError> {
        self.limiter.accepts(request)
    }

    /// How it stands. A store that was away is asked, for perhaps nobody else does.
    pub async fn standing(&self) -> DeciderHealth {
        let is_up = match self.limiter.store_health() {
            Some(health) if !health.is_up => {
                let probed = self.limiter.probe_store().await;
                probed.is_none_or(|health| health.is_up)
            }
            _ => true,
        };
        match is_up {
            true => DeciderHealth::Sound,
            false if self.limiter.goes_on_without_store() => DeciderHealth::Degraded,
            false => DeciderHealth::Stuck,
        }
    }

    /// Reads the lists of guards again, for as long as anybody decides.
    pub fn keep_lists(&self) -> impl Future<Output = ()> + Send + use<S> {
        self.limiter.keep_lists()
    }

    /// Loads what plans say, and loads it again, for as long as anybody decides.
    pub fn keep_plans(&self) -> impl Future<Output = ()> + Send + use<S> {
        self.limiter.keep_plans(self.plans.clone())
    }

    /// Where plans are loaded from.
    pub(crate) fn plans(&self) -> &PlanLoader {
        &self.plans
    }

    pub(crate) fn limiter(&self) -> &Limiter<S> {
        &self.limiter
    }

    /// Rings when something needs a person.
    pub(crate) fn bell(&self) -> &AlertSender {
        &self.bell
    }

    /// The same, heard by somebody.
    pub(crate) fn with_bell(self, bell: AlertSender) -> Self {
        Self { bell, ..self }
    }

    /// The same, of which `tracer` records what single requests go through, and the log hears of
    /// refusals as often as `refusals` says.
    pub(crate) fn observed_by(self, tracer: Option<Arc<Tracer>>, refusals: Refusals) -> Self {
        Self {
            tracer,
            refusals,
            ..self
        }
    }

    /// The same, whose statistics go to the statsd server of `settings`.
    pub(crate) fn with_statsd(self, settings: &Statsd) -> Self {
        let decisions = Arc::clone(&self.metrics.decisions);
        let outlet = Outlet::new(settings, decisions, self.metrics.statsd.clone());
        Self {
            statsd: Some(outlet),
            ..self
        }
    }

    /// Sends statistics to statsd, if that is configured.
    pub(crate) fn statsd(&self) -> Option<&Arc<Outlet>> {
        self.statsd.as_ref()
    }

    /// A request with these headers begins: what is recorded of it. Whether its caller is believed is
    /// asked only where that matters.
    #[inline]
    pub(crate) fn trace(
        &self,
        headers: &HeaderMap,
        is_trusted: impl FnOnce() -> bool,
    ) -> RequestTrace {
        match &self.tracer {
            Some(tracer) => tracer.begin(headers, is_trusted),
            None => RequestTrace::none(),
        }
    }

    /// Who records, if anybody does.
    pub(crate) fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }

    /// Of how many refusals the log hears.
    #[inline]
    pub(crate) fn refusals(&self) -> Refusals {
        self.refusals
    }

    pub(crate) fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }
}
