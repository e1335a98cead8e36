//! Idle connections to an upstream.

use super::http1::UpstreamHttp1;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of sweeps that a connection may stay idle, about 50 seconds. Most servers keep theirs for
/// longer, so that the gateway closes first.
const SWEEPS_MAX: u64 = 5;

/// The number of connections checked while the lock is held. Each check is a system call.
const SWEPT_AT_ONCE: usize = 8;

/// Idle connections, the one used last in front: the fewer are in use, the sooner the others expire.
#[derive(Debug)]
pub struct Pool {
    idle: Mutex<Vec<IdleConnection>>,
    /// The number of sweeps so far: a clock that costs nothing to read.
    sweeps: AtomicU64,
    /// The maximum number of idle connections. Further ones are closed when their request is done.
    max: usize,
}

#[derive(Debug)]
struct IdleConnection {
    wire: Box<UpstreamHttp1>,
    /// The sweep after which it became idle.
    since: u64,
}

impl Pool {
    /// Creates an empty pool for up to `max` connections.
    pub(crate) fn new(max: u32) -> Self {
        Self {
            idle: Mutex::default(),
            sweeps: AtomicU64::default(),
            max: usize::try_from(max).unwrap_or(usize::MAX),
        }
    }

    /// Returns an idle connection, if there is one. It may have been closed meanwhile, which is noticed when
    /// a request is sent on it.
    pub(crate) fn take(&self) -> Option<Box<UpstreamHttp1>> {
        Some(self.idle.lock().pop()?.wire)
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&self, wire: Box<UpstreamHttp1>) {
        let since = self.sweeps.load(Relaxed);
        let mut idle = self.idle.lock();
        if idle.len() < self.max {
            idle.push(IdleConnection { wire, since });
        }
    }

    /// Closes the longest idle connection, if there are more than `max`.
    pub(crate) fn make_room(&self, max: usize) {
        let mut idle = self.idle.lock();
        if idle.len() > max {
            let oldest = idle.remove(0);
            drop(idle);
            drop(oldest);
        }
    }

    /// Closes connections that were idle for too long, or that the upstream has closed. Requests can use the
    /// others meanwhile: otherwise they would open unneeded connections.
    pub(crate) fn sweep(&self) {
        let now = self.sweeps.fetch_add(1, Relaxed).wrapping_add(1);
        let is_kept = |it: &mut IdleConnection| {
            let is_young = now.wrapping_sub(it.since) <= SWEEPS_MAX;
            is_young && it.wire.is_alive()
        };
        let mut at = 0;
        loop {
            let mut closed = Vec::new();
            let mut idle = self.idle.lock();
            for _ in 0..SWEPT_AT_ONCE {
                // Connections that requests take and return meanwhile are at the end.
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
