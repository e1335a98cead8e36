//! Health and metrics.

use super::Door;
use super::respond::{self, Answer};
use crate::server::phase::{Phase, Watch};
use crate::tasks;
use crate::telemetry::metrics::Metrics;
use http::{Method, Request};
use hyper::body::Incoming;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Health and metrics.
#[derive(Debug)]
pub(crate) struct AdminDoor {
    phase: Watch,
    metrics: Arc<Metrics>,
    /// One page at a time: each looks through the whole store.
    pages: Semaphore,
}

impl AdminDoor {
    pub(crate) fn new(phase: Watch, metrics: Arc<Metrics>) -> Self {
        Self {
            phase,
            metrics,
            pages: Semaphore::new(1),
        }
    }

    fn ready(&self) -> Answer {
        respond::ready(match self.phase.now() {
            Phase::Starting => Some("starting"),
            Phase::Serving => None,
            Phase::Draining | Phase::Closing => Some("draining"),
        })
    }

    async fn metrics(&self) -> Answer {
        // The semaphore is never closed.
        let _page = self.pages.acquire().await.ok();
        let metrics = Arc::clone(&self.metrics);
        match tasks::blocking(move || metrics.page()).await {
            Some(page) => respond::metrics(page),
            None => respond::failed(),
        }
    }
}

impl Door for AdminDoor {
    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match path {
            "/livez" | "/readyz" | "/metrics" if !is_read => respond::wrong_method("GET, HEAD"),
            "/livez" => respond::alive(),
            "/readyz" => self.ready(),
            "/metrics" => self.metrics().await,
            path => respond::not_found(path, "there are /livez, /readyz and /metrics"),
        }
    }

    /// Health is for probes and load balancers, which seldom can hold a secret, and tells nothing
    /// but whether this server wants requests.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        matches!(request.uri().path(), "/livez" | "/readyz")
    }
}
