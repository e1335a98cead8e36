//! Health and metrics.

use super::Door;
use super::respond::{self, Answer, Whole};
use crate::decider::{Decider, Standing};
use crate::server::phase::{Phase, Watch};
use crate::server::session::Visit;
use crate::tasks;
use http::{Method, Request};
use hyper::body::Incoming;
use std::sync::Arc;
use tidegate::{AnyStore, Store};
use tokio::sync::Semaphore;

/// Health and metrics.
#[derive(Debug)]
pub(crate) struct AdminDoor<S = AnyStore> {
    phase: Watch,
    decider: Decider<S>,
    /// One page at a time: each looks through the whole store.
    pages: Semaphore,
}

impl<S: Store> AdminDoor<S> {
    pub(crate) fn new(phase: Watch, decider: Decider<S>) -> Self {
        Self {
            phase,
            decider,
            pages: Semaphore::new(1),
        }
    }

    /// A store that is away is no reason to stay away from this server, as long as any limit lets
    /// it go on.
    async fn ready(&self) -> Answer {
        match self.phase.now() {
            Phase::Starting => respond::not_ready("starting"),
            Phase::Serving => match self.decider.standing().await {
                Standing::Sound => respond::ready(None),
                Standing::Degraded => respond::ready(Some("store")),
                Standing::Stuck => respond::not_ready("store"),
            },
            Phase::Leaving | Phase::Draining | Phase::Closing => respond::not_ready("draining"),
        }
    }

    async fn metrics(&self) -> Answer {
        // The semaphore is never closed.
        let _page = self.pages.acquire().await.ok();
        let metrics = Arc::clone(self.decider.metrics());
        match tasks::blocking(move || metrics.page()).await {
            Some(page) => respond::metrics(page),
            None => respond::failed(),
        }
    }
}

impl<S: Store + 'static> Door for AdminDoor<S> {
    type Body = Whole;
    type Memory = ();

    async fn answer(&self, request: Request<Incoming>, _: Visit<'_>) -> Answer {
        let path = request.uri().path();
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        match path {
            "/livez" | "/readyz" | "/metrics" if !is_read => respond::wrong_method("GET, HEAD"),
            "/livez" => respond::alive(),
            "/readyz" => self.ready().await,
            "/metrics" => self.metrics().await,
            path => respond::not_found(path, "there are /livez, /readyz and /metrics"),
        }
    }

    fn whole(answer: Answer) -> Answer {
        answer
    }

    /// Health is for probes and load balancers, which seldom can hold a secret, and tells nothing
    /// but whether this server wants requests.
    fn is_public(&self, request: &Request<Incoming>) -> bool {
        matches!(request.uri().path(), "/livez" | "/readyz")
    }
}
