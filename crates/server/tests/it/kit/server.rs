//! A server in this process.

use super::running::{Running, Stopping};
use std::net::SocketAddr;
use tidegate::Store;
use tidegate_policy::Config;
use tidegate_policy::config::{Listen, NoEnvironment};
use tidegate_policy::route::Routes;
use tidegate_server::bounds::Bounds;
use tidegate_server::decider::Decider;
use tidegate_server::server;
use tidegate_server::serving::Serving;
use tidegate_server::telemetry::store::StoreStats;

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    running: Running,
}

impl Server {
    pub(crate) async fn start(config: &str) -> Self {
        Self::with(config, Bounds::default()).await
    }

    pub(crate) async fn with(config: &str, bounds: Bounds) -> Self {
        let config = Config::parse(config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listen = config.listen.clone();
        let serving = Serving::start(config).await.unwrap();
        Self::serving(&listen, serving, bounds).await
    }

    /// A server that decides by `decider`.
    pub(crate) async fn of<S: StoreStats + Store + 'static>(
        listen: &Listen,
        decider: Decider<S>,
        bounds: Bounds,
    ) -> Self {
        let serving = Serving::new(decider, Routes::default()).unwrap();
        Self::serving(listen, serving, bounds).await
    }

    async fn serving<S: Store + 'static>(
        listen: &Listen,
        serving: Serving<S>,
        bounds: Bounds,
    ) -> Self {
        let listeners = server::bind(listen).await.unwrap();
        let http = listeners.http.as_ref().unwrap().tcp().unwrap();
        let admin = listeners.admin.tcp().unwrap();
        Self {
            http,
            admin,
            running: Running::start(listeners, serving, bounds),
        }
    }

    /// Tells it to stop.
    pub(crate) fn stop(self) -> Stopping {
        self.running.stop()
    }
}
