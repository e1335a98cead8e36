//! Background work while the listeners are open: lists, plans and counts are maintained, and alerts are sent.

use crate::alerts::{Alert, AlertKind, AlertSender, Messenger, watch};
use crate::decider::Decider;
use crate::tasks::Tasks;
use crate::telemetry::room;
use std::sync::Arc;
use std::time::Duration;
use tidegate::{Banned, Store};
use tokio::time::timeout;

/// The maximum time for sending the last counts.
const LAST_COUNTS: Duration = Duration::from_secs(1);

/// The background work of a server. Dropping it aborts the work.
#[derive(Debug)]
pub(crate) struct Upkeep<S> {
    decider: Decider<S>,
    /// Aborting these loses nothing but counts.
    tasks: Tasks,
}

impl<S: Store + 'static> Upkeep<S> {
    pub(crate) fn start(decider: &Decider<S>, messenger: Option<Messenger>) -> Self {
        let tasks = Tasks::new();
        let limiter = decider.limiter();
        tasks.spawn(decider.keep_lists());
        tasks.spawn(decider.keep_plans());
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
        if let Some(messenger) = messenger {
            tasks.spawn(messenger.run());
            let sources = Arc::clone(&decider.metrics().sources);
            tasks.spawn(watch(limiter.clone(), sources, decider.bell().clone()));
        }
        Self {
            decider: decider.clone(),
            tasks,
        }
    }

    /// Sends the last counts, within a time limit.
    pub(crate) async fn end(self) {
        // Closing a period now would delay the last counts; another instance takes over.
        self.tasks.abort();
        timeout(LAST_COUNTS, self.decider.limiter().send_counts())
            .await
            .ok();
        if let Some(tracer) = self.decider.tracer() {
            tracer.finish().await;
        }
        if let Some(statsd) = self.decider.statsd() {
            statsd.finish().await;
        }
    }
}

fn tell(bell: &AlertSender, banned: &Banned) {
    let Banned { address, count, .. } = banned;
    let length = match banned.length {
        Some(length) => format!("for {length:?}"),
        None => "until somebody lets it in again".to_owned(),
    };
    let message = format!("{address} asked {count} times in one period, and is kept out {length}.");
    bell.ring(Alert::new(AlertKind::Ban, address, message));
}
