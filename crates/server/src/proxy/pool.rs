//! Connections to an upstream that wait for their next request.

use super::http1::UpstreamHttp1;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many sweeps one may wait, which is about 50 seconds. Most servers keep theirs for longer, so that
/// it is we who close.
const SWEEPS_MAX: u64 = 5;

/// How many are looked at while the lock is held. To look is a system call each.
const SWEPT_AT_ONCE: usize = 8;

/// Connections that wait for their next request, the one used last in front: the fewer are in use,
/// the sooner the others grow old.
#[derive(Debug)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    /// Sweeps so far: a clock that costs nothing to read.
    sweeps: AtomicU64,
    /// How many may wait. More are closed when their request is done.
    max: usize,
}

#[derive(Debug)]
struct Idle {
    wire: Box<UpstreamHttp1>,
    /// The sweep after which it came.
    since: u64,
}

impl Pool {
    /// An empty one, for up to `max` connections.
    pub(crate) fn new(max: u32) -> Self {
        Self {
            idle: Mutex::default(),
            sweeps: AtomicU64::default(),
            max: usize::try_from(max).unwrap_or(usize::MAX),
        }
    }

    /// A connection that waits, if there is one. It may have been closed meanwhile, which is noticed when
    /// something is to be sent on it.
    pub(crate) fn take(&self) -> Option<Box<UpstreamHttp1>> {
        Some(self.idle.lock().pop()?.wire)
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&self, wire: Box<UpstreamHttp1>) {
        let since = self.sweeps.load(Relaxed);
        let mut idle = self.idle.lock();
        if idle.len() < self.max {
            idle.push(Idle { wire, since });
        }
    }

    /// Closes the one that has waited longest, if more than `max` wait.
    pub(crate) fn make_room(&self, max: usize) {
        let mut idle = self.idle.lock();
        if idle.len() > max {
            let oldest = idle.remove(0);
            drop(idle);
            drop(oldest);
        }
    }

    /// Closes those that have waited for too long, or that the upstream has closed. Requests find the
    /// others meanwhile: without them they would open connections that nobody needs.
    pub(crate) fn sweep(&self) {
        let now = self.sweeps.fetch_add(1, Relaxed).wrapping_add(1);
        let is_kept = |it: &mut Idle| {
            let is_young = now.wrapping_sub(it.since) <= SWEEPS_MAX;
            is_young && it.wire.is_alive()
        };
        let mut at = 0;
        loop {
            let mut closed = Vec::new();
            let mut idle = self.idle.lock();
            for _ in 0..SWEPT_AT_ONCE {
                // Those that requests take and give back meanwhile are at the end.
                let Some(it) = idle.get_mut(at) else {
                    return;
                };
                if is_kept(it) {
                    at = at.saturating_add(1);
                } else {
                    closed.push(idle.remove(at));
                }
            }
            drop(idle);
            drop(closed);
        }
    }
}
