//! All metrics of `/metrics`, in the OpenMetrics text format.

use super::admin::AdminMetrics;
use super::counting::CountingMetrics;
use super::decisions::{self, DecisionMetrics};
use super::durations::{Durations, SharedMetric};
use super::failures::{self, WithoutStore};
use super::gateway::GatewayMetrics;
use super::grpc::GrpcMetrics;
use super::guards::{GuardMetrics, Lists};
use super::identities::Callers;
use super::in_flight::InFlightMetrics;
use super::instances::InstanceMetrics;
use super::plain;
use super::plans::{self, PlanMetrics};
use super::redis::{Nodes, RedisCollector};
use super::reloads::ReloadMetrics;
use super::reservations::{self, Reservations};
use super::room::StoreRoom;
use super::sources::SourceMetrics;
use super::statsd::StatsdMetrics;
use super::store::{StoreMetrics, StoreStats};
use super::traces::TraceMetrics;
use super::waiting::WaitingMetrics;
use crate::alerts::AlertMetrics;
use crate::source_health::SourceHealthList;
use parking_lot::RwLock;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::sync::Arc;
use tidegate::Limiter;
use tidegate_net::metrics::{BadLabels, ListenerLabel, ListenerMetrics};
use tidegate_policy::Policy;

/// The metrics of one server.
#[derive(Debug)]
pub struct Metrics {
    /// Decisions.
    pub decisions: Arc<DecisionMetrics>,
    /// Decisions without the store.
    pub without_store: Arc<WithoutStore>,
    /// Reservations.
    pub reservations: Arc<Reservations>,
    /// Time from a request to its response, over HTTP.
    pub durations: Arc<Durations>,
    /// Untrusted callers.
    pub callers: Callers,
    /// Metrics of the gateway.
    pub gateway: Arc<GatewayMetrics>,
    /// Metrics of guards.
    pub guards: Arc<GuardMetrics>,
    /// Metrics of plans.
    pub plans: Arc<PlanMetrics>,
    /// Metrics of the gRPC frontend.
    pub grpc: GrpcMetrics,
    /// Reloads of the configuration.
    pub reloads: ReloadMetrics,
    /// The status of the config sources.
    pub sources: Arc<SourceHealthList>,
    /// Alerts.
    pub alerts: AlertMetrics,
    /// Traces.
    pub traces: TraceMetrics,
    /// Statistics for statsd.
    pub statsd: StatsdMetrics,
    nodes: Option<Arc<Nodes>>,
    /// The room of the store, if it is in memory.
    pub room: Option<Arc<dyn StoreRoom>>,
    /// Metrics of the admin API.
    pub admin: AdminMetrics,
    connections: Family<ListenerLabel, Gauge>,
    accepted: Family<ListenerLabel, Counter>,
    connections_max: Family<ListenerLabel, Gauge>,
    refused: Family<ListenerLabel, Counter>,
    closed: Family<ClosedLabels, Counter>,
    broken: Family<ListenerLabel, Counter>,
    expiry: Family<ListenerLabel, Gauge>,
    bad_requests: Family<BadLabels, Counter>,
    registry: RwLock<Registry>,
}

/// The counters that have names of a configuration as labels.
#[derive(Debug)]
pub struct NamedCounters {
    decisions: DecisionMetrics,
    without_store: WithoutStore,
    reservations: Reservations,
}

/// The previous layout of the counters, see [`Metrics::lay_out`].
#[derive(Debug)]
pub struct PreviousLayout {
    decisions: Arc<decisions::DecisionCounters>,
    without_store: Arc<failures::FailureCounterSet>,
    reservations: Arc<reservations::ReservationCounterSet>,
}

type ClosedLabels = [(&'static str, &'static str); 2];

impl NamedCounters {
    /// Creates counters for the names of `policies`.
    pub fn new(policies: &[Policy]) -> Self {
        Self {
            decisions: DecisionMetrics::new(policies),
            without_store: WithoutStore::new(policies),
            reservations: Reservations::new(policies),
        }
    }
}

impl Metrics {
    /// Creates the metrics of a server that decides with `limiter`.
    pub fn new<S: StoreStats>(counters: NamedCounters, limiter: Limiter<S>) -> Self {
        let metrics = Self {
            decisions: Arc::new(counters.decisions),
            without_store: Arc::new(counters.without_store),
            reservations: Arc::new(counters.reservations),
            durations: Arc::default(),
            callers: Callers::default(),
            gateway: Arc::default(),
            guards: Arc::default(),
            plans: Arc::default(),
            grpc: GrpcMetrics::default(),
            reloads: ReloadMetrics::new(),
            sources: Arc::default(),
            alerts: AlertMetrics::default(),
            traces: TraceMetrics::default(),
            statsd: StatsdMetrics::default(),
            nodes: limiter
                .store()
                .connection()
                .map(|connection| Arc::new(Nodes::new(connection.clone()))),
            room: match limiter.store().connection() {
                None => Some(Arc::new(limiter.clone())),
                Some(_) => None,
            },
            admin: AdminMetrics::default(),
            connections: Family::default(),
            accepted: Family::default(),
            connections_max: Family::default(),
            refused: Family::default(),
            closed: Family::default(),
            broken: Family::default(),
            expiry: Family::default(),
            bad_requests: Family::default(),
            registry: RwLock::new(Registry::with_prefix("tidegate")),
        };
        metrics.register(limiter)
    }

