//! The state that the frontends serve: decisions, and the routes of the gateway. A reload replaces both
//! at once.
//!
//! | module | what it is |
//! |---|---|
//! | `fixed` | the settings that only a restart changes |
//! | `names` | the names in a configuration, and their differences from the previous one |

mod fixed;
mod names;

use crate::alerts::{AlertSender, Messenger};
use crate::decider::Decider;
use crate::doors::gateway::Gateway;
use crate::failure::Failure;
use crate::live::Composer;
use crate::telemetry::refusals::Refusals;
use crate::telemetry::store::StoreStats;
use crate::telemetry::traces::Tracer;
use arc_swap::ArcSwapOption;
use fixed::StartupSettings;
use names::ConfigNames;
use parking_lot::Mutex;
use std::mem;
use std::sync::Arc;
use tidegate::{AnyStore, BuildError, Config, Store};
use tidegate_policy::admin::Admin;
use tidegate_policy::alerts::Alerts;
use tidegate_policy::route::Routes;
use tidegate_policy::traces::{Logs, Traces};
use tracing::warn;

/// The state that the frontends serve. Clones are cheap and share everything.
#[derive(Debug)]
pub struct Serving<S = AnyStore> {
    decider: Decider<S>,
    gateway: Option<Arc<Gateway>>,
    /// Locked as long as a reload takes, so that reloads are serialized.
    served: Arc<Mutex<ServedVersion>>,
    /// Delivers alerts; taken by the task that runs it.
    messenger: Arc<Mutex<Option<Messenger>>>,
    /// The composer that changes the configuration while it is served, if there is one.
    live: Option<Composer>,
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

impl Serving {
    /// Serves `config`, in the store that it names. The store need not be reachable yet.
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
        // Boxed: this future is large, and would be part of every future that starts a server.
        let decider = Box::pin(Decider::start(config)).await;
        let decider = decider.map_err(not_started)?;
        let (decider, messenger) = heard(decider, alerts.as_ref())?;
        let decider = observed(decider, traces.as_ref(), &logs)?;
        let decider = match &statsd {
            Some(statsd) => decider.with_statsd(statsd),
            None => decider,
        };
        let serving = Self::new(decider, routes)?;
        *serving.served.lock() = served;
        *serving.messenger.lock() = messenger;
        serving.admin.store(admin.map(Arc::new));
        Ok(serving)
    }
}

impl<S: Store + StoreStats> Serving<S> {
    /// Serves decisions of `decider`, and `routes` whose policies are those of the same configuration.
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
            live: None,
            admin: Arc::default(),
        })
    }
}

impl<S: Store> Serving<S> {
    /// Serves `config` from now on, without interrupting any request: each is answered by one of the two
    /// configurations, as a whole. Buckets keep their state.
    ///
    /// An error changes nothing. Settings that only a restart can change stay, and are logged; the rest
    /// of `config` takes effect.
    pub fn reload(&self, config: Config) -> Result<(), Failure> {
        let reloaded = self.try_reload(config);
        reloaded.inspect_err(|_| self.reload_refused())
    }

    /// Reloads like [`reload`](Self::reload), for callers that count rejected reloads themselves.
    pub(crate) fn try_reload(&self, mut config: Config) -> Result<(), Failure> {
        let mut served = self.served.lock();
        let names = ConfigNames::of(&config);
        let admin = config.admin.take();
        let postponed = self.replace(served.fixed.as_ref(), config)?;
        self.admin.store(admin.map(Arc::new));
        // Counted before it is logged: a reader of the log then finds it in the metrics.
        self.decider.metrics().reloads.count_applied();
        names.report_since(&served.names);
        self.warn_of_what_stays(&names, &postponed);
        served.names = names;
        Ok(())
    }

    /// Returns an error if a [reload](Self::reload) with `config` would be rejected. Changes nothing.
    pub(crate) fn could_reload(&self, mut config: Config) -> Result<(), Failure> {
        if let Some(fixed) = &self.served.lock().fixed {
            fixed.differences(&config).map_err(Failure::input)?;
        }
        let routes = mem::take(&mut config.routes);
        if let Some(gateway) = &self.gateway {
            gateway.prepare(routes).map_err(Failure::input)?;
        }
        let limiter = self.decider.limiter();
        limiter.could_reload(config).map_err(Failure::input)
    }

    /// Reads the lists of guards that are new in `config`, as at a start: a [reload](Self::reload) with
    /// it then begins with them.
    pub async fn read_ahead(&self, config: &Config) {
        self.decider.limiter().read_ahead(config).await;
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
    fn warn_of_what_stays(&self, names: &ConfigNames, postponed: &[&str]) {
        if !postponed.is_empty() {
            warn!(
                settings = postponed.join(", "),
                "these settings differ from those that are served, and need a restart"
            );
        }
        match (&self.gateway, names.has_routes()) {
            (None, true) => warn!("there are routes now, but no gateway until a restart opens it"),
            (Some(_), false) => warn!(
                "there are no routes any more: the gateway answers everything with 404, until \
                 there are some, or a restart closes it"
            ),
            _ => {}
        }
    }
}

impl<S> Serving<S> {
    /// Returns the decider.
    pub fn decider(&self) -> &Decider<S> {
        &self.decider
    }

    /// Gives the frontends access to the composer. The composer itself serves through an earlier clone,
    /// so that there is no reference cycle.
    #[must_use]
    pub(crate) fn changed_by(mut self, composer: Composer) -> Self {
        self.live = Some(composer);
        self
    }

    /// Returns the composer, if there is one.
    pub(crate) fn live(&self) -> Option<&Composer> {
        self.live.as_ref()
    }

    /// Takes the messenger, to run it; `None` after the first call.
    pub(crate) fn messenger(&self) -> Option<Messenger> {
        self.messenger.lock().take()
    }

    /// Returns the current credentials of the admin API.
    pub(crate) fn admin(&self) -> &Arc<ArcSwapOption<Admin>> {
        &self.admin
    }

    /// Returns the gateway, if there are routes.
    pub(crate) fn gateway(&self) -> Option<&Arc<Gateway>> {
        self.gateway.as_ref()
    }
}

impl<S> Clone for Serving<S> {
    fn clone(&self) -> Self {
        Self {
            decider: self.decider.clone(),
            gateway: self.gateway.clone(),
            served: Arc::clone(&self.served),
            messenger: Arc::clone(&self.messenger),
            live: self.live.clone(),
            admin: Arc::clone(&self.admin),
        }
    }
}

/// Connects the alerts of `decider` to the webhook of `alerts`.
fn heard(
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
