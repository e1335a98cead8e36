//! The only place that spawns: every task of a connection is known here, and ends with it.

use parking_lot::Mutex;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::task::{AbortHandle, JoinError, JoinSet};

/// The tasks of one connection. Clones share them.
#[derive(Clone)]
pub(crate) struct ConnectionTasks {
    /// `None` once closed. Locked for a moment; never across an await.
    set: Arc<Mutex<Option<JoinSet<()>>>>,
}

impl ConnectionTasks {
    /// Returns an empty set of tasks.
    pub(crate) fn new() -> Self {
        Self {
            set: Arc::new(Mutex::new(Some(JoinSet::new()))),
        }
    }

    /// Runs `future` in the background; drops it instead after [`ConnectionTasks::close`].
    pub(crate) fn spawn(
        &self,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> Option<AbortHandle> {
        // Boxed: otherwise tokio's code of a task would be compiled for each kind of future.
        self.spawn_boxed(Box::pin(future))
    }

    fn spawn_boxed(&self, future: Pin<Box<dyn Future<Output = ()> + Send>>) -> Option<AbortHandle> {
        let mut set = self.set.lock();
        let set = set.as_mut()?;
        // Those that ended make room here, so that the set is no larger than the most that ever
        // ran at once.
        while let Some(ended) = set.try_join_next() {
            report(ended);
        }
        Some(set.spawn(future))
    }

    /// Ends all tasks immediately, permanently.
    pub(crate) fn close(&self) {
        let set = self.set.lock().take();
        // Dropping the set aborts its tasks.
        drop(set);
    }

    /// Ends all tasks for good, and returns when the last is gone.
    pub(crate) async fn finish(&self) {
        let set = self.set.lock().take();
        if let Some(mut set) = set {
            set.shutdown().await;
        }
    }

    /// Returns true after [`ConnectionTasks::close`].
    pub(crate) fn is_closed(&self) -> bool {
        self.set.lock().is_none()
    }

    /// Returns the number of running tasks.
    pub(crate) fn count(&self) -> usize {
        self.set.lock().as_ref().map_or(0, JoinSet::len)
    }
}

impl fmt::Debug for ConnectionTasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("count", &self.count())
            .finish()
    }
}

/// Logs the panic of a task, which affects no other task.
fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        tracing::error!(event = "task_panicked", %error, "a task panicked; please report this bug");
    }
}

/// Runs a task that ends without help: at its deadline, or when the value that it watches is gone.
#[expect(clippy::disallowed_methods, reason = "this is the place that spawns")]
pub fn spawn_short(future: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(future));
}
