//! Interim responses (1xx) to clients that speak HTTP/1.1.
//!
//! hyper cannot send them. They are written to the socket while a request is being answered and hyper has
//! nothing left to write, which is between two responses. Interim responses that could not be written before
//! the final one are dropped.

use bytes::Bytes;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// The maximum bytes of queued interim responses. A client that does not read is not sent more.
const BYTES_MAX: usize = 64 << 10;

/// A queue of interim responses.
#[derive(Debug, Default)]
pub struct InterimQueue {
    waiting: Mutex<Vec<u8>>,
    /// True if the queue is not empty: reading this is cheaper than locking.
    is_any: AtomicBool,
}

impl InterimQueue {
    pub(super) fn add(&self, head: &[u8]) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len().saturating_add(head.len()) > BYTES_MAX {
            return false;
        }
        waiting.extend_from_slice(head);
        self.is_any.store(true, Relaxed);
        true
    }

    /// Takes all queued responses, which are to be written now.
    pub(super) fn take(&self) -> Option<Bytes> {
        if !self.is_any.swap(false, Relaxed) {
            return None;
        }
        let waiting = std::mem::take(&mut *self.waiting.lock());
        Some(Bytes::from(waiting)).filter(|bytes| !bytes.is_empty())
    }

    /// Drops all queued responses: the final response comes next.
    pub(super) fn clear(&self) {
        drop(self.take());
    }
}
