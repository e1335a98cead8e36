//! The sampling decision, and the queue of recorded requests.

use super::context::Context;
use super::metrics::TraceMetrics;
use super::outbox::Outbox;
use super::span::RequestSpans;
use super::trace::RequestTrace;
use http::HeaderMap;
use std::sync::Arc;
use std::time::Duration;
use tidegate_config::traces::{Sample, Traces};
use tidegate_net::random::chance;
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;

/// The maximum number of requests that wait to be sent; further ones are dropped and counted.
const QUEUE: usize = 2_048;

/// The maximum time for sending the remaining requests.
const FAREWELL: Duration = Duration::from_secs(1);

/// The sampler and queue of recorded requests. Recording never waits.
#[derive(Debug)]
pub struct Tracer {
    sample: Sample,
    queue: mpsc::Sender<RequestSpans>,
    metrics: TraceMetrics,
    /// Locked by the task that sends.
    outbox: Mutex<Outbox>,
}

impl Tracer {
    /// Creates a tracer that sends to the endpoint of `traces`. Returns an error message if that is invalid.
    ///
    /// # Errors
    ///
    /// The setting that cannot be used: `traces.url` or one of `traces.headers`.
    pub fn new(traces: &Traces, metrics: TraceMetrics) -> Result<Arc<Self>, String> {
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

    /// Starts the trace of a request with these headers. If a trusted caller has decided whether to record
    /// it, its decision applies. An untrusted caller chooses the trace id but not whether the trace is
    /// recorded: otherwise any client could have everything recorded, or nothing. The trace id does not
    /// decide either, because an untrusted caller chooses it.
    pub fn begin(
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

    /// Queues a recorded request, or drops and counts it if the queue is full.
    pub fn record(&self, recorded: RequestSpans) {
        let spans = recorded.spans.len();
        if self.queue.try_send(recorded).is_err() {
            self.metrics.dropped(spans);
        }
    }

    /// Sends recorded requests, until cancelled.
    pub async fn run(&self) {
        self.outbox.lock().await.run().await;
    }

    /// Sends the remaining requests, for at most `FAREWELL`. The task in [`run`](Self::run) must have
    /// ended.
    pub async fn finish(&self) {
        let rest = async { self.outbox.lock().await.finish().await };
        timeout(FAREWELL, rest).await.ok();
    }
}