    fn register<S: StoreStats>(mut self, limiter: Limiter<S>) -> Self {
        let registry = self.registry.get_mut();
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Version of this program", build);
        self.reloads.register(registry);
        registry.register_collector(Box::new(SourceMetrics(Arc::clone(&self.sources))));
        self.alerts.register(registry);
        self.traces.register(registry);
        self.statsd.register(registry);
        self.admin.register(registry);
        registry.register_collector(Box::new(Arc::clone(&self.decisions)));
        registry.register_collector(Box::new(Arc::clone(&self.reservations)));
        registry.register(
            "error_responses",
            "Error responses (problem details) by listener and status",
            self.bad_requests.clone(),
        );
        self.callers.register(registry);
        registry.register_with_unit(
            "request_duration",
            "Time from the request headers to the response, for the HTTP API",
            Unit::Seconds,
            SharedMetric(Arc::clone(&self.durations)),
        );
        self.grpc.register(registry);
        self.register_connections();
        let registry = self.registry.get_mut();
        // A store that cannot fail has none of these: they would be noise.
        if limiter.store_health().is_some() {
            registry.register_collector(Box::new(Arc::clone(&self.without_store)));
        }
        registry.register_collector(Box::new(Arc::clone(&self.gateway)));
        registry.register_collector(Box::new(Arc::clone(&self.guards)));
        registry.register_collector(Box::new(Lists::new(limiter.clone())));
        registry.register_collector(Box::new(Arc::clone(&self.plans)));
        registry.register_collector(Box::new(plans::PlanSourceCollector::new(limiter.clone())));
        registry.register_collector(Box::new(WaitingMetrics::new(limiter.clone())));
        registry.register_collector(Box::new(InFlightMetrics::new(limiter.clone())));
        registry.register_collector(Box::new(CountingMetrics::new(limiter.clone())));
        registry.register_collector(Box::new(StoreMetrics::new(limiter.clone())));
        if limiter.instances().is_some() {
            registry.register_collector(Box::new(InstanceMetrics(limiter)));
        }
        if let Some(nodes) = &self.nodes {
            registry.register_collector(Box::new(RedisCollector(Arc::clone(nodes))));
        }
        self
    }

    /// Registers the metrics by listener.
    fn register_connections(&mut self) {
        let registry = self.registry.get_mut();
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_accepted",
            "Accepted connections",
            self.accepted.clone(),
        );
        registry.register(
            "connections_max",
            "Maximum number of connections of a listener",
            self.connections_max.clone(),
        );
        registry.register(
            "connections_refused",
            "Connections refused because their address has too many, none of them idle",
            self.refused.clone(),
        );
        registry.register(
            "connections_closed",
            "Connections closed early: idle ones to make room (full, address), floods of frames (flood)",
            self.closed.clone(),
        );
        registry.register(
            "tls_handshake_failures",
            "Connections with a failed TLS handshake",
            self.broken.clone(),
        );
        registry.register_with_unit(
            "tls_certificate_expiry_timestamp",
            "Expiry time of the certificate of a listener",
            Unit::Seconds,
            self.expiry.clone(),
        );
    }

    /// Adds the metrics of a part that exists only in some servers.
    pub fn register_collector(&self, collector: Box<dyn Collector>) {
        self.registry.write().register_collector(collector);
    }

    /// Creates the counters for `policies`, which are about to take effect, and returns the previous layout.
    /// Called before they take effect, so that every decision finds the names under which it is counted.
    pub fn lay_out(&self, policies: &[Policy]) -> PreviousLayout {
        PreviousLayout {
            decisions: self.decisions.lay_out(policies),
            without_store: self.without_store.lay_out(policies),
            reservations: self.reservations.lay_out(policies),
        }
    }

    /// Restores a layout because its successor's policies did not take effect.
    pub fn put_back(&self, before: PreviousLayout) {
        self.decisions.put_back(before.decisions);
        self.without_store.put_back(before.without_store);
        self.reservations.put_back(before.reservations);
    }

    /// Returns the counters of the listener `name`.
    pub fn listener(&self, name: &'static str) -> ListenerMetrics {
        let label = [("listener", name)];
        let closed = |reason| {
            let labels = [("listener", name), ("reason", reason)];
            self.closed.get_or_create_owned(&labels)
        };
        ListenerMetrics {
            connections_max: self.connections_max.get_or_create_owned(&label),
            refused: self.refused.get_or_create_owned(&label),
            full: closed("full"),
            of_address: closed("address"),
            flood: closed("flood"),
            connections: self.connections.get_or_create_owned(&label),
            accepted: self.accepted.get_or_create_owned(&label),
            broken: self.broken.get_or_create_owned(&label),
            rejected: self.gateway.rejected().clone(),
            listener: name,
            bad_requests: self.bad_requests.clone(),
            expiry: self.expiry.clone(),
        }
    }

    /// Returns the nodes of the store, if it is Redis.
    pub fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.nodes.as_ref()
    }

    /// Returns the page in the older Prometheus format, for clients that do not accept OpenMetrics. As
    /// expensive as [`page`](Self::page).
    pub fn plain_page(&self) -> String {
        plain::of(&self.page())
    }

    /// Returns the page as text. Reads the whole store, so a thread that serves requests must not call it.
    pub fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail, and a collector that fails leaves out its own part.
        text::encode(&mut page, &self.registry.read()).ok();
        page
    }
}
