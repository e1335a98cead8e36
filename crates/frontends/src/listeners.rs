//! Opening the listeners, each with its frontend.
//!
//! Frontends are generic over the store, and hyper's connections over the frontend. So they are compiled where
//! the store is named. For the program that is [`ServedStore`] of [`AnyStore`], in this crate, which is
//! optimised for speed. A caller that names the store itself compiles all of it once more, as its own crate is
//! optimised.

use crate::decider::Decider;
use crate::gateway::{Gateway, GatewayFrontend};
use crate::grpc::GrpcFrontend;
use crate::http::HttpFrontend;
use crate::resp::RespFrontend;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate::{AnyStore, Client};
use tidegate_net::BoundListener;
use tidegate_net::accept::open;
use tidegate_net::bounds::Bounds;
use tidegate_net::connection::FrontendContext;
use tidegate_net::connection_handler::{ConnectionHandler, ListenerConfig};
use tidegate_net::frontend::Frontend;
use tidegate_net::phase::{Phase, PhaseWatch};
use tidegate_net::room::Origin;
use tidegate_net::tasks::Tasks;
use tidegate_telemetry::store::StoreStats;

/// A store that the frontends can decide in.
pub trait ServedStore: StoreStats + Sized {
    /// Opens the listeners of all frontends.
    fn open(opener: &ListenerOpener<Self>, listeners: FrontendListeners) {
        opener.open_frontends(listeners);
    }
}

impl ServedStore for AnyStore {
    // Not the method of the trait, which would be compiled in the crate that calls it.
    fn open(opener: &ListenerOpener<Self>, listeners: FrontendListeners) {
        opener.open_frontends(listeners);
    }
}

/// The listeners of the frontends: those that the configuration has.
#[derive(Debug)]
pub struct FrontendListeners {
    /// For `/v1/check` and forward-auth.
    pub http: Option<BoundListener>,
    /// For Envoy's rate limit service.
    pub grpc: Option<BoundListener>,
    /// For the Redis protocol.
    pub resp: Option<BoundListener>,
    /// For the reverse proxy.
    pub gateway: Option<BoundListener>,
}

/// Opens listeners, each with its frontend.
#[derive(Debug)]
pub struct ListenerOpener<S = AnyStore> {
    /// Decides for all of them.
    pub decider: Decider<S>,
    /// The routes of the reverse proxy, if there are any.
    pub gateway: Option<Arc<Gateway>>,
    /// The bounds of their connections.
    pub bounds: Bounds,
    /// The phase of the server.
    pub phase: PhaseWatch,
    /// The connections of the listeners that are opened next.
    pub tasks: Arc<Tasks>,
}

impl<S: StoreStats> ListenerOpener<S> {
    /// Returns the settings of a listener.
    pub fn config(
        &self,
        name: &'static str,
        bound: &BoundListener,
        bounds: Bounds,
        closes_in: Phase,
    ) -> ListenerConfig {
        ListenerConfig {
            name,
            bounds,
            metrics: self.decider.metrics().listener(name),
            closes_in,
            age: bound.age,
        }
    }

    /// Opens a listener that speaks HTTP.
    pub fn open_http(
        &self,
        bound: BoundListener,
        threshold: ListenerConfig,
        frontend: impl Frontend,
    ) {
        let context = FrontendContext {
            threshold,
            frontend,
            token: bound.token.clone(),
        };
        self.open(bound, context);
    }

    fn open_frontends(&self, listeners: FrontendListeners) {
        self.http(listeners.http);
        self.grpc(listeners.grpc);
        self.resp(listeners.resp);
        self.gateway(listeners.gateway);
    }

    fn http(&self, bound: Option<BoundListener>) {
        let Some(bound) = bound else { return };
        let config = self.config("http", &bound, self.bounds, Phase::Draining);
        let frontend = HttpFrontend::new(self.decider.clone(), self.bounds);
        self.open_http(bound, config, frontend);
    }

    fn grpc(&self, bound: Option<BoundListener>) {
        let Some(bound) = bound else { return };
        let config = self.config("grpc", &bound, self.bounds, Phase::Draining);
        let frontend = GrpcFrontend::new(self.decider.clone(), self.bounds, self.phase.clone());
        self.open_http(bound, config, frontend);
    }

    fn resp(&self, bound: Option<BoundListener>) {
        let Some(bound) = bound else { return };
        let config = self.config("resp", &bound, self.bounds, Phase::Draining);
        let resp = RespFrontend::new(config, self.decider.clone(), bound.token.clone());
        self.open(bound, resp.registered());
    }

    fn gateway(&self, bound: Option<BoundListener>) {
        let (Some(bound), Some(gateway)) = (bound, &self.gateway) else {
            return;
        };
        let bounds = self.bounds.of_gateway();
        let config = self.config("gateway", &bound, bounds, Phase::Draining);
        let frontend = GatewayFrontend::new(self.decider.clone(), Arc::clone(gateway));
        self.open_http(bound, config, frontend);
    }

    fn open(&self, bound: BoundListener, handler: impl ConnectionHandler) {
        let origin = origin(&self.decider);
        open(bound, handler, self.phase.clone(), &self.tasks, origin);
    }
}

/// Returns a function that determines the origin of a peer, by the rules of the current configuration.
fn origin<S: StoreStats>(decider: &Decider<S>) -> impl Fn(IpAddr) -> Origin + use<S> {
    let decider = decider.clone();
    move |peer| {
        // After shutdown there are no rules.
        let rules = decider.rules().ok();
        let client = rules.as_ref().map(|rules| rules.client());
        Origin::new(
            peer,
            client.map_or(64, Client::ipv6_prefix),
            client.is_some_and(|client| client.trusts(peer)),
        )
    }
}
