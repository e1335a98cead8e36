//! Health, metrics, and the admin API.

pub mod api;
mod body;
pub mod health;
mod rlconfig;

use self::api::{Api, is_below_admin};
use self::body::AdminBody;
use crate::admin::health::body::{ServiceStatus, StatusDocument};
use http::{Method, Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate::{AnyStore, Store};
use tidegate_frontends::decider::{Decider, DeciderHealth};
use tidegate_frontends::respond::{self, FrontendResponse, MetricsFormat};
use tidegate_net::frontend::Frontend;
use tidegate_net::phase::{Phase, PhaseWatch};
use tidegate_net::session::RequestContext;
use tidegate_net::tasks;
use tokio::sync::Semaphore;

/// The reason why nothing exists below `/admin`.
const API_DISABLED: &str = "the admin API is disabled, because no caller is configured: add \
    `admin: { tokens: [..] }` to the configuration, with a hash from `tidegate token`";

/// The frontend for health, metrics, and the admin API.
#[derive(Debug)]
pub struct AdminFrontend<S = AnyStore> {
    phase: PhaseWatch,
    decider: Decider<S>,
    /// Allows one metrics page at a time: each scans the whole store.
    pages: Semaphore,
    /// Present if there is a complete server to administer.
    api: Option<Arc<Api>>,
}

impl<S: Store> AdminFrontend<S> {
    /// Creates the frontend, with the admin API if there is one.
    pub fn new(phase: PhaseWatch, decider: Decider<S>, api: Option<Arc<Api>>) -> Self {
        Self {
            phase,
            decider,
            pages: Semaphore::new(1),
            api,
        }
    }

    /// An unreachable store does not make this server unready, as long as any limit can be decided
    /// without it.
    async fn ready(&self) -> FrontendResponse {
        match self.phase.now() {
            Phase::Starting => respond::not_ready("starting"),
            Phase::Serving => match self.decider.status().await {
                DeciderHealth::Sound => respond::ready(None),
                DeciderHealth::Degraded => respond::ready(Some("store")),
                DeciderHealth::Stuck => respond::not_ready("store"),
            },
            Phase::Leaving | Phase::Draining | Phase::Closing => respond::not_ready("draining"),
        }
    }

    async fn metrics(&self, format: MetricsFormat) -> FrontendResponse {
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
    async fn status(&self) -> FrontendResponse {
        let document = StatusDocument::of(&self.decider, self.phase.now()).await;
        let Ok(mut json) = serde_json::to_vec(&document) else {
            return respond::failed();
        };
        json.push(b'\n');
        respond::status(json, document.status == ServiceStatus::Down)
    }

    /// Returns the limits in force, as text.
    fn limits(&self) -> FrontendResponse {
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

impl<S: Store + 'static> Frontend for AdminFrontend<S> {
    type Body = AdminBody;
    type Memory = ();
    type PendingState = ();

    async fn answer(
        &self,
        request: Box<Request<Incoming>>,
        visit: RequestContext<'_>,
        (): (),
    ) -> Response<AdminBody> {
        let path = request.uri().path();
        if let Some(api) = self.api_at(path) {
            // Boxed: this future is large, and probes are more frequent.
            return Box::pin(Arc::clone(api).answer(*request, visit)).await;
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = match path {
            "/livez" | "/readyz" | "/status" | "/metrics" | "/rlconfig" if !is_read => {
                respond::wrong_method("GET, HEAD")
            }
            "/livez" => respond::alive(),
            "/readyz" => self.ready().await,
            "/status" => self.status().await,
            "/metrics" => self.metrics(MetricsFormat::asked(request.headers())).await,
            "/rlconfig" => self.limits(),
            path if is_below_admin(path) => respond::not_found(path, API_DISABLED),
            path => respond::not_found(
                path,
                "there are /livez, /readyz, /status, /metrics and /rlconfig",
            ),
        };
        answer.map(AdminBody::Whole)
    }

    fn unauthorized() -> Response<AdminBody> {
        respond::unauthorized().map(AdminBody::Whole)
    }

    fn problem(answer: &Response<AdminBody>) -> Option<u16> {
        respond::problem_status(answer)
    }

    /// Health is for probes and load balancers, which seldom can hold a secret. It reports only whether
    /// this server accepts requests. The admin API checks its own tokens.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        let path = request.uri().path();
        matches!(path, "/livez" | "/readyz") || self.api_at(path).is_some()
    }
}
