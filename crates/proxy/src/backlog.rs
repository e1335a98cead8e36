//! Request bodies of one HTTP/2 connection that wait to be read.
//!
//! All bodies of a connection share one flow-control window. Bodies that the gateway does not read, because
//! their upstream is busy, can use it up, and then the client may not send the others either.

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Bodies of one connection that wait to be read.
#[derive(Debug, Default)]
pub struct Backlog(Mutex<Bodies>);

#[derive(Debug, Default)]
struct Bodies {
    unread: u32,
    /// The time since which there are any.
    since: Option<Instant>,
    /// The total time for which there were any before.
    before: Duration,
}

/// One body, which waits to be read until this is set or dropped.
#[derive(Debug)]
pub struct UnreadBody {
    backlog: Arc<Backlog>,
    is_unread: bool,
}

impl Backlog {
    /// Returns the total time for which at least one body has waited.
    fn time(&self) -> Duration {
        let bodies = self.0.lock();
        let present = bodies.since.map(|since| since.elapsed());
        bodies.before.saturating_add(present.unwrap_or_default())
    }

    fn add(&self) {
        let mut bodies = self.0.lock();
        bodies.unread = bodies.unread.saturating_add(1);
        bodies.since.get_or_insert_with(Instant::now);
    }

    fn remove(&self) {
        let mut bodies = self.0.lock();
        bodies.unread = bodies.unread.saturating_sub(1);
        if bodies.unread == 0
            && let Some(since) = bodies.since.take()
        {
            bodies.before = bodies.before.saturating_add(since.elapsed());
        }
    }
}

impl UnreadBody {
    /// Adds a body to `backlog`.
    pub fn new(backlog: &Arc<Backlog>) -> Self {
        backlog.add();
        Self {
            backlog: Arc::clone(backlog),
            is_unread: true,
        }
    }

    /// Records that the body waits to be read, or that everything received of it is read.
    pub fn set(&mut self, is_unread: bool) {
        if self.is_unread == is_unread {
            return;
        }
        self.is_unread = is_unread;
        if is_unread {
            self.backlog.add();
        } else {
            self.backlog.remove();
        }
    }

    /// Returns the total time for which at least one body of the connection has waited.
    pub fn time(&self) -> Duration {
        self.backlog.time()
    }

    /// Returns true if another body of the connection waits.
    pub(super) fn has_others(&self) -> bool {
        self.backlog.0.lock().unread > u32::from(self.is_unread)
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        self.set(false);
    }
}
