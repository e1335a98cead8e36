//! Permits for connections to an upstream: a bound of requests that use one at a time, and of requests that
//! wait.
//!
//! A client with one HTTP/2 connection can have more than a hundred requests in flight. Without a bound, each
//! of them would open an HTTP/1 connection to the upstream.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tidegate_policy::route::Connections;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The permit to use a connection, released on drop.
pub(crate) type UpstreamPermit = OwnedSemaphorePermit;

/// The permits of one upstream. Waiting requests get theirs in order of arrival.
#[derive(Debug)]
pub(crate) struct UpstreamPermits {
    free: Arc<Semaphore>,
    waiting: Mutex<u32>,
    max_waiting: u32,
}

/// A waiting request, counted until dropped.
struct UpstreamWaiter<'a>(&'a Mutex<u32>);

impl UpstreamPermits {
    /// Creates as many permits as `bounds` allow, all free.
    pub(crate) fn new(bounds: Connections) -> Self {
        let max = usize::try_from(bounds.max).unwrap_or(usize::MAX);
        Self {
            free: Arc::new(Semaphore::new(max.min(Semaphore::MAX_PERMITS))),
            waiting: Mutex::new(0),
            max_waiting: bounds.max_waiting,
        }
    }

    /// Takes a permit, if one is free and no other request waits for it.
    pub(crate) fn take(&self) -> Option<UpstreamPermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Waits for a permit. Returns `None` if too many requests wait already, or none became free in time.
    pub(crate) async fn wait(&self, time_max: Duration) -> Option<UpstreamPermit> {
        let _waiting = self.line_up()?;
        let place = Arc::clone(&self.free).acquire_owned();
        timeout(time_max, place).await.ok()?.ok()
    }

    /// Returns the number of free permits.
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }

    fn line_up(&self) -> Option<UpstreamWaiter<'_>> {
        let mut waiting = self.waiting.lock();
        if *waiting >= self.max_waiting {
            return None;
        }
        *waiting = waiting.saturating_add(1);
        Some(UpstreamWaiter(&self.waiting))
    }
}

impl Drop for UpstreamWaiter<'_> {
    fn drop(&mut self) {
        let mut waiting = self.0.lock();
        *waiting = waiting.saturating_sub(1);
    }
}
