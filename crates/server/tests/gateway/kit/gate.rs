//! Tidegate as a gateway, in this process.

use super::running::{Running, Stopping};
use std::fmt::Display;
use std::fs;
use std::net::SocketAddr;
use tidegate_policy::Config;
use tidegate_policy::config::Environment;
use tidegate_server::bounds::Bounds;
use tidegate_server::server;
use tidegate_server::serving::Serving;

/// A gateway that runs until it is stopped or dropped.
pub(crate) struct Gate {
    pub(crate) address: SocketAddr,
    running: Running,
}

/// Files are read, and variables are nobody's business here.
struct FilesAlone;

impl Environment for FilesAlone {
    fn variable(&self, _name: &str) -> Option<String> {
        None
    }

    fn file(&self, path: &str) -> Result<String, String> {
        fs::read_to_string(path).map_err(|error| error.to_string())
    }
}

/// One that sends everything to `upstream`, and limits nothing. `more` are other fields of the route,
/// as `, host: upstream`.
pub(crate) async fn open(upstream: impl Display, more: &str) -> Gate {
    let routes = format!("{{ id: all, upstreams: ['{upstream}'], policy: none{more} }}");
    Gate::start(&config(&routes, "rate: 1000000/s")).await
}

/// The same, with `paths: lenient`.
pub(crate) async fn lenient(upstream: impl Display, more: &str) -> Gate {
    let routes = format!("{{ id: all, upstreams: ['{upstream}'], policy: none{more} }}");
    Gate::start(&with_lenient_paths(&config(&routes, "rate: 1000000/s"))).await
}

/// The configuration, with `paths: lenient`.
pub(crate) fn with_lenient_paths(config: &str) -> String {
    let (strict, lenient) = (
        "'127.0.0.1:0'",
        "{ address: '127.0.0.1:0', paths: lenient }",
    );
    config.replacen(strict, lenient, 1)
}

/// One like [`open`] under one limit of each client, such as `rate: 1/h burst 2`.
pub(crate) async fn limited(upstream: impl Display, limit: &str) -> Gate {
    let routes = format!("{{ id: all, upstreams: ['{upstream}'] }}");
    Gate::start(&config(&routes, limit)).await
}

/// A configuration with these routes, and one policy.
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
        let listeners = server::bind(&config.listen).await.unwrap();
        let address = listeners.gateway.as_ref().unwrap().tcp().unwrap();
        let serving = Serving::start(config).await.unwrap();
        Self {
            address,
            running: Running::start(listeners, serving, Bounds::default()),
        }
    }

    /// Tells it to stop.
    pub(crate) fn stop(self) -> Stopping {
        self.running.stop()
    }
}
