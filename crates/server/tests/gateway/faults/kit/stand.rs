//! The gateway in this process, with bounds and metrics.

use super::Page;
use crate::kit::{Reply, get, in_time};
use std::net::SocketAddr;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_control::running::ServerState;
use tidegate_net::bounds::Bounds;
use tidegate_net::tasks::Tasks;
use tidegate_server::program;

/// A gateway that runs until it is dropped.
pub(crate) struct TestGateway {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    _tasks: Tasks,
}

/// Starts a gateway with one route to these upstreams, without limits. `more` are other fields of
/// the route, such as `, retries: 0`.
pub(crate) async fn stand(upstreams: &[SocketAddr], more: &str) -> TestGateway {
    TestGateway::start(&config(upstreams, &format!(", policy: none{more}"))).await
}

/// Returns a configuration of one route to these upstreams, and one policy: one request an hour.
pub(crate) fn config(upstreams: &[SocketAddr], more: &str) -> String {
    let upstreams: Vec<_> = upstreams
        .iter()
        .map(|it| format!("'http://{it}'"))
        .collect();
    let upstreams = upstreams.join(", ");
    format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ name: all, upstreams: [{upstreams}]{more} }}]
policies:
  - name: api
    limits: [{{ name: per-client, key: ip, rate: 1/h }}]
"
    )
}

impl TestGateway {
    pub(crate) async fn start(config: &str) -> Self {
        Self::with(config, Bounds::default()).await
    }

    pub(crate) async fn with(config: &str, bounds: Bounds) -> Self {
        let config = Config::parse(config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listeners = tidegate_net::bind(&config.listen).await.unwrap();
        let address = listeners.gateway.as_ref().unwrap().tcp().unwrap();
        let admin = listeners.admin.tcp().unwrap();
        let serving = ServerState::start(config).await.unwrap();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let never = std::future::pending();
            let _end = program::run(listeners, serving, None, bounds, never).await;
        });
        Self {
            address,
            admin,
            _tasks: tasks,
        }
    }

    pub(crate) async fn get(&self, target: &str) -> Reply {
        get(self.address, target, &[]).await
    }

    /// Returns its current metrics.
    pub(crate) async fn page(&self) -> Page {
        Page::read(self.admin).await
    }

    /// Waits until its metrics match.
    pub(crate) async fn shows(&self, what: &str, is_so: impl Fn(&Page) -> bool) -> Page {
        in_time(what, async {
            loop {
                let page = self.page().await;
                if is_so(&page) {
                    return page;
                }
            }
        })
        .await
    }

    /// Waits until no request is in flight, and no client is connected.
    pub(crate) async fn is_at_rest(&self) {
        self.shows("nothing under way, and nobody connected", |page| {
            page.in_flight() == 0 && page.connections() == 0
        })
        .await;
    }
}
