//! A server in this process.

use super::running::{RunningServer, StoppingServer};
use std::net::SocketAddr;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_control::running::ServerState;
use tidegate_frontends::listeners::ServedStore;
use tidegate_net::bounds::Bounds;
use tidegate_policy::listen::Listen;

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) resp: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) grpc: Option<SocketAddr>,
    running: RunningServer,
}

impl Server {
    pub(crate) async fn start(config: &str) -> Self {
        Self::with(config, Bounds::default()).await
    }

    pub(crate) async fn with(config: &str, bounds: Bounds) -> Self {
        let config = Config::parse(config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listen = config.listen.clone();
        let serving = ServerState::start(config).await.unwrap();
        Self::serving(&listen, serving, bounds).await
    }

    async fn serving<S: ServedStore>(
        listen: &Listen,
        serving: ServerState<S>,
        bounds: Bounds,
    ) -> Self {
        let listeners = tidegate_net::bind(listen).await.unwrap();
        let resp = listeners.resp.as_ref().unwrap().tcp().unwrap();
        let http = listeners.http.as_ref().unwrap().tcp().unwrap();
        let admin = listeners.admin.tcp().unwrap();
        let grpc = listeners
            .grpc
            .as_ref()
            .and_then(tidegate_net::BoundListener::tcp);
        Self {
            resp,
            http,
            admin,
            grpc,
            running: RunningServer::start(listeners, serving, bounds),
        }
    }

    /// Starts its shutdown.
    pub(crate) fn stop(self) -> StoppingServer {
        self.running.stop()
    }
}
