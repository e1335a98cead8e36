//! Health, metrics, and the admin API.

pub(crate) mod api;
mod rlconfig;

use self::api::Api;
use super::Door;
use super::respond::{self, DoorResponse, MetricsFormat, WholeBody};
use crate::decider::{Decider, DeciderHealth};
use crate::server::phase::{Phase, PhaseWatch};
use crate::server::session::RequestContext;
use crate::tasks;
use crate::telemetry::health::{ServiceStatus, StatusDocument};
use http::{Method, Request};
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate::{AnyStore, Store};
use tokio::sync::Semaphore;

/// The frontend for health, metrics, and the admin API.
#[derive(Debug)]
pub(crate) struct AdminDoor<S = AnyStore> {
    phase: PhaseWatch,
    decider: Decider<S>,
    /// Allows one metrics page at a time: each scans the whole store.
    pages: Semaphore,
    /// Present if there is a complete server to administer.
    api: Option<Arc<Api>>,
}

impl<S: Store> AdminDoor<S> {
    pub(crate) fn new(phase: PhaseWatch, decider: Decider<S>, api: Option<Arc<Api>>) -> Self {
        Self {
            phase,
            decider,
            pages: Semaphore::new(1),
            api,
        }
    }

    /// An unreachable store does not make this server unready, as long as any limit can be decided
    /// without it.
    async fn ready(&self) -> DoorResponse {
        match self.phase.now() {
            Phase::Starting => respond::not_ready("starting"),
            Phase::Serving => match self.decider.standing().await {
                DeciderHealth::Sound => respond::ready(None),
                DeciderHealth::Degraded => respond::ready(Some("store")),
                DeciderHealth::Stuck => respond::not_ready("store"),
            },
            Phase::Leaving | Phase::Draining | Phase::Closing => respond::not_ready("draining"),
        }
    }

    async fn metrics(&self, format: MetricsFormat) -> DoorResponse {
        // The semaphore is never closed.
        let _page = self.pages.acquire().await.ok();
        let metrics = Arc::clone(self.decider.metrics());
        let page = tasks::blocking(move || match format {
            MetricsFormat::OpenMetrics => metrics.page(),
            MetricsFormat::Plain => metrics.plain_page(),
        });
        match page.await {
            Some(page) => respond::metrics(page, format),
            None => respond::failed(),
        }
    }

    /// Returns the status report. A load balancer that only needs to know whether to send requests uses
    /// `/readyz`.
    async fn status(&self) -> DoorResponse {
        let document = StatusDocument::of(&self.decider, self.phase.now()).await;
        let is_down = document.status() == ServiceStatus::Down;
        respond::status(document.to_json(), is_down)
    }

    /// Returns the limits in force, as text.
    fn limits(&self) -> DoorResponse {
        match self.decider.rules() {
            Ok(rules) => respond::limits(rlconfig::text(rules.written())),
            Err(_) => respond::failed(),
        }
    }

    /// Returns the admin API if `path` belongs to it.
    fn api_at(&self, path: &str) -> Option<&Arc<Api>> {
        self.api.as_ref().filter(|api| api.is_at(path))
    }
}

impl<S: Store + 'static> Door for AdminDoor<S> {
    type Body = WholeBody;
    type Memory = ();
    type Begun = ();

    async fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_>,
        (): (),
    ) -> DoorResponse {
        let path = request.uri().path();
        if let Some(api) = self.api_at(path) {
            // Boxed: this future is large, and probes are more frequent.
            return Box::pin(Arc::clone(api).answer(*request, visit)).await;
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match path {
            "/livez" | "/readyz" | "/status" | "/metrics" | "/rlconfig" if !is_read => {
                respond::wrong_method("GET, HEAD")
            }
            "/livez" => respond::alive(),
            "/readyz" => self.ready().await,
            "/status" => self.status().await,
            "/metrics" => self.metrics(MetricsFormat::asked(request.headers())).await,
            "/rlconfig" => self.limits(),
            path => respond::not_found(
                path,
                "there are /livez, /readyz, /status, /metrics and /rlconfig",
            ),
        }
    }

    fn whole(answer: DoorResponse) -> DoorResponse {
        answer
    }

    /// Health is for probes and load balancers, which seldom can hold a secret. It reports only whether
    /// this server accepts requests. The admin API checks its own tokens.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        let path = request.uri().path();
        matches!(path, "/livez" | "/readyz") || self.api_at(path).is_some()
    }
}
