//! The only place that spawns, so that draining knows every task.
//!
//! A task that is spawned elsewhere would be cut off at shutdown, in the middle of a request. The lint
//! `disallowed_methods` therefore rejects `tokio::spawn` in all other modules of the program.
//!
//! Work is boxed before it is spawned: tokio's code of a task is some kilobytes, and would be compiled for each
//! kind of work.

use parking_lot::Mutex;
use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use tokio::task::{JoinError, JoinSet};

type BoxedTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A group of tasks that are waited for together. Dropping it aborts them.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use tidegate_net::tasks::Tasks;
///
/// let tasks = Tasks::new();
/// tasks.spawn(async { /* a connection */ });
/// assert_eq!(tasks.count(), 1);
/// tasks.finished().await;
/// assert_eq!(tasks.count(), 0);
/// # });
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Default)]
pub struct Tasks {
    /// Locked briefly to spawn and to wait; never across an await.
    set: Mutex<JoinSet<()>>,
}

impl Tasks {
    /// Creates an empty group.
    pub fn new() -> Self {
        Self::default()
    }

    /// Spawns `future` as a task of the group.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let boxed: BoxedTask = Box::pin(future);
        self.spawn_unboxed(boxed);
    }

    /// Spawns `future` as a task of the group, without a box: for a task of every request.
    pub fn spawn_unboxed(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.set.lock();
        // Remove finished tasks here, so that the set is no larger than the most that ever ran at once.
        while let Some(ended) = set.try_join_next() {
            report(ended);
        }
        set.spawn(future);
    }

    /// Waits until no task is left, including those spawned meanwhile.
    pub async fn finished(&self) {
        poll_fn(|context| {
            loop {
                match self.set.lock().poll_join_next(context) {
                    Poll::Ready(Some(ended)) => report(ended),
                    Poll::Ready(None) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }

    /// Returns the number of tasks that are left.
    pub fn count(&self) -> usize {
        self.set.lock().len()
    }

    /// Aborts all tasks.
    ///
    /// They end at their next await; [`finished`](Self::finished) waits for that.
    pub fn abort(&self) {
        self.set.lock().abort_all();
    }
}

/// Runs `work`, which takes long without waiting, on a thread where it blocks no task. Returns `None` if it
/// panicked or never ran.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let slot = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&slot);
    run_blocking(Box::new(move || {
        let done = work();
        *filled.lock() = Some(done);
    }))
    .await;
    slot.lock().take()
}

async fn run_blocking(work: Box<dyn FnOnce() + Send>) {
    let done = tokio::task::spawn_blocking(work).await;
    report(done);
}

/// Runs `work` to its end, even if the caller's future is dropped: for work that must not be left half done.
/// Returns `None` only if it panicked.
pub async fn undisturbed<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Option<T> {
    let slot = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&slot);
    run_undisturbed(Box::pin(async move {
        let done = work.await;
        *filled.lock() = Some(done);
    }))
    .await;
    slot.lock().take()
}

#[expect(
    clippy::disallowed_methods,
    reason = "all that is done so is bounded in time, and ends with the runtime at the latest"
)]
async fn run_undisturbed(work: BoxedTask) {
    let done = tokio::task::spawn(work).await;
    report(done);
}

fn report(ended: Result<(), JoinError>) {
    if let Err(error) = ended {
        report_panic(&error);
    }
}

/// Logs a panic: it affects no other task, but must not go unnoticed.
fn report_panic(error: &JoinError) {
    if error.is_panic() {
        tracing::error!(event = "task_panicked", %error, "a task panicked; please report this bug");
    }
}

impl fmt::Debug for Tasks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tasks")
            .field("count", &self.count())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::Tasks;
    use std::future::pending;
    use std::sync::Arc;
    use tokio::sync::oneshot;

    #[tokio::test]
    async fn finished_waits_for_tasks_that_tasks_spawn() {
        let tasks = Arc::new(Tasks::new());
        let (send, receive) = oneshot::channel();
        let inner = Arc::clone(&tasks);
        tasks.spawn(async move {
            inner.spawn(async move {
                send.send(()).unwrap();
            });
        });
        tasks.finished().await;
        assert_eq!(tasks.count(), 0);
        receive.await.unwrap();
    }

    #[tokio::test]
    async fn aborted_tasks_are_finished() {
        let tasks = Tasks::new();
        tasks.spawn(pending());
        tasks.abort();
        tasks.finished().await;
    }

    #[tokio::test]
    async fn a_spawned_task_finishes_though_its_handle_is_dropped() {
        let (begin, start) = oneshot::channel();
        let (send, receive) = oneshot::channel();
        let work = super::undisturbed(async move {
            start.await.unwrap();
            send.send(()).unwrap();
        });
        // Polled once, and dropped.
        tokio::select! {
            biased;
            _ = work => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
        begin.send(()).unwrap();
        receive.await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_is_contained_in_its_task() {
        let tasks = Tasks::new();
        tasks.spawn(async { panic!("as a test") });
        tasks.finished().await;
    }
}
