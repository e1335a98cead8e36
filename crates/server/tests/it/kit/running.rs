//! A server that runs in this process until it is stopped or dropped.

use std::time::Duration;
use tidegate_control::running::ServerState;
use tidegate_frontends::listeners::ServedStore;
use tidegate_net::Listeners;
use tidegate_net::bounds::Bounds;
use tidegate_net::tasks::Tasks;
use tidegate_server::program::{self, ServeEnd};
use tokio::sync::oneshot;
use tokio::time::timeout;

/// The time after which draining counts as stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs.
pub(crate) struct RunningServer {
    stop: oneshot::Sender<()>,
    end: oneshot::Receiver<ServeEnd>,
    /// Ends the server when dropped.
    tasks: Tasks,
}

/// A server that is shutting down.
pub(crate) struct StoppingServer {
    end: oneshot::Receiver<ServeEnd>,
    _tasks: Tasks,
}

impl RunningServer {
    /// Starts to serve.
    pub(crate) fn start<S: ServedStore>(
        listeners: Listeners,
        serving: ServerState<S>,
        bounds: Bounds,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            let end = program::run(listeners, serving, None, bounds, stopped).await;
            ended.send(end).ok();
        });
        Self { stop, end, tasks }
    }

    /// Starts its shutdown.
    pub(crate) fn stop(self) -> StoppingServer {
        self.stop.send(()).unwrap();
        StoppingServer {
            end: self.end,
            _tasks: self.tasks,
        }
    }
}

impl StoppingServer {
    /// Waits until it has stopped.
    pub(crate) async fn ended(self) -> ServeEnd {
        let ended = timeout(PATIENCE, self.end).await;
        ended.expect("it drains in time").unwrap()
    }
}
