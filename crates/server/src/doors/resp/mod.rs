//! The Redis protocol: `CL.THROTTLE`, compatible with redis-cell, and `TG.CHECK`.
//!
//! | module | what it is |
//! |---|---|
//! | [`parse`], `inline` | the parser of commands |
//! | [`reply`] | the writer of replies |
//! | `command` | the table of commands |
//! | `host` | the execution of commands |
//! | `throttle`, `quotas` | `CL.THROTTLE` |
//! | `check` | `TG.CHECK` |
//! | `keys` | `DEL`, `TTL` and others for the keys of `CL.THROTTLE` |
//! | `connection`, `session` | `HELLO`, `AUTH`, `CLIENT`, and the state of a connection |
//! | `introspect` | `COMMAND`, `CONFIG`, `INFO` |
//! | `transaction`, `queue` | `MULTI`, `EXEC`, and the commands between them |
//! | `batch` | commands that wait for the store, and the order of replies |
//! | `intake`, `conversation` | one connection, without its socket |
//! | `serve` | one connection with its socket |
//! | [`laboratory`] | one connection for tests that bring their own bytes |
//!
//! A store in memory answers without a future and, except for new keys, without an allocation. All
//! commands of one read are answered by one write.

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

/// The RESP frontend.
#[derive(Debug)]
pub(crate) struct RespDoor<S = AnyStore> {
    threshold: DoorConfig,
    decider: Decider<S>,
    /// The password for `AUTH`.
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

    /// Returns the rules to decide by: `known`, or else the current ones. `None` once the limiter is
    /// closed.
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
