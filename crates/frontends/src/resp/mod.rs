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
//! | `permits` | `TG.ACQUIRE`, `TG.RENEW`, `TG.RELEASE` |
//! | `connection`, `session` | `HELLO`, `AUTH`, `CLIENT`, and the state of a connection |
//! | `introspect` | `COMMAND`, `CONFIG`, `INFO` |
//! | `transaction`, `queue` | `MULTI`, `EXEC`, and the commands between them |
//! | `batch` | commands that wait for the store, and the order of replies |
//! | `intake`, `conversation` | one connection, without its socket |
//! | `serve` | one connection with its socket |
//! | [`harness`] | one connection for tests that bring their own bytes |
//!
//! A store in memory answers without a future and, except for new keys, without an allocation. All
//! commands of one read are answered by one write.

mod batch;
mod check;
pub mod command;
mod connection;
mod conversation;
pub mod harness;
mod host;
mod inline;
mod intake;
mod introspect;
mod keys;
mod metrics;
pub mod parse;
mod permits;
mod queue;
mod quotas;
pub mod reply;
mod serve;
mod session;
#[cfg(test)]
mod tests;
mod throttle;
mod transaction;

use self::metrics::RespMetrics;
use crate::decider::Decider;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tidegate::{AnyStore, Rules, Store};
use tidegate_net::connection_handler::{
    AcceptedConnection, ByteStream, ConnectionGuard, ConnectionHandler, ListenerConfig,
};
use tidegate_net::token::ListenerToken;

/// The RESP frontend.
#[derive(Debug)]
pub struct RespFrontend<S = AnyStore> {
    threshold: ListenerConfig,
    decider: Decider<S>,
    /// The password for `AUTH`.
    token: Option<ListenerToken>,
    /// The number of the next connection.
    connections: AtomicU64,
    metrics: Arc<RespMetrics>,
}

impl<S: Store> RespFrontend<S> {
    /// Creates the frontend. Callers need `token`, if there is one.
    pub fn new(
        threshold: ListenerConfig,
        decider: Decider<S>,
        token: Option<ListenerToken>,
    ) -> Self {
        Self {
            threshold,
            decider,
            token,
            connections: AtomicU64::new(1),
            metrics: Arc::default(),
        }
    }

    /// Shows the metrics of this frontend on the page of its decider.
    #[must_use]
    pub fn registered(self) -> Self {
        let collector = Box::new(Arc::clone(&self.metrics));
        self.decider.metrics().register_collector(collector);
        self
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

impl<S: Store + 'static> ConnectionHandler for RespFrontend<S> {
    fn threshold(&self) -> &ListenerConfig {
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
