//! The gateway in this process, with bounds and metrics.

use super::Page;
use crate::kit::{Reply, get, in_time};
use std::net::SocketAddr;
use tidegate_policy::Config;
use tidegate_policy::config::NoEnvironment;
use tidegate_server::bounds::Bounds;
use tidegate_server::server;
use tidegate_server::serving::Serving;
use tidegate_server::tasks::Tasks;

/// A gateway that runs until it is dropped.
pub(crate) struct Stand {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    _tasks: Tasks,
}

/// A gateway of one route to these upstreams, which limits nothing. `more` are other fields of the
/// route, as `, retries: 0`.
pub(crate) async fn stand(upstreams: &[SocketAddr], more: &str) -> Stand {
    Stand::start(&config(upstreams, &format!(", policy: none{more}"))).await
}

/// A configuration of one route to these upstreams, and one policy: one request an hour.
pub(crate) fn config(upstreams: &[SocketAddr], more: &str) -> String {
    let upstreams: Vec<_> = upstreams
        .iter()
        .map(|it| format!("'http://{it}'"))
        .collect();
    let upstreams = upstreams.join(", ");
    format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes: [{{ id: all, upstreams: [{upstreams}]{more} }}]
policies:
  - name: api
    limits: [{{ name: per-client, key: ip, rate: 1/h }}]
"
    )
}

impl Stand {
    pub(crate) async fn start(config: &str) -> Self {
        Self::with(config, Bounds::default()).await
    }

    pub(crate) async fn with(config: &str, bounds: Bounds) -> Self {
        let config = Config::parse(config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listeners = server::bind(&config.listen).await.unwrap();
        let address = listeners.gateway.as_ref().unwrap().tcp().unwrap();
        let admin = listeners.admin.tcp().unwrap();
        let serving = Serving::start(config).await.unwrap();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let never = std::future::pending();
            let _end = server::run(listeners, serving, bounds, never).await;
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

    /// Its metrics at present.
    pub(crate) async fn page(&self) -> Page {
        Page::read(self.admin).await
    }

    /// Waits until its metrics are so.
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

    /// Waits until nothing is under way, and nobody is connected.
    pub(crate) async fn is_at_rest(&self) {
        self.shows("nothing under way, and nobody connected", |page| {
            page.in_flight() == 0 && page.connections() == 0
        })
        .await;
    }
}
