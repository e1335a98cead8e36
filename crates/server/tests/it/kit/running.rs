//! A server that runs in this process until it is stopped or dropped.

use std::time::Duration;
use tidegate::Store;
use tidegate_server::bounds::Bounds;
use tidegate_server::server::{self, Listeners, ServeEnd};
use tidegate_server::serving::Serving;
use tidegate_server::tasks::Tasks;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long draining may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(30);

/// A server that runs.
pub(crate) struct Running {
    stop: oneshot::Sender<()>,
    end: oneshot::Receiver<ServeEnd>,
    /// Ends the server when dropped.
    tasks: Tasks,
}

/// A server that was told to stop.
pub(crate) struct Stopping {
    end: oneshot::Receiver<ServeEnd>,
    _tasks: Tasks,
}

impl Running {
    /// Serves from now on.
    pub(crate) fn start<S: Store + 'static>(
        listeners: Listeners,
        serving: Serving<S>,
        bounds: Bounds,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let (ended, end) = oneshot::channel();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let stopped = async { stopped.await.unwrap_or_default() };
            let end = server::run(listeners, serving, bounds, stopped).await;
            ended.send(end).ok();
        });
        Self { stop, end, tasks }
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
    pub(crate) async fn ended(self) -> ServeEnd {
        let ended = timeout(PATIENCE, self.end).await;
        ended.expect("it drains in time").unwrap()
    }
}
