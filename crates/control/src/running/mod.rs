//! The state that the frontends serve: decisions, and the routes of the gateway. A reload replaces both
//! at once.
//!
//! | module | what it is |
//! |---|---|
//! | `fixed` | the settings that only a restart changes |
//! | `names` | the names in a configuration, and their differences from the previous one |

mod fixed;
mod names;

use crate::failure::Failure;
use crate::sources::PlanLoader;
use arc_swap::ArcSwapOption;
use fixed::StartupSettings;
use names::ConfigNames;
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;
use tidegate::{AnyStore, BuildError, Config, Store};
use tidegate_config::admin::Admin;
use tidegate_config::alerts::Alerts;
use tidegate_config::traces::{Logs, Traces};
use tidegate_frontends::decider::Decider;
use tidegate_frontends::gateway::Gateway;
use tidegate_policy::route::Routes;
use tidegate_telemetry::alerts::{AlertSender, Messenger};
use tidegate_telemetry::refusals::Refusals;
use tidegate_telemetry::store::StoreStats;
use tidegate_telemetry::traces::Tracer;
use tracing::warn;

/// The state that the frontends serve. Clones are cheap and share everything.
#[derive(Debug)]
pub struct ServerState<S = AnyStore> {
    decider: Decider<S>,
    gateway: Option<Arc<Gateway>>,
    /// Locked as long as a reload takes, so that reloads are serialized.
    served: Arc<Mutex<ServedVersion>>,
    /// Delivers alerts; taken by the task that runs it.
    messenger: Arc<Mutex<Option<Messenger>>>,
    /// Loads plans, and holds the connections to their sources.
    plans: PlanLoader,
    /// The credentials of the admin API; a reload replaces them.
    admin: Arc<ArcSwapOption<Admin>>,
}

/// The properties of the served configuration.
#[derive(Debug, Default)]
struct ServedVersion {
    /// The settings at the start; unknown if the caller brought its own decider.
    fixed: Option<StartupSettings>,
    names: ConfigNames,
}

impl ServerState {
    /// Serves `config`, in the store that it names. The store need not be reachable yet.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if `config` is valid but cannot be applied here: for example, there is not enough memory
    /// for `max_keys` buckets, or the webhook of alerts cannot be used.
    pub async fn start(mut config: Config) -> Result<Self, Failure> {
        let served = ServedVersion {
            fixed: Some(StartupSettings::of(&config)),
            names: ConfigNames::of(&config),
        };
        let routes = mem::take(&mut config.routes);
        let alerts = config.alerts.take();
        let admin = config.admin.take();
        let traces = config.traces.take();
        let logs = mem::take(&mut config.logs);
        let statsd = config.statsd.take().filter(|statsd| statsd.enabled);
        let plans = PlanLoader::default();
        // Boxed: this future is large, and would be part of every future that starts a server.
        let decider = Box::pin(Decider::start(config, &plans)).await;
        let decider = decider.map_err(not_started)?;
        let (decider, messenger) = with_alerts(decider, alerts.as_ref())?;
        let decider = observed(decider, traces.as_ref(), &logs)?;
        let decider = match &statsd {
            Some(statsd) => decider.with_statsd(statsd),
            None => decider,
        };
        let mut serving = Self::new(decider, routes)?;
        serving.plans = plans;
        *serving.served.lock() = served;
        *serving.messenger.lock() = messenger;
        serving.admin.store(admin.map(Arc::new));
        Ok(serving)
    }
}

impl<S: Store + StoreStats> ServerState<S> {
    /// Serves decisions of `decider`, and `routes` whose policies are those of the same configuration.
    ///
    /// # Errors
    ///
    /// [`Failure::Input`] if an upstream of `routes` cannot be used, [`Failure::Runtime`] if the limiter is closed.
    pub fn new(decider: Decider<S>, routes: Routes) -> Result<Self, Failure> {
        let gateway = if routes.is_empty() {
            None
        } else {
            let rules = decider.rules().map_err(Failure::runtime)?;
            let metrics = Arc::clone(decider.metrics());
            Some(Gateway::start(routes, rules, metrics).map_err(Failure::input)?)
        };
        Ok(Self {
            decider,
            gateway,
            served: Arc::default(),
            messenger: Arc::default(),
            plans: PlanLoader::default(),
            admin: Arc::default(),
        })
    }
}

impl<S: Store> ServerState<S> {
    /// Serves `config` from now on, without interrupting any request: each is answered by one of the two
    /// configurations, as a whole. Buckets keep their state.
    ///
    /// An error changes nothing. Settings that only a restart can change stay, and are logged; the rest
    /// of `config` takes effect.
    ///
    /// # Errors
    ///
    /// The reason why `config` cannot replace the served one. It is counted as a rejected reload.
    pub fn reload(&self, config: Config) -> Result<(), Failure> {
        let reloaded = self.try_reload(config);
        reloaded.inspect_err(|_| self.reload_refused())
    }

    /// Reloads like [`reload`](Self::reload), for callers that count rejected reloads themselves.
    ///
    /// # Errors
    ///
    /// Those of [`reload`](Self::reload). They are not counted.
    pub fn try_reload(&self, mut config: Config) -> Result<(), Failure> {
        let mut served = self.served.lock();
        let names = ConfigNames::of(&config);
        let admin = config.admin.take();
        let postponed = self.replace(served.fixed.as_ref(), config)?;
        self.admin.store(admin.map(Arc::new));
        // Counted before it is logged: a reader of the log then finds it in the metrics.
        self.decider.metrics().reloads.count_applied();
        names.report_since(&served.names);
        self.warn_of_unapplied(&names, &postponed);
        served.names = names;
        Ok(())
    }

