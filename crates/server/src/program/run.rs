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
use std::sync::Arc;
use std::time::Duration;
use tidegate_control::admin::AdminFrontend;
use tidegate_control::admin::api::Api;
use tidegate_control::live::Composer;
use tidegate_control::pending_changes::{self, PendingChanges};
use tidegate_control::running::ServerState;
use tidegate_frontends::listeners::{FrontendListeners, ListenerOpener, ServedStore};
use tidegate_net::bounds::Bounds;
use tidegate_net::phase::{self, Phase};
use tidegate_net::tasks::Tasks;
use tidegate_net::{BoundListener, Listeners};
use tidegate_telemetry::log_lines::DroppedLogLines;
use tidegate_telemetry::store::StoreStats;
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
pub async fn run<S: ServedStore>(
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

    let mut opener = ListenerOpener {
        decider: decider.clone(),
        gateway: serving.gateway().map(Arc::clone),
        bounds,
        phase: watch,
        tasks: Arc::new(Tasks::new()),
    };
    let changes = Arc::new(PendingChanges::default());
    let api = live.map(|composer| {
        let phase = opener.phase.clone();
        Arc::new(Api::new(phase, composer, bounds, Arc::clone(&changes)))
    });
    open_admin(&opener, listeners.admin, api);
    let admin_tasks = mem::take(&mut opener.tasks);

    let upkeep = Upkeep::start(&serving);
    let frontends = FrontendListeners {
        http: listeners.http,
        grpc: listeners.grpc,
        resp: listeners.resp,
        gateway: listeners.gateway,
    };
    S::open(&opener, frontends);
    let tasks = opener.tasks;

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

/// Opens the admin listener.
fn open_admin<S: StoreStats>(
    opener: &ListenerOpener<S>,
    bound: BoundListener,
    api: Option<Arc<Api>>,
) {
    let config = opener.config("admin", &bound, opener.bounds.of_admin(), Phase::Closing);
    let frontend = AdminFrontend::new(opener.phase.clone(), opener.decider.clone(), api);
    opener.open_http(bound, config, frontend);
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
