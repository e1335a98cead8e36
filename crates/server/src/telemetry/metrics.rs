//! All metrics of `/metrics`, in the OpenMetrics text format.

use super::admin::AdminMetrics;
use super::callers::Callers;
use super::counting::CountingMetrics;
use super::decisions::{self, DecisionMetrics};
use super::durations::Durations;
use super::gateway::GatewayMetrics;
use super::grpc::GrpcMetrics;
use super::guards::{GuardMetrics, Lists};
use super::instances::InstanceMetrics;
use super::plain;
use super::plans::{self, PlanMetrics};
use super::redis::{Nodes, RedisCollector};
use super::reloads::ReloadMetrics;
use super::reservations::{self, Reservations};
use super::resp::RespMetrics;
use super::room::StoreRoom;
use super::sources::SourceMetrics;
use super::statsd::StatsdMetrics;
use super::store::{StoreMetrics, StoreStats};
use super::traces::TraceMetrics;
use super::waiting::WaitingMetrics;
use super::without_store::{self, WithoutStore};
use crate::alerts::AlertMetrics;
use crate::live::Board;
use prometheus_client::encoding::{EncodeMetric, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use std::fmt;
use std::sync::Arc;
use tidegate::Limiter;
use tidegate_policy::Policy;

/// The metrics of one server.
#[derive(Debug)]
pub(crate) struct Metrics {
    pub(crate) decisions: Arc<DecisionMetrics>,
    pub(crate) without_store: Arc<WithoutStore>,
    pub(crate) reservations: Arc<Reservations>,
    pub(crate) durations: Arc<Durations>,
    pub(crate) callers: Callers,
    pub(crate) gateway: Arc<GatewayMetrics>,
    pub(crate) guards: Arc<GuardMetrics>,
    pub(crate) plans: Arc<PlanMetrics>,
    pub(crate) grpc: GrpcMetrics,
    pub(crate) resp: Arc<RespMetrics>,
    pub(crate) reloads: ReloadMetrics,
    /// The status of the config sources.
    pub(crate) sources: Arc<Board>,
    pub(crate) alerts: AlertMetrics,
    pub(crate) traces: TraceMetrics,
    pub(crate) statsd: StatsdMetrics,
    nodes: Option<Arc<Nodes>>,
    /// The room of the store, if it is in memory.
    pub(crate) room: Option<Arc<dyn StoreRoom>>,
    pub(crate) admin: AdminMetrics,
    connections: Family<DoorLabel, Gauge>,
    accepted: Family<DoorLabel, Counter>,
    connections_max: Family<DoorLabel, Gauge>,
    refused: Family<DoorLabel, Counter>,
    closed: Family<ClosedLabels, Counter>,
    broken: Family<DoorLabel, Counter>,
    expiry: Family<DoorLabel, Gauge>,
    bad_requests: Family<BadLabels, Counter>,
    registry: Registry,
}

/// The counters that have names of a configuration as labels.
#[derive(Debug)]
pub(crate) struct NamedCounters {
    decisions: DecisionMetrics,
    without_store: WithoutStore,
    reservations: Reservations,
}

/// Counters of one listener's connections. Looked up once, then only added to.
#[derive(Clone, Debug, Default)]
pub(crate) struct DoorMetrics {
    /// Open connections.
    pub(crate) connections: Gauge,
    /// Connections accepted so far.
    pub(crate) accepted: Counter,
    /// The maximum number of connections.
    pub(crate) connections_max: Gauge,
    /// Connections refused because their address had too many, none of them idle.
    pub(crate) refused: Counter,
    /// Connections closed because the listener was full, because their address had too many, and because they
    /// sent too many control frames.
    full: Counter,
    of_address: Counter,
    pub(crate) flood: Counter,
    /// Connections that ended before any request: a failed TLS handshake.
    pub(crate) broken: Counter,
    /// The gateway's counters, including requests that were rejected unread.
    pub(crate) gateway: Arc<GatewayMetrics>,
    door: &'static str,
    bad_requests: Family<BadLabels, Counter>,
    expiry: Family<DoorLabel, Gauge>,
}

/// The previous layout of the counters, see [`Metrics::lay_out`].
#[derive(Debug)]
pub(crate) struct LaidOut {
    decisions: Arc<decisions::DecisionCounters>,
    without_store: Arc<without_store::FailureCounterSet>,
    reservations: Arc<reservations::ReservationCounterSet>,
}

type DoorLabel = [(&'static str, &'static str); 1];
type ClosedLabels = [(&'static str, &'static str); 2];
type BadLabels = [(&'static str, String); 2];

impl NamedCounters {
    /// Creates counters for the names of `policies`.
    pub(crate) fn new(policies: &[Policy]) -> Self {
        Self {
            decisions: DecisionMetrics::new(policies),
            without_store: WithoutStore::new(policies),
            reservations: Reservations::new(policies),
        }
    }
}

impl Metrics {
    pub(crate) fn new<S: StoreStats>(counters: NamedCounters, limiter: Limiter<S>) -> Self {
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
            resp: Arc::default(),
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
            registry: Registry::with_prefix("tidegate"),
        };
        metrics.register(limiter)
    }

    fn register<S: StoreStats>(mut self, limiter: Limiter<S>) -> Self {
        let registry = &mut self.registry;
        let build = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("build", "Which version this is", build);
        self.reloads.register(registry);
        registry.register_collector(Box::new(SourceMetrics(Arc::clone(&self.sources))));
        self.alerts.register(registry);
        self.traces.register(registry);
        self.statsd.register(registry);
        self.admin.register(registry);
        registry.register_collector(Box::new(Arc::clone(&self.decisions)));
        registry.register_collector(Box::new(Arc::clone(&self.reservations)));
        registry.register(
            "bad_requests",
            "Requests answered with a problem, by door and status",
            self.bad_requests.clone(),
        );
        self.callers.register(registry);
        registry.register_with_unit(
            "request_duration",
            "From a request's head to its answer, at the HTTP door",
            Unit::Seconds,
            SharedMetric(Arc::clone(&self.durations)),
        );
        self.grpc.register(registry);
        self.register_connections();
        let registry = &mut self.registry;
        // A store that cannot fail has none of these: they would be noise.
        if limiter.store_health().is_some() {
            registry.register_collector(Box::new(Arc::clone(&self.without_store)));
        }
        registry.register_collector(Box::new(Arc::clone(&self.gateway)));
        registry.register_collector(Box::new(Arc::clone(&self.resp)));
        registry.register_collector(Box::new(Arc::clone(&self.guards)));
        registry.register_collector(Box::new(Lists::new(limiter.clone())));
        registry.register_collector(Box::new(Arc::clone(&self.plans)));
        registry.register_collector(Box::new(plans::PlanSourceCollector::new(limiter.clone())));
        registry.register_collector(Box::new(WaitingMetrics::new(limiter.clone())));
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
        let registry = &mut self.registry;
        registry.register("connections", "Open connections", self.connections.clone());
        registry.register(
            "connections_accepted",
            "Connections since the start",
            self.accepted.clone(),
        );
        registry.register(
            "connections_max",
            "Most connections that a listener may have",
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
            "handshakes_failed",
            "Connections that ended in their TLS handshake",
            self.broken.clone(),
        );
        registry.register_with_unit(
            "tls_certificate_expiry_timestamp",
            "When the certificate of a listener expires",
            Unit::Seconds,
            self.expiry.clone(),
        );
    }

    /// Creates the counters for `policies`, which are about to take effect, and returns the previous layout.
    /// Called before they take effect, so that every decision finds the names under which it is counted.
    pub(crate) fn lay_out(&self, policies: &[Policy]) -> LaidOut {
        LaidOut {
            decisions: self.decisions.lay_out(policies),
            without_store: self.without_store.lay_out(policies),
            reservations: self.reservations.lay_out(policies),
        }
    }

    /// Restores a layout because its successor's policies did not take effect.
    pub(crate) fn put_back(&self, before: LaidOut) {
        self.decisions.put_back(before.decisions);
        self.without_store.put_back(before.without_store);
        self.reservations.put_back(before.reservations);
    }

    /// Returns the counters of the listener `name`.
    pub(crate) fn door(&self, name: &'static str) -> DoorMetrics {
        let label = [("door", name)];
        let closed = |reason| {
            let labels = [("door", name), ("reason", reason)];
            self.closed.get_or_create_owned(&labels)
        };
        DoorMetrics {
            connections_max: self.connections_max.get_or_create_owned(&label),
            refused: self.refused.get_or_create_owned(&label),
            full: closed("full"),
            of_address: closed("address"),
            flood: closed("flood"),
            connections: self.connections.get_or_create_owned(&label),
            accepted: self.accepted.get_or_create_owned(&label),
            broken: self.broken.get_or_create_owned(&label),
            gateway: Arc::clone(&self.gateway),
            door: name,
            bad_requests: self.bad_requests.clone(),
            expiry: self.expiry.clone(),
        }
    }

    /// Returns the nodes of the store, if it is Redis.
    pub(crate) fn nodes(&self) -> Option<&Arc<Nodes>> {
        self.nodes.as_ref()
    }

    /// Returns the page in the older Prometheus format, for clients that do not accept OpenMetrics. As
    /// expensive as [`page`](Self::page).
    pub(crate) fn plain_page(&self) -> String {
        plain::of(&self.page())
    }

    /// Returns the page as text. Reads the whole store, so a thread that serves requests must not call it.
    pub(crate) fn page(&self) -> String {
        let mut page = String::new();
        // Writing to a string cannot fail, and a collector that fails leaves out its own part.
        text::encode(&mut page, &self.registry).ok();
        page
    }
}

impl DoorMetrics {
    /// Sets the time at which the listener's certificate expires, in seconds since 1970. If it is unknown,
    /// removes the series, so that the date of the previous certificate is not shown.
    pub(crate) fn certificate_expires(&self, at: Option<i64>) {
        let label = [("door", self.door)];
        match at {
            Some(at) => {
                self.expiry.get_or_create(&label).set(at);
            }
            None => {
                self.expiry.remove(&label);
            }
        }
    }

    /// Counts idle connections that were closed because the listener was full.
    pub(crate) fn closed_when_full(&self, count: usize) {
        add(&self.full, count);
    }

    /// Counts idle connections that were closed because their address had too many.
    pub(crate) fn closed_of_address(&self, count: usize) {
        add(&self.of_address, count);
    }

    /// Counts a request that was answered with a problem. There are few statuses, and this is not a hot path.
    pub(crate) fn count_bad(&self, status: u16) {
        let labels = [
            ("door", self.door.to_owned()),
            ("status", status.to_string()),
        ];
        self.bad_requests.get_or_create(&labels).inc();
    }
}

fn add(counter: &Counter, count: usize) {
    counter.inc_by(u64::try_from(count).unwrap_or(u64::MAX));
}

/// A metric with another owner as well.
#[derive(Debug)]
pub(super) struct SharedMetric<M>(pub(super) Arc<M>);

impl<M: EncodeMetric> EncodeMetric for SharedMetric<M> {
    fn encode(&self, encoder: prometheus_client::encoding::MetricEncoder<'_>) -> fmt::Result {
        self.0.encode(encoder)
    }

    fn metric_type(&self) -> prometheus_client::metrics::MetricType {
        self.0.metric_type()
    }
}