    /// Returns an error if a [reload](Self::reload) with `config` would be rejected. Changes nothing.
    pub(crate) fn validate_reload(&self, mut config: Config) -> Result<(), Failure> {
        if let Some(fixed) = &self.served.lock().fixed {
            fixed.differences(&config).map_err(Failure::input)?;
        }
        let routes = mem::take(&mut config.routes);
        if let Some(gateway) = &self.gateway {
            gateway.prepare(routes).map_err(Failure::input)?;
        }
        let limiter = self.decider.limiter();
        limiter.validate_reload(config).map_err(Failure::input)
    }

    /// Reads the lists of guards that are new in `config`, as at a start: a [reload](Self::reload) with
    /// it then begins with them.
    pub async fn preload_lists(&self, config: &Config) {
        self.decider.limiter().preload_lists(config).await;
    }

    /// Counts a reload that failed before there was a configuration.
    pub(crate) fn reload_refused(&self) {
        self.decider.metrics().reloads.count_refused();
    }

    /// Replaces the configuration, and returns the settings that stay as they were.
    fn replace(
        &self,
        fixed: Option<&StartupSettings>,
        mut config: Config,
    ) -> Result<Vec<&'static str>, Failure> {
        // Everything that can fail comes first, and changes nothing.
        let postponed = match fixed {
            Some(fixed) => fixed.differences(&config).map_err(Failure::input)?,
            None => Vec::new(),
        };
        let routes = mem::take(&mut config.routes);
        let prepared = match &self.gateway {
            Some(gateway) => {
                let prepared = gateway.prepare(routes).map_err(Failure::input)?;
                Some((gateway, prepared))
            }
            None => None,
        };
        self.decider.reload(config).map_err(Failure::input)?;
        // The gateway has its own table, which contains the rules: until it has the new one, its requests
        // take the old routes and are decided by the old rules.
        if let Some((gateway, prepared)) = prepared {
            // Fails only if the limiter was closed.
            let rules = self.decider.rules().map_err(Failure::runtime)?;
            gateway.commit(prepared, rules);
        }
        Ok(postponed)
    }

    /// Logs the parts of a configuration that did not take effect.
    fn warn_of_unapplied(&self, names: &ConfigNames, postponed: &[&str]) {
        if !postponed.is_empty() {
            warn!(
                event = "restart_required",
                settings = postponed.join(", "),
                "settings changed that take effect after a restart"
            );
        }
        match (&self.gateway, names.has_routes()) {
            (None, true) => warn!(
                event = "restart_required",
                "routes were added; the gateway opens after a restart"
            ),
            (Some(_), false) => warn!(
                event = "gateway_without_routes",
                "no routes left; the gateway responds with 404 to every request"
            ),
            _ => {}
        }
    }
}

impl<S> ServerState<S> {
    /// Returns the decider.
    pub fn decider(&self) -> &Decider<S> {
        &self.decider
    }

    /// Returns the loader of plans.
    pub fn plans(&self) -> &PlanLoader {
        &self.plans
    }

    /// Takes the messenger, to run it; `None` after the first call.
    pub fn messenger(&self) -> Option<Messenger> {
        self.messenger.lock().take()
    }

    /// Returns the current credentials of the admin API.
    pub fn admin(&self) -> &Arc<ArcSwapOption<Admin>> {
        &self.admin
    }

    /// Returns the gateway, if there are routes.
    pub fn gateway(&self) -> Option<&Arc<Gateway>> {
        self.gateway.as_ref()
    }
}

impl<S> Clone for ServerState<S> {
    fn clone(&self) -> Self {
        Self {
            decider: self.decider.clone(),
            gateway: self.gateway.clone(),
            served: Arc::clone(&self.served),
            messenger: Arc::clone(&self.messenger),
            plans: self.plans.clone(),
            admin: Arc::clone(&self.admin),
        }
    }
}

/// Connects the alerts of `decider` to the webhook of `alerts`.
fn with_alerts(
    decider: Decider,
    alerts: Option<&Alerts>,
) -> Result<(Decider, Option<Messenger>), Failure> {
    let Some(alerts) = alerts else {
        return Ok((decider, None));
    };
    let metrics = decider.metrics().alerts.clone();
    let (bell, messenger) = AlertSender::hang(alerts, metrics).map_err(Failure::input)?;
    Ok((decider.with_bell(bell), Some(messenger)))
}

/// Adds traces and logs of requests to `decider`, according to `traces` and `logs`.
fn observed(decider: Decider, traces: Option<&Traces>, logs: &Logs) -> Result<Decider, Failure> {
    let metrics = || decider.metrics().traces.clone();
    let recorder = traces.map(|traces| Tracer::new(traces, metrics()));
    let recorder = recorder.transpose().map_err(Failure::input)?;
    Ok(decider.observed_by(recorder, Refusals::of(logs.refusals)))
}

/// An unreachable store is not a mistake in the configuration.
fn not_started(error: BuildError) -> Failure {
    match error {
        BuildError::Unreachable { .. } => Failure::runtime(error),
        error => Failure::input(error),
    }
}
