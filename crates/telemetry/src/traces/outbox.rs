//! Sends recorded requests, many at a time, off the path of any request.
//!
//! Up to 512 requests, or those of one second, form a batch. A post is tried four times; the
//! collector's `Retry-After` is obeyed up to 30 seconds. Meanwhile the queue fills, and requests beyond
//! its bound are dropped and counted: tracing never slows down a request.

use super::metrics::TraceMetrics;
use super::otlp::{self, Resource};
use super::span::RequestSpans;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use std::time::Duration;
use tidegate_config::traces::Traces;
use tidegate_net::random::chance;
use tidegate_policy::tls::ClientTls;
use tidegate_proxy::http_fetch::{FetchedResponse, HttpFetch};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};
use tracing::{debug, warn};

/// The maximum number of requests in a batch, and the time for which the first of them waits for others.
const BATCH: usize = 512;
const LINGER: Duration = Duration::from_secs(1);

/// The number of attempts per post, and the pause after the first; doubled each time.
const TRIES: u32 = 4;
const PAUSE: Duration = Duration::from_secs(1);
/// The longest pause, even if the collector asks for a longer one.
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The maximum number of bytes read from a response.
const ANSWER_MAX: usize = 64 << 10;

/// The queue of recorded requests, and the client that sends them.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: mpsc::Receiver<RequestSpans>,
    /// Requests taken from the queue, and not yet sent.
    batch: Vec<RequestSpans>,
    errand: HttpFetch,
    headers: HeaderMap,
    resource: Resource,
    metrics: TraceMetrics,
    /// True if the log already reports that posts fail.
    is_told: bool,
}

/// The outcome of a post.
enum PostOutcome {
    Taken(FetchedResponse),
    /// It may be accepted later; after this pause, if the collector sends one.
    Later(String, Option<Duration>),
    Refused(String),
}

impl Outbox {
    /// Creates an outbox that sends the requests from `queue` to the endpoint of `traces`. Returns an error
    /// message if that is invalid.
    pub(super) fn new(
        traces: &Traces,
        queue: mpsc::Receiver<RequestSpans>,
        metrics: TraceMetrics,
    ) -> Result<Self, String> {
        let tls = ClientTls::default();
        let errand = HttpFetch::to(&traces.url, &tls, traces.timeout, ANSWER_MAX);
        let mut headers = HeaderMap::new();
        for (name, value) in &traces.headers {
            let wrong = || format!("`traces.headers`: `{name}` cannot be sent");
            let mut text = HeaderValue::from_str(value.expose()).map_err(|_| wrong())?;
            text.set_sensitive(true);
            let name = HeaderName::try_from(name.as_str()).map_err(|_| wrong())?;
            headers.insert(name, text);
        }
        let json = HeaderValue::from_static("application/json");
        headers.insert(CONTENT_TYPE, json);
        Ok(Self {
            queue,
            batch: Vec::new(),
            errand: errand.map_err(|why| format!("`traces.url`: {why}"))?,
            headers,
            resource: Resource {
                service: traces.service.clone(),
                instance: format!("{:016x}", chance()),
            },
            metrics,
            is_told: false,
        })
    }

    /// Sends until all senders of the queue are dropped.
    pub(super) async fn run(&mut self) {
        loop {
            let Some(first) = self.queue.recv().await else {
                return;
            };
            self.batch.push(first);
            let until = Instant::now() + LINGER;
            while self.batch.len() < BATCH {
                match timeout_at(until, self.queue.recv()).await {
                    Ok(Some(next)) => self.batch.push(next),
                    Ok(None) | Err(_) => break,
                }
            }
            self.send(TRIES).await;
        }
    }

    /// Sends the remaining requests, each once.
    pub(super) async fn finish(&mut self) {
        loop {
            while self.batch.len() < BATCH
                && let Ok(next) = self.queue.try_recv()
            {
                self.batch.push(next);
            }
            if self.batch.is_empty() {
                return;
            }
            self.send(1).await;
        }
    }

    /// Sends the batch, and clears it after success and failure. If this is dropped half way, the batch
    /// remains.
    async fn send(&mut self, tries: u32) {
        let spans = self.batch.iter().map(|it| it.spans.len()).sum::<usize>();
        let spans = u64::try_from(spans).unwrap_or(u64::MAX);
        let body = Bytes::from(otlp::request(&self.resource, &self.batch));
        let mut posts = 0;
        let failure = loop {
            posts += 1;
            match self.post(body.clone()).await {
                PostOutcome::Taken(answer) => {
                    let rejected = otlp::rejected(&answer.body).min(spans);
                    self.metrics.rejected(rejected);
                    self.metrics.sent(spans - rejected);
                    if self.is_told {
                        self.is_told = false;
                        tracing::info!(event = "traces_recovered", "trace export works again");
                    }
                    break None;
                }
                PostOutcome::Refused(why) => break Some(why),
                PostOutcome::Later(why, _) if posts >= tries => break Some(why),
                PostOutcome::Later(why, after) => {
                    debug!(event = "traces_retried", error = %why, "trace export failed; retrying");
                    let doubled = PAUSE.saturating_mul(1 << (posts - 1).min(8));
                    sleep(after.unwrap_or(doubled).min(PAUSE_MAX)).await;
                }
            }
        };
        if let Some(why) = failure {
            self.metrics.failed(spans);
            // Log once for each outage.
            if !self.is_told {
                self.is_told = true;
                warn!(event = "traces_failed", error = %why, "trace export failed; dropping spans");
            }
        }
        self.batch.clear();
    }

    async fn post(&self, body: Bytes) -> PostOutcome {
        let answer = self
            .errand
            .run(Method::POST, self.headers.clone(), body)
            .await;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return PostOutcome::Later(error.to_string(), None),
        };
        let status = answer.status;
        match status {
            status if status.is_success() => PostOutcome::Taken(answer),
            // The four statuses that OTLP defines as retryable.
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT => {
                let after = answer.headers.get(RETRY_AFTER);
                let after = after.and_then(|it| it.to_str().ok()?.parse().ok());
                let after = after.map(Duration::from_secs);
                PostOutcome::Later(format!("the response status was {status}"), after)
            }
            status => PostOutcome::Refused(format!("the response status was {status}")),
        }
    }
}
