//! Tidegate as a gateway, in this process.

use super::running::{RunningServer, StoppingServer};
use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use tidegate_config::Config;
use tidegate_config::Environment;
use tidegate_control::running::ServerState;
use tidegate_net::bounds::Bounds;

/// A gateway that runs until it is stopped or dropped.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    running: RunningServer,
}

/// An environment that reads files, and has no variables.
struct FilesAlone;

impl Environment for FilesAlone {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| error.to_string())
    }
}

/// Starts a gateway that sends everything to `upstream`, without limits. `more` are other fields of
/// the route, such as `, host: upstream`.
pub(crate) async fn open(upstream: impl Display, more: &str) -> Gate {
    let routes = format!("{{ name: all, upstreams: ['{upstream}'], policy: none{more} }}");
    Gate::start(&config(&routes, "rate: 1000000/s")).await
}

/// Starts the same with `paths: lenient`.
pub(crate) async fn lenient(upstream: impl Display, more: &str) -> Gate {
    let routes = format!("{{ name: all, upstreams: ['{upstream}'], policy: none{more} }}");
    Gate::start(&with_lenient_paths(&config(&routes, "rate: 1000000/s"))).await
}

/// Returns the configuration with `paths: lenient`.
pub(crate) fn with_lenient_paths(config: &str) -> String {
    let (strict, lenient) = (
        "'127.0.0.1:0'",
        "{ address: '127.0.0.1:0', paths: lenient }",
    );
    config.replacen(strict, lenient, 1)
}

/// Starts a gateway like [`open`] with one limit per client, such as `rate: 1/h burst 2`.
pub(crate) async fn limited(upstream: impl Display, limit: &str) -> Gate {
    let routes = format!("{{ name: all, upstreams: ['{upstream}'] }}");
    Gate::start(&config(&routes, limit)).await
}

/// Returns a configuration with these routes, and one policy.
pub(crate) fn config(routes: &str, limit: &str) -> String {
    format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{routes}]
policies:
  - name: api
    limits: [{{ name: per-client, key: ip, {limit} }}]
"
    )
}

impl Gate {
    pub(crate) async fn start(config: &str) -> Self {
        let config = Config::parse(config, "test.yaml", &FilesAlone)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listeners = tidegate_net::bind(&config.listen).await.unwrap();
        let address = listeners.gateway.as_ref().unwrap().tcp().unwrap();
        let serving = ServerState::start(config).await.unwrap();
        Self {
            address,
            running: RunningServer::start(listeners, serving, Bounds::default()),
        }
    }

    /// Starts its shutdown.
    pub(crate) fn stop(self) -> StoppingServer {
        self.running.stop()
    }
}
