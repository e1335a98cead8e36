//! The interface between accepting a connection and its protocol.
//!
//! Accepting, TLS, the bound on connections, and the closing of a listener are the same for every protocol:
//! see `accept`. A [`ConnectionHandler`] speaks the protocol: [`FrontendContext`] speaks HTTP for all frontends
//! that do.
//!
//! [`FrontendContext`]: super::connection::FrontendContext

use super::idle_clock::Pulse;
use super::phase::{Phase, PhaseWatch};
use crate::bounds::Bounds;
use crate::metrics::ListenerMetrics;
use crate::tasks::Tasks;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::listen::ConnectionAge;
use tidegate_policy::text::Sha256;
use tokio::io::{AsyncRead, AsyncWrite};

/// A handler of one protocol on connections, from the first byte to the last.
pub trait ConnectionHandler: Send + Sync + 'static {
    /// Returns the listener's settings.
    fn threshold(&self) -> &ListenerConfig;

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
pub struct ListenerConfig {
    /// The name of the listener.
    pub name: &'static str,
    /// The bounds of its connections.
    pub bounds: Bounds,
    /// Its metrics.
    pub metrics: ListenerMetrics,
    /// The phase in which its connections close.
    pub closes_in: Phase,
    /// The maximum age of its connections, if they have one.
    pub age: Option<ConnectionAge>,
}

/// A new connection.
#[derive(Debug)]
pub struct AcceptedConnection<O> {
    /// The peer's address; IPv4 may be mapped to IPv6.
    pub peer: IpAddr,
    /// The result of the TLS handshake, if there was one.
    pub secure: Option<TlsHandshake>,
    /// The tasks of the listener.
    pub tasks: Arc<Tasks>,
    /// The phase of the server.
    pub phase: PhaseWatch,
    /// The activity, by which the longest idle connection is found when there are too many.
    pub pulse: Arc<Pulse>,
    /// Dropped together with the socket.
    pub open: O,
}

/// The result of a TLS handshake.
#[derive(Clone, Copy, Debug)]
pub struct TlsHandshake {
    pub(crate) is_http2: bool,
    /// The hash of the caller's certificate, if the listener requests one.
    pub(crate) certificate: Option<Sha256>,
}

/// A stream of bytes in both directions: a socket, plain or with TLS.
pub trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> ByteStream for I {}

/// A value that a connection holds for as long as its socket is open.
pub trait ConnectionGuard: Unpin + Send + 'static {}

impl<O: Unpin + Send + 'static> ConnectionGuard for O {}
