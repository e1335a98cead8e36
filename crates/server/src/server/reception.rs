//! The interface between accepting a connection and its protocol.
//!
//! Accepting, TLS, the bound on connections, and the closing of a listener are the same for every protocol:
//! see `accept`. A [`ConnectionHandler`] speaks the protocol: [`DoorContext`] speaks HTTP for all frontends
//! that do.
//!
//! [`DoorContext`]: super::connection::DoorContext

use super::phase::{Phase, PhaseWatch};
use super::pulse::Pulse;
use crate::bounds::Bounds;
use crate::tasks::Tasks;
use crate::telemetry::metrics::DoorMetrics;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::admin::Sha256;
use tidegate_policy::config::ConnectionAge;
use tokio::io::{AsyncRead, AsyncWrite};

/// A handler of one protocol on connections, from the first byte to the last.
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// Returns the listener's settings.
    fn threshold(&self) -> &DoorConfig;

    /// Serves a connection until it ends, is idle for too long, or the listener closes. Runs in the
    /// connection's own task. `arrival.open` must be dropped with the stream, and not before.
    fn serve<I: ByteStream, O: ConnectionGuard>(
        self: Arc<Self>,
        stream: I,
        arrival: AcceptedConnection<O>,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// The settings that all connections of a listener share, for every protocol.
#[derive(Debug)]
pub(crate) struct DoorConfig {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) metrics: DoorMetrics,
    /// The phase in which its connections close.
    pub(crate) closes_in: Phase,
    /// The maximum age of its connections, if they have one.
    pub(crate) age: Option<ConnectionAge>,
}

/// A new connection.
pub(crate) struct AcceptedConnection<O> {
    /// The peer's address; IPv4 may be mapped to IPv6.
    pub(crate) peer: IpAddr,
    /// The result of the TLS handshake, if there was one.
    pub(crate) secure: Option<Secure>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) phase: PhaseWatch,
    /// The activity, by which the longest idle connection is found when there are too many.
    pub(crate) pulse: Arc<Pulse>,
    /// Dropped together with the socket.
    pub(crate) open: O,
}

/// The result of a TLS handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secure {
    pub(crate) is_http2: bool,
    /// The hash of the caller's certificate, if the listener requests one.
    pub(crate) certificate: Option<Sha256>,
}

/// A stream of bytes in both directions: a socket, plain or with TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> ByteStream for I {}

/// A value that a connection holds for as long as its socket is open.
pub(crate) trait ConnectionGuard: Unpin + Send + 'static {}

impl<O: Unpin + Send + 'static> ConnectionGuard for O {}
