//! Serving until the program ends: opens the listeners, waits, and drains.
//!
//! | phase | listeners | `/readyz` | ends when |
//! |---|---|---|---|
//! | serving | open | 200 | a signal arrives |
//! | shutdown delay | open | 503 | the delay is over |
//! | draining | only admin | 503 | requests in flight are done, or the drain time is over |
//! | closing | none | | the admin listener is closed |
//!
//! Buckets in memory are lost with the process unless a snapshot is configured, which is written after
//! draining; those in Redis need nothing at shutdown.

use super::background::Upkeep;
use super::renewal;
use crate::logs;
use std::future::Future;
use std::mem;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Client, Store};
use tidegate_control::admin::AdminFrontend;
use tidegate_control::admin::api::Api;
use tidegate_control::live::Composer;
use tidegate_control::pending_changes::{self, PendingChanges};
use tidegate_control::running::ServerState;
use tidegate_frontends::decider::Decider;
use tidegate_frontends::gateway::GatewayFrontend;
use tidegate_frontends::grpc::GrpcFrontend;
use tidegate_frontends::http::HttpFrontend;
use tidegate_frontends::resp::RespFrontend;
use tidegate_net::accept::open;
use tidegate_net::bounds::Bounds;
use tidegate_net::connection::FrontendContext;
use tidegate_net::connection_handler::{ConnectionHandler, ListenerConfig};
use tidegate_net::frontend::Frontend;
use tidegate_net::phase::{self, Phase, PhaseWatch};
use tidegate_net::room::Origin;
use tidegate_net::tasks::Tasks;
use tidegate_net::{BoundListener, Listeners};
use tidegate_telemetry::log_lines::DroppedLogLines;
use tokio::time::{Instant, sleep, timeout};
use tracing::{info, warn};

/// The result of serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum ServeEnd {
    /// Everything that had begun was finished.
    Drained,
    /// This many connections, and changes of administrators, were cut, because they took too long to finish.
    Cut(usize),
}

/// Serves until `shutdown` is ready, then drains. With `live`, the configuration can change meanwhile.
///
/// With a shutdown delay, `/readyz` and gRPC health fail for that time before anything else happens, so that
/// load balancers have stopped sending by then. Draining stops accepting, makes `/readyz` fail, finishes
/// everything that has begun, and ends. The admin listener closes last, so that draining can be observed.
pub async fn run<S: Store + 'static>(
    listeners: Listeners,
    serving: ServerState<S>,
    live: Option<Composer>,
    bounds: Bounds,
    shutdown: impl Future<Output = ()>,
) -> ServeEnd {
    let (lead, watch) = phase::channel();
    let decider = serving.decider();
    let metrics = decider.metrics();
    metrics.register_collector(Box::new(DroppedLogLines(logs::dropped_lines)));

    // Aborted when this is dropped.
    let renewals = Tasks::new();
    let files = renewal::of(&listeners, metrics);
    renewals.spawn(renewal::keep(files, live.clone()));

    let mut opening = ListenerOpener {
        serving: &serving,
        bounds,
        phase: watch,
        tasks: Arc::new(Tasks::new()),
    };
    let changes = Arc::new(PendingChanges::default());
    let api = live.map(|composer| {
        let phase = opening.phase.clone();
        Arc::new(Api::new(phase, composer, bounds, Arc::clone(&changes)))
    });
    opening.admin(listeners.admin, api);
    let admin_tasks = mem::take(&mut opening.tasks);

    let upkeep = Upkeep::start(&serving);
    opening.http(listeners.http);
    opening.grpc(listeners.grpc);
    opening.resp(listeners.resp);
    opening.gateway(listeners.gateway);
    let tasks = opening.tasks;

    lead.enter(Phase::Serving);
    shutdown.await;

    if !bounds.shutdown_delay.is_zero() {
        lead.enter(Phase::Leaving);
        info!(event = "shutdown_delayed", delay = ?bounds.shutdown_delay, "not ready; still serving for the shutdown delay");
        sleep(bounds.shutdown_delay).await;
    }
    lead.enter(Phase::Draining);
    info!(event = "drain_started", within = ?bounds.drain_time, "draining");
    let by = Instant::now() + bounds.drain_time;
    let end = finish(&tasks, bounds.drain_time).await;
    upkeep.end().await;
    lead.enter(Phase::Closing);
    let cut = pending_changes::close(&changes, &admin_tasks, by).await;
    all_in_all(end, cut)
}

