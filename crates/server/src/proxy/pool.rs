//! Connections to an upstream that wait for their next request.

use super::http1::Wire;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How many may wait. More are closed when their request is done.
const IDLE_MAX: usize = 512;

/// How many sweeps one may wait, which is about 50 seconds. Most servers keep theirs for longer, so that
/// it is we who close.
const SWEEPS_MAX: u64 = 5;

/// Connections that wait for their next request, the one used last in front: the fewer are in use,
/// the sooner the others grow old.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: Mutex<Vec<Idle>>,
    /// Sweeps so far: a clock that costs nothing to read.
    sweeps: AtomicU64,
}

#[derive(Debug)]
struct Idle {
    wire: Box<Wire>,
    /// The sweep after which it came.
    since: u64,
}

impl Pool {
    /// A connection that waits, if there is one. It may have been closed meanwhile, which is noticed when
    /// something is to be sent on it.
    pub(crate) fn take(&self) -> Option<Box<Wire>> {
        Some(self.idle.lock().pop()?.wire)
    }

    /// Keeps a connection for the next request.
    pub(crate) fn put(&self, wire: Box<Wire>) {
        let since = self.sweeps.load(Relaxed);
        let mut idle = self.idle.lock();
        if idle.len() < IDLE_MAX {
            idle.push(Idle { wire, since });
        }
    }

    /// Closes those that have waited for too long, or that the upstream has closed.
    pub(crate) fn sweep(&self) {
        let now = self.sweeps.fetch_add(1, Relaxed).wrapping_add(1);
        // Those that are looked at are away for a moment, and nobody waits for the lock meanwhile.
        let idle = std::mem::take(&mut *self.idle.lock());
        let mut kept: Vec<Idle> = Vec::with_capacity(idle.len());
        for mut it in idle {
            let is_young = now.wrapping_sub(it.since) <= SWEEPS_MAX;
            if is_young && it.wire.is_alive() {
                kept.push(it);
            }
        }
        let mut idle = self.idle.lock();
        // Those that came meanwhile were used last.
        kept.append(&mut idle);
        kept.truncate(IDLE_MAX);
        *idle = kept;
    }
}
