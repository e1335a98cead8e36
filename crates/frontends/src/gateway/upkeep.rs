//! Background work: replaces routes, checks the health of upstreams, and closes idle connections.

use super::active_route::ActiveRoute;
use super::route_table::{PreparedRoutes, RouteTable};
use arc_swap::ArcSwap;
use http::header::HOST;
use http::{HeaderValue, Request, Uri};
use parking_lot::Mutex;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tidegate::Rules;
use tidegate_net::tasks::Tasks;
use tidegate_policy::route::{HealthCheck, Routes};
use tidegate_proxy::connection_kind::ConnectionKind;
use tidegate_proxy::health_check::watch as look_after;
use tidegate_proxy::outgoing::OutgoingRequest;
use tidegate_proxy::target::UpstreamTarget;
use tidegate_proxy::upload::Upload;
use tidegate_telemetry::metrics::Metrics;
use tokio::sync::watch;
use tokio::time::sleep;

/// The interval between checks for idle connections.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);

/// The routes of a server, which can be replaced while it runs.
#[derive(Debug)]
pub struct Gateway {
    table: ArcSwap<RouteTable>,
    metrics: Arc<Metrics>,
    /// The background tasks. They end when this is dropped; no caller waits for them.
    tasks: Arc<Tasks>,
    /// Dropped when the table is replaced, which stops the health checks of its upstreams.
    watched: Mutex<watch::Sender<()>>,
}

impl Gateway {
    /// Starts a gateway with these routes, which are decided by `rules`. Fails if the TLS settings of an
    /// upstream are invalid.
    ///
    /// Spawns the health checks of upstreams and the sweep of idle connections, so it needs a `tokio` runtime.
    ///
    /// # Errors
    ///
    /// The upstream and the reason, if its TLS settings are invalid.
    pub fn start(
        routes: Routes,
        rules: Arc<Rules>,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, String> {
        let tasks = Arc::new(Tasks::new());
        let prepared = PreparedRoutes::new(routes, None, &tasks)?;
        let table = RouteTable::new(prepared, rules, &metrics.gateway);
        let watched = start_upkeep(&table, &tasks);
        let gateway = Arc::new(Self {
            table: ArcSwap::from_pointee(table),
            metrics,
            tasks,
            watched: Mutex::new(watched),
        });
        gateway.tasks.spawn(sweep(Arc::downgrade(&gateway)));
        Ok(gateway)
    }

    /// Prepares to replace the routes, without changing anything yet. Fails if the TLS settings of an
    /// upstream are invalid.
    ///
    /// # Errors
    ///
    /// Those of [`start`](Self::start).
    pub fn prepare(&self, routes: Routes) -> Result<PreparedRoutes, String> {
        PreparedRoutes::new(routes, Some(&self.table.load_full()), &self.tasks)
    }

    /// Replaces all routes atomically by those prepared last; `rules` are those of the same
    /// configuration. Requests in flight keep their routes and rules; upstreams that stay keep their
    /// connections.
    pub fn commit(&self, prepared: PreparedRoutes, rules: Arc<Rules>) {
        let table = RouteTable::new(prepared, rules, &self.metrics.gateway);
        let watched = start_upkeep(&table, &self.tasks);
        self.table.store(Arc::new(table));
        *self.watched.lock() = watched;
    }

    /// Returns the current routes.
    pub fn table(&self) -> Arc<RouteTable> {
        self.table.load_full()
    }

    /// Counts a request for which there is no route.
    pub(super) fn count_unmatched(&self, status: u16) {
        self.metrics.gateway.count_unmatched(status);
    }
}

/// Closes connections that were idle for too long, as long as the gateway exists.
async fn sweep(gateway: Weak<Gateway>) {
    loop {
        sleep(SWEEP_INTERVAL).await;
        let Some(gateway) = gateway.upgrade() else {
            return;
        };
        let table = gateway.table();
        for target in table.lanes().iter().flat_map(|lane| &lane.fleet.targets) {
            target.sweep();
        }
    }
}

/// Starts the health checks of all upstreams that have one. They run until the returned sender is
/// dropped.
fn start_upkeep(table: &RouteTable, tasks: &Tasks) -> watch::Sender<()> {
    let (watched, stop) = watch::channel(());
    // The upstreams of a disabled route are not used.
    for lane in table.lanes().iter().filter(|it| it.route.enabled) {
        let Some(health) = &lane.route.health else {
            continue;
        };
        for target in &lane.fleet.targets {
            let mut stop = stop.clone();
            let stop = async move {
                // Nothing is ever sent: it ends when the sender is dropped.
                while stop.changed().await.is_ok() {}
            };
            let (target, lane) = (Arc::clone(target), Arc::clone(lane));
            let health = health.clone();
            tasks.spawn(async move {
                let standing = Arc::clone(&target.standing);
                let probe = || probe(&target, &lane, &health);
                look_after(standing, &health, probe, stop).await;
            });
        }
    }
    watched
}

/// Probes an upstream over a separate connection: open connections alone do not prove that it is healthy.
async fn probe(
    target: &Arc<UpstreamTarget>,
    lane: &ActiveRoute,
    health: &HealthCheck,
) -> Result<(), String> {
    let mut request = Request::new(Upload::none());
    let path = format!("{}{}", target.upstream.prefix, health.path);
    *request.uri_mut() = Uri::try_from(path).map_err(|error| error.to_string())?;
    let headers = request.headers_mut();
    headers.insert(HOST, target.authority.clone());
    headers.insert("user-agent", HeaderValue::from_static("tidegate-health"));
    lane.request_changes.apply(headers);
    let request = Box::new(OutgoingRequest::from(request));
    let answered = target.exchange(request, ConnectionKind::Fresh, false).await;
    let answered = answered.map_err(|failed| failed.trouble.to_string())?;
    match answered.status().as_u16() {
        200..=399 => Ok(()),
        status => Err(format!("the response status was {status}")),
    }
}
