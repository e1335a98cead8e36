//! What stands between accepting a connection and speaking on it.
//!
//! Accepting, TLS, the bound on connections, and the end of a door are the same for every protocol:
//! see `accept`. What is said on a connection is the reception's: [`DoorContext`] speaks HTTP for all
//! doors that do.
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

/// Speaks with whoever has connected, from the first byte to the last.
pub(crate) trait ConnectionHandler: Send + Sync + 'static {
    /// What accepting needs to know of the door.
    fn threshold(&self) -> &DoorConfig;

    /// Serves a connection until it ends, is idle for too long, or the door closes. Runs in the
    /// connection's own task. `arrival.open` is to be dropped with the stream, and not before.
    fn serve<I: ByteStream, O: ConnectionGuard>(
        self: Arc<Self>,
        stream: I,
        arrival: AcceptedConnection<O>,
    ) -> impl Future<Output = ()> + Send + 'static;
}

/// What all connections of a door share, whatever is spoken on them.
#[derive(Debug)]
pub(crate) struct DoorConfig {
    pub(crate) name: &'static str,
    pub(crate) bounds: Bounds,
    pub(crate) metrics: DoorMetrics,
    /// The phase in which its connections say farewell.
    pub(crate) closes_in: Phase,
    /// The maximum age of its connections, if they have one.
    pub(crate) age: Option<ConnectionAge>,
}

/// What a connection begins with.
pub(crate) struct AcceptedConnection<O> {
    /// Who is at the other end; IPv4 perhaps in the clothes of IPv6.
    pub(crate) peer: IpAddr,
    /// What was agreed on, where there is TLS.
    pub(crate) secure: Option<Secure>,
    pub(crate) tasks: Arc<Tasks>,
    pub(crate) phase: PhaseWatch,
    /// Signs of life, by which the longest idle connection is found when there are too many.
    pub(crate) pulse: Arc<Pulse>,
    /// Dropped together with the socket.
    pub(crate) open: O,
}

/// What was agreed on by TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Secure {
    pub(crate) is_http2: bool,
    /// The hash of the certificate that the caller has shown, where callers are asked for one.
    pub(crate) certificate: Option<Sha256>,
}

/// Two directions of bytes: a socket, plain or through TLS.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Unpin + Send + 'static {}

impl<I: AsyncRead + AsyncWrite + Unpin + Send + 'static> ByteStream for I {}

/// What a connection holds for as long as its socket is open.
pub(crate) trait ConnectionGuard: Unpin + Send + 'static {}

impl<O: Unpin + Send + 'static> ConnectionGuard for O {}
