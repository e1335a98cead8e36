//! Background work while the listeners are open: lists, plans and counts are maintained, and alerts are sent.

use std::sync::Arc;
use std::time::Duration;
use tidegate::{AddressBan, Limiter, Store};
use tidegate_control::running::ServerState;
use tidegate_frontends::decider::Decider;
use tidegate_net::tasks::Tasks;
use tidegate_policy::text::counted;
use tidegate_telemetry::alerts::{Alert, AlertKind, AlertSender, watch};
use tidegate_telemetry::room;
use tokio::time::timeout;
use tracing::info;

/// The maximum time for sending the last counts.
const LAST_COUNTS: Duration = Duration::from_secs(1);

/// The background work of a server. Dropping it aborts the work.
#[derive(Debug)]
pub(super) struct Upkeep<S> {
    decider: Decider<S>,
    /// Aborting these loses nothing but counts.
    tasks: Tasks,
}

impl<S: Store + 'static> Upkeep<S> {
    pub(super) fn start(serving: &ServerState<S>) -> Self {
        let tasks = Tasks::new();
        let decider = serving.decider();
        let limiter = decider.limiter();
        tasks.spawn(decider.keep_lists());
        tasks.spawn(limiter.keep_plans(serving.plans().clone()));
        tasks.spawn(limiter.keep_snapshots());
        if let Some(nodes) = decider.metrics().nodes() {
            tasks.spawn(Arc::clone(nodes).keep());
        }
        if let Some(room) = &decider.metrics().room {
            tasks.spawn(room::watch(Arc::clone(room)));
        }
        if let Some(tracer) = decider.tracer().map(Arc::clone) {
            tasks.spawn(async move { tracer.run().await });
        }
        if let Some(statsd) = decider.statsd().map(Arc::clone) {
            tasks.spawn(async move { statsd.run().await });
        }
        let bell = decider.bell().clone();
        tasks.spawn(limiter.keep_counts(move |banned| tell(&bell, &banned)));
        if let Some(messenger) = serving.messenger() {
            tasks.spawn(messenger.run());
            let sources = Arc::clone(&decider.metrics().sources);
            tasks.spawn(watch(limiter.clone(), sources, decider.bell().clone()));
        }
        Self {
            decider: decider.clone(),
            tasks,
        }
    }

    /// Sends the last counts, within a time limit, and writes the snapshot of a store in memory. A write in
    /// progress is finished first.
    pub(super) async fn end(self) {
        // Closing a period now would delay the last counts; another instance takes over.
        self.tasks.abort();
        timeout(LAST_COUNTS, self.decider.limiter().send_counts())
            .await
            .ok();
        write_snapshot(self.decider.limiter()).await;
        if let Some(tracer) = self.decider.tracer() {
            tracer.finish().await;
        }
        if let Some(statsd) = self.decider.statsd() {
            statsd.finish().await;
        }
    }
}

/// Writes the snapshot for the last time. Nothing is decided any more.
async fn write_snapshot<S: Store + 'static>(limiter: &Limiter<S>) {
    // A failure was logged.
    if let Ok(true) = limiter.write_snapshot().await
        && let Some(status) = limiter.snapshot()
    {
        let (file, buckets) = (status.file.display(), status.buckets);
        info!(event = "snapshot_finished", %file, buckets, "last snapshot written");
    }
}

fn tell(bell: &AlertSender, banned: &AddressBan) {
    let AddressBan { address, count, .. } = banned;
    let length = match banned.length {
        Some(length) => format!("for {length:?}"),
        None => "until an administrator unbans it".to_owned(),
    };
    let count = counted(count, "request", "requests");
    let message = format!("{address} sent {count} in one period and is banned {length}.");
    bell.ring(Alert::new(AlertKind::Ban, address, message));
}
