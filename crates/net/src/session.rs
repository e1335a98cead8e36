//! The view that a frontend has of a request's connection.

use super::idle_clock::InterimSink;
use super::idle_clock::{ActivityGuard, Pulse, ResponseTurn};
use super::phase::{Phase, PhaseWatch};
use crate::tasks::Tasks;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::text::Sha256;

/// The state of one connection. `M` is the frontend's own state for it.
#[derive(Debug)]
pub(crate) struct ConnectionState<M = ()> {
    /// The peer's address.
    pub(super) peer: IpAddr,
    pub(super) is_secure: bool,
    /// The hash of the caller's certificate, if any.
    pub(super) certificate: Option<Sha256>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) tasks: Arc<Tasks>,
    pub(super) phase: PhaseWatch,
    /// The phase in which the listener's connections close.
    pub(super) closes_in: Phase,
    pub(super) memory: M,
}

/// One request's view of its connection. It is small, to be passed by value.
#[derive(Debug)]
pub struct RequestContext<'a, M = ()> {
    session: &'a ConnectionState<M>,
    /// The response of this request, if a connection has several in flight.
    strand: Option<&'a Arc<ResponseTurn>>,
    has_body: bool,
}

impl<'a, M> RequestContext<'a, M> {
    pub(crate) fn new(
        session: &'a ConnectionState<M>,
        strand: Option<&'a Arc<ResponseTurn>>,
        has_body: bool,
    ) -> Self {
        Self {
            session,
            strand,
            has_body,
        }
    }

    /// Returns false if the request is known to have no body. Cheaper than to ask its body, which in HTTP/2
    /// locks the connection.
    pub fn has_body(self) -> bool {
        self.has_body
    }

    /// Returns the peer's address; IPv4 is never mapped to IPv6.
    pub fn peer(self) -> IpAddr {
        self.session.peer
    }

    /// Returns true if the connection is TLS.
    pub fn is_secure(self) -> bool {
        self.session.is_secure
    }

    /// Returns the hash of the caller's certificate, which is signed by one that the listener trusts; `None`
    /// if the listener requests none.
    pub fn certificate(self) -> Option<&'a Sha256> {
        self.session.certificate.as_ref()
    }

    /// Returns the frontend's state for this connection, from its first request to its last.
    pub fn memory(self) -> &'a M {
        &self.session.memory
    }

    /// Returns the tasks with which to spawn work that outlives the response, such as a tunnel. Draining
    /// waits for it, and aborts it in the end.
    pub fn tasks(self) -> &'a Arc<Tasks> {
        &self.session.tasks
    }

    /// Marks the request as in flight until the returned guard is dropped.
    pub fn alive(self) -> ActivityGuard {
        ActivityGuard::new(&self.session.pulse, self.strand)
    }

    /// Returns a sink for interim responses before the final one; `None` in HTTP/2, where there is no way to
    /// send them.
    pub fn interims(self) -> Option<InterimSink> {
        let is_http1 = self.strand.is_none();
        is_http1.then(|| InterimSink::new(&self.session.pulse))
    }

    /// Returns the present phase of the server.
    pub fn phase(self) -> Phase {
        self.session.phase.now()
    }

    /// Returns a future that is ready once the listener closes: unbounded work should then end.
    pub fn closing(self) -> impl Future<Output = ()> + Send + use<M> {
        let mut phase = self.session.phase.clone();
        let closes_in = self.session.closes_in;
        async move { phase.reaches(closes_in).await }
    }
}

impl<M> Clone for RequestContext<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M> Copy for RequestContext<'_, M> {}
