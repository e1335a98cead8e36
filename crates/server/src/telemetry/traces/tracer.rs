//! Decides what is recorded, and keeps it until it is sent.

use super::context::Context;
use super::metrics::TraceMetrics;
use super::outbox::Outbox;
use super::span::Recorded;
use super::trace::RequestTrace;
use crate::telemetry::chance::chance;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::traces::{Sample, Traces};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// How many requests wait to be sent at most; what comes beyond that is dropped, and counted.
const QUEUE: usize = 2_048;

/// How long the last of them may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// Decides what is recorded, and keeps it until it is sent. Recording never waits.
#[derive(Debug)]
pub(crate) struct Tracer {
    sample: Sample,
    queue: mpsc::Sender<Recorded>,
    metrics: TraceMetrics,
    /// Held by whoever sends.
    outbox: Mutex<Outbox>,
}

impl Tracer {
    /// One that sends to where `traces` says, or what is wrong with that.
    pub(crate) fn new(traces: &Traces, metrics: TraceMetrics) -> Result<Arc<Self>, String> {
        let (queue, queued) = mpsc::channel(QUEUE);
        metrics.begin();
        let outbox = Outbox::new(traces, queued, metrics.clone())?;
        Ok(Arc::new(Self {
            sample: traces.sample,
            queue,
            metrics,
            outbox: Mutex::new(outbox),
        }))
    }

    /// A request with these headers begins. Where its caller has decided whether it is recorded, and is
    /// believed, it is as the caller says. A stranger is heard as to which trace it belongs to, and not
    /// as to whether it is recorded: else whoever likes could have everything recorded, or nothing. Nor
    /// is that told by the number of the trace, which is a stranger's to choose.
    pub(crate) fn begin(
        self: &Arc<Self>,
        headers: &HeaderMap,
        is_trusted: impl FnOnce() -> bool,
    ) -> RequestTrace {
        let parent = Context::of(headers);
        let is_recorded = match &parent {
            Some(parent) if is_trusted() => parent.is_sampled,
            _ => self.sample.takes(chance()),
        };
        if is_recorded {
            RequestTrace::begin(self, parent)
        } else {
            RequestTrace::none()
        }
    }

    /// Takes what was recorded of a request, if there is room for it.
    pub(super) fn record(&self, recorded: Recorded) {
        let spans = recorded.spans.len();
        if self.queue.try_send(recorded).is_err() {
            self.metrics.dropped(spans);
        }
    }

    /// Sends what is recorded, for as long as it runs.
    pub(crate) async fn run(&self) {
        self.outbox.lock().await.run().await;
    }

    /// Sends what is left, unless that takes long. Whoever ran must have been told to end.
    pub(crate) async fn finish(&self) {
        let rest = async { self.outbox.lock().await.finish().await };
        timeout(FAREWELL, rest).await.ok();
    }
}
