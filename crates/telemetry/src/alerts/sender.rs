//! Sends alerts to the queue.
//!
//! ```text
//! ring ─▶ kind configured? ─▶ sent within `repeat`, ─▶ room in the queue? ─▶ messenger
//!              no: ignored     in the same window?       no: counted, logged
//!                              yes: counted
//! ```
//!
//! Requests ring while they are decided, so nothing here waits, and both the queue and the memory of
//! recent alerts are bounded.

use super::alert::{Alert, AlertWindow};
use super::messenger::Messenger;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::alerts::{AlertKind, Alerts};
use tidegate_policy::tls::ClientTls;
use tidegate_proxy::http_fetch::HttpFetch;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tracing::warn;

/// The maximum number of alerts that wait to be delivered.
const QUEUE: usize = 256;

/// The maximum number of recent alerts that are remembered.
const TOLD_MAX: usize = 4_096;

/// The maximum number of bytes to read of a response to an alert.
const ANSWER_MAX: usize = 16 * 1_024;

/// Sends alerts. Clones are cheap, and sending never waits.
#[derive(Clone)]
pub struct AlertSender {
    wire: Option<Arc<AlertQueue>>,
    metrics: AlertMetrics,
}

struct AlertQueue {
    on: Vec<AlertKind>,
    repeat: Duration,
    queue: mpsc::Sender<Alert>,
    sent: Mutex<HashMap<(AlertKind, String), SentAlert, RandomState>>,
}

/// The last time at which an alert was sent.
#[derive(Clone, Copy)]
struct SentAlert {
    at: Instant,
    window: Option<AlertWindow>,
}

/// Counts alerts by outcome.
#[derive(Clone, Debug, Default)]
pub struct AlertMetrics(Family<[(&'static str, &'static str); 2], Counter>);

// === impl AlertSender ===

impl AlertSender {
    /// Returns a sender that discards all alerts.
    pub fn silent() -> Self {
        Self {
            wire: None,
            metrics: AlertMetrics::default(),
        }
    }

    /// Creates a sender, and the messenger that delivers its alerts to the webhook of `alerts`. Fails if
    /// the settings are invalid.
    ///
    /// # Errors
    ///
    /// The reason why the URL of the webhook cannot be used. The message does not contain the URL, which is a secret.
    pub fn hang(alerts: &Alerts, metrics: AlertMetrics) -> Result<(Self, Messenger), String> {
        let tls = ClientTls::default();
        let errand = HttpFetch::to(alerts.webhook.expose(), &tls, alerts.timeout, ANSWER_MAX);
        let errand = errand.map_err(|why| format!("`alerts.webhook`: {why}"))?;
        let (queue, queued) = mpsc::channel(QUEUE);
        let wire = AlertQueue {
            on: alerts.on.clone(),
            repeat: alerts.repeat,
            queue,
            sent: Mutex::default(),
        };
        for kind in &alerts.on {
            for outcome in ["sent", "failed", "dropped", "repeated"] {
                // They start at zero, so that a rate over their first increase is right.
                metrics.counter(*kind, outcome);
            }
        }
        let messenger = Messenger::new(errand, alerts.format, queued, metrics.clone());
        let wire = Some(Arc::new(wire));
        Ok((Self { wire, metrics }, messenger))
    }

    /// Forgets an alert whose cause has ended, so that it is sent again if it recurs.
    pub fn forget(&self, kind: AlertKind, subject: &str) {
        if let Some(wire) = &self.wire {
            wire.sent.lock().remove(&(kind, subject.to_owned()));
        }
    }

    /// Sends an alert, unless its kind is not configured, or the same was sent recently.
    pub fn ring(&self, alert: Alert) {
        let Some(wire) = &self.wire else {
            return;
        };
        if !wire.on.contains(&alert.kind) {
            return;
        }
        let kind = alert.kind;
        let cause = alert.cause().to_owned();
        if !wire.is_news(&alert) {
            self.metrics.count(kind, "repeated");
        } else if wire.queue.try_send(alert).is_err() {
            // The alert was not delivered.
            self.forget(kind, &cause);
            self.metrics.count(kind, "dropped");
            warn!(
                event = "alert_dropped",
                kind = kind.as_str(),
                "alert dropped: the queue is full"
            );
        }
    }
}

impl AlertQueue {
    /// Returns true if the alert was not sent recently.
    fn is_news(&self, alert: &Alert) -> bool {
        let now = Instant::now();
        let mut sent = self.sent.lock();
        let is_recent = |last: &SentAlert| now.duration_since(last.at) < self.repeat;
        let name = (alert.kind, alert.cause().to_owned());
        let last = sent.get(&name);
        if last.is_some_and(|last| is_recent(last) && !last.is_over(alert)) {
            return false;
        }
        if sent.len() >= TOLD_MAX {
            sent.retain(|_, last| is_recent(last));
        }
        // With so many alerts at once, repetitions do not matter.
        if sent.len() < TOLD_MAX {
            let window = alert.window;
            sent.insert(name, SentAlert { at: now, window });
        }
        true
    }
}

impl SentAlert {
    /// Returns true if its window has ended before `next`, which is then in another one.
    fn is_over(&self, next: &Alert) -> bool {
        let windows = self.window.zip(next.window);
        windows.is_some_and(|(last, next)| next.at >= last.ends)
    }
}

impl fmt::Debug for AlertSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bell")
            .field("is_heard", &self.wire.is_some())
            .finish_non_exhaustive()
    }
}

// === impl AlertMetrics ===

impl AlertMetrics {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("alerts", "Alerts by kind and outcome", self.0.clone());
    }

    pub(super) fn count(&self, kind: AlertKind, outcome: &'static str) {
        self.counter(kind, outcome).inc();
    }

    #[cfg(test)]
    pub(super) fn counter_value(&self, kind: AlertKind, outcome: &'static str) -> u64 {
        self.counter(kind, outcome).get()
    }

    fn counter(&self, kind: AlertKind, outcome: &'static str) -> Counter {
        let labels = [("kind", kind.as_str()), ("outcome", outcome)];
        self.0.get_or_create_owned(&labels)
    }
}
