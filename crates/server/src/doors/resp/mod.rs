//! The protocol of Redis: `CL.THROTTLE` as redis-cell answers it, and `TG.CHECK`.
//!
//! | module | what it is |
//! |---|---|
//! | [`parse`], `inline` | bytes in: commands |
//! | [`reply`] | bytes out: replies |
//! | `command` | the commands that there are |
//! | `host` | carries them out |
//! | `throttle`, `quotas` | `CL.THROTTLE` |
//! | `check` | `TG.CHECK` |
//! | `keys` | `DEL`, `TTL` and others of the keys of `CL.THROTTLE` |
//! | `connection`, `session` | `HELLO`, `AUTH`, `CLIENT`, and what is remembered of a connection |
//! | `introspect` | `COMMAND`, `CONFIG`, `INFO` |
//! | `transaction`, `queue` | `MULTI`, `EXEC`, and the commands between them |
//! | `batch` | answers that have to be waited for, and their places between others |
//! | `intake`, `conversation` | one connection, without its socket |
//! | `serve` | the same with it |
//! | [`laboratory`] | the same for tests that bring their own bytes |
//!
//! A store in this process answers without a future and, but for what is new, without an allocation.
//! What is read at once is answered by one write.

mod batch;
mod check;
pub(crate) mod command;
mod connection;
mod conversation;
mod host;
mod inline;
mod intake;
mod introspect;
mod keys;
pub mod laboratory;
pub mod parse;
mod queue;
mod quotas;
pub mod reply;
mod serve;
mod session;
#[cfg(test)]
mod tests;
mod throttle;
mod transaction;

use crate::decider::Decider;
use crate::server::reception::{
    AcceptedConnection, ByteStream, ConnectionGuard, ConnectionHandler, DoorConfig,
};
use crate::server::token::DoorToken;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tidegate::{AnyStore, Rules, Store};

/// The door.
#[derive(Debug)]
pub(crate) struct RespDoor<S = AnyStore> {
    threshold: DoorConfig,
    decider: Decider<S>,
    /// What `AUTH` wants.
    token: Option<DoorToken>,
    /// The number of the next connection.
    connections: AtomicU64,
}

impl<S: Store> RespDoor<S> {
    pub(crate) fn new(
        threshold: DoorConfig,
        decider: Decider<S>,
        token: Option<DoorToken>,
    ) -> Self {
        decider.metrics().resp.open();
        Self {
            threshold,
            decider,
            token,
            connections: AtomicU64::new(1),
        }
    }

    /// What is decided by: `known`, or else what there is now. `None` once nothing is decided any
    /// more.
    #[inline]
    fn rules<'a>(&self, known: &'a mut Option<Arc<Rules>>) -> Option<&'a Arc<Rules>> {
        if known.is_none() {
            *known = self.decider.rules().ok();
        }
        known.as_ref()
    }
}

impl<S: Store + 'static> ConnectionHandler for RespDoor<S> {
    fn threshold(&self) -> &DoorConfig {
        &self.threshold
    }

    fn serve<I: ByteStream, O: ConnectionGuard>(
        self: Arc<Self>,
        stream: I,
        arrival: AcceptedConnection<O>,
    ) -> impl Future<Output = ()> + Send + 'static {
        serve::serve(self, stream, arrival)
    }
}
