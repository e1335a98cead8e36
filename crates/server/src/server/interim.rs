//! Interim answers (1xx) to clients that speak HTTP/1.1.
//!
//! hyper cannot send them. They are written to the socket while a request is being answered and hyper
//! has nothing left to write, which is between two answers. What could not be written before the answer
//! is there is dropped.

use super::pulse::Pulse;
use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Bytes of interim answers that may wait. A client that does not read is not sent more.
const BYTES_MAX: usize = 64 << 10;

/// Interim answers that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Interims {
    waiting: Mutex<Vec<u8>>,
    /// Whether any waits: to look at this is cheaper than to lock.
    is_any: AtomicBool,
}

/// Sends interim answers to the client of one request.
#[derive(Clone, Debug)]
pub(crate) struct InterimSink(Arc<Pulse>);

impl Interims {
    fn add(&self, head: &[u8]) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len().saturating_add(head.len()) > BYTES_MAX {
            return false;
        }
        waiting.extend_from_slice(head);
        self.is_any.store(true, Relaxed);
        true
    }

    /// All that wait, which are to be written now.
    pub(super) fn take(&self) -> Option<Bytes> {
        if !self.is_any.swap(false, Relaxed) {
            return None;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        Some(Bytes::from(waiting)).filter(|bytes| !bytes.is_empty())
    }

    /// Drops all that wait: the answer itself comes next.
    pub(super) fn clear(&self) {
        drop(self.take());
    }
}

impl InterimSink {
    pub(super) fn new(pulse: &Arc<Pulse>) -> Self {
        Self(Arc::clone(pulse))
    }

    /// Sends a whole head. Returns whether it is on its way, which takes a turn of the connection.
    pub(crate) fn send(&self, head: &[u8]) -> bool {
        self.0.interims().add(head)
    }
}