/// Opens the listeners, each with its frontend.
struct ListenerOpener<'a, S> {
    serving: &'a ServerState<S>,
    bounds: Bounds,
    phase: PhaseWatch,
    /// The connections of the listeners that are opened next.
    tasks: Arc<Tasks>,
}

impl<S: Store + 'static> ListenerOpener<'_, S> {
    fn admin(&self, bound: BoundListener, api: Option<Arc<Api>>) {
        let config = self.config("admin", &bound, self.bounds.of_admin(), Phase::Closing);
        let frontend = AdminFrontend::new(self.phase.clone(), self.decider().clone(), api);
        self.open_http(bound, config, frontend);
    }

    fn http(&self, bound: Option<BoundListener>) {
        let Some(bound) = bound else { return };
        let config = self.config("http", &bound, self.bounds, Phase::Draining);
        let frontend = HttpFrontend::new(self.decider().clone(), self.bounds);
        self.open_http(bound, config, frontend);
    }

    fn grpc(&self, bound: Option<BoundListener>) {
        let Some(bound) = bound else { return };
        let config = self.config("grpc", &bound, self.bounds, Phase::Draining);
        let frontend = GrpcFrontend::new(self.decider().clone(), self.bounds, self.phase.clone());
        self.open_http(bound, config, frontend);
    }

    fn resp(&self, bound: Option<BoundListener>) {
        let Some(bound) = bound else { return };
        let config = self.config("resp", &bound, self.bounds, Phase::Draining);
        let resp = RespFrontend::new(config, self.decider().clone(), bound.token.clone());
        self.open(bound, resp.registered());
    }

    fn gateway(&self, bound: Option<BoundListener>) {
        let (Some(bound), Some(gateway)) = (bound, self.serving.gateway()) else {
            return;
        };
        let bounds = self.bounds.of_gateway();
        let config = self.config("gateway", &bound, bounds, Phase::Draining);
        let frontend = GatewayFrontend::new(self.decider().clone(), Arc::clone(gateway));
        self.open_http(bound, config, frontend);
    }

    fn decider(&self) -> &Decider<S> {
        self.serving.decider()
    }

    fn config(
        &self,
        name: &'static str,
        bound: &BoundListener,
        bounds: Bounds,
        closes_in: Phase,
    ) -> ListenerConfig {
        ListenerConfig {
            name,
            bounds,
            metrics: self.decider().metrics().listener(name),
            closes_in,
            age: bound.age,
        }
    }

    fn open_http(&self, bound: BoundListener, threshold: ListenerConfig, frontend: impl Frontend) {
        let context = FrontendContext {
            threshold,
            frontend,
            token: bound.token.clone(),
        };
        self.open(bound, context);
    }

    fn open(&self, bound: BoundListener, handler: impl ConnectionHandler) {
        let origin = origin(self.decider());
        open(bound, handler, self.phase.clone(), &self.tasks, origin);
    }
}

/// Combines the result of serving with the number of changes that were cut.
fn all_in_all(end: ServeEnd, changes: usize) -> ServeEnd {
    match end {
        ServeEnd::Drained if changes == 0 => info!(event = "drain_finished", "drained"),
        ServeEnd::Drained => return ServeEnd::Cut(changes),
        ServeEnd::Cut(connections) => {
            warn!(
                event = "connections_cut",
                connections, "connections closed before they finished"
            );
            return ServeEnd::Cut(connections.saturating_add(changes));
        }
    }
    end
}

/// Waits for `tasks` to finish, and aborts those that do not.
async fn finish(tasks: &Tasks, time_max: Duration) -> ServeEnd {
    if timeout(time_max, tasks.finished()).await.is_ok() {
        return ServeEnd::Drained;
    }
    let left = tasks.count();
    tasks.abort();
    tasks.finished().await;
    ServeEnd::Cut(left)
}

/// Returns a function that determines the origin of a peer, by the rules of the current configuration.
fn origin<S: Store + 'static>(decider: &Decider<S>) -> impl Fn(IpAddr) -> Origin + use<S> {
    let decider = decider.clone();
    move |peer| {
        // After shutdown there are no rules.
        let rules = decider.rules().ok();
        let client = rules.as_ref().map(|rules| rules.client());
        Origin::new(
            peer,
            client.map_or(64, Client::ipv6_prefix),
            client.is_some_and(|client| client.trusts(peer)),
        )
    }
}
