//! A server in this process.

use std::net::SocketAddr;
use tidegate::Store;
use tidegate_policy::Config;
use tidegate_policy::config::{Listen, NoEnvironment};
use tidegate_server::bounds::Bounds;
use tidegate_server::server::{self, End};
use tidegate_server::serving::Serving;
use tidegate_server::tasks::Tasks;
use tokio::sync::oneshot;

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) resp: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) grpc: Option<SocketAddr>,
    stop: oneshot::Sender<()>,
    end: oneshot::Receiver<End>,
    /// Ends the server when dropped.
    tasks: Tasks,
}

/// A server that was told to stop.
pub(crate) struct Stopping {
    end: oneshot::Receiver<End>,
    _tasks: Tasks,
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

    async fn serving<S: Store + 'static>(
        listen: &Listen,
        serving: Serving<S>,
        bounds: Bounds,
    ) -> Self {
        let listeners = server::bind(listen).await.unwrap();
        let resp = listeners.resp.as_ref().unwrap().address;
        let http = listeners.http.as_ref().unwrap().address;
        let admin = listeners.admin.address;
        let grpc = listeners.grpc.as_ref().map(|door| door.address);
        let (stop, stopped) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            let end = server::run(listeners, serving, bounds, stopped).await;
            ended.send(end).ok();
        });
        Self {
            resp,
            http,
            admin,
            grpc,
            stop,
            end,
            tasks,
        }
    }

    /// Tells it to stop.
    pub(crate) fn stop(self) -> Stopping {
        self.stop.send(()).unwrap();
        Stopping {
            end: self.end,
            _tasks: self.tasks,
        }
    }
}

impl Stopping {
    /// Waits until it has.
    pub(crate) async fn ended(self) -> End {
        self.end.await.unwrap()
    }
}
