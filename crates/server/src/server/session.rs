//! What a door may know of the connection that a request came on.

use super::interim::InterimSink;
use super::phase::{Phase, PhaseWatch};
use super::pulse::{Alive, Pulse, Strand};
use crate::tasks::Tasks;
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use tidegate_policy::admin::Sha256;

/// What one connection knows of itself. `M` is what the door remembers of it.
#[derive(Debug)]
pub(crate) struct ConnectionState<M = ()> {
    /// Who is at the other end.
    pub(super) peer: IpAddr,
    pub(super) is_secure: bool,
    /// The hash of the certificate that the caller has shown, if any.
    pub(super) certificate: Option<Sha256>,
    pub(super) pulse: Arc<Pulse>,
    pub(super) tasks: Arc<Tasks>,
    pub(super) phase: PhaseWatch,
    /// The phase in which the door's connections say farewell.
    pub(super) closes_in: Phase,
    pub(super) memory: M,
}

/// One request, as far as its connection goes. Two pointers, to be handed on by value.
#[derive(Debug)]
pub(crate) struct RequestContext<'a, M = ()> {
    session: &'a ConnectionState<M>,
    /// Where a connection has several answers under way: this one.
    strand: Option<&'a Arc<Strand>>,
}

impl<'a, M> RequestContext<'a, M> {
    pub(super) fn new(session: &'a ConnectionState<M>, strand: Option<&'a Arc<Strand>>) -> Self {
        Self { session, strand }
    }

    /// Who is at the other end; IPv4 always in its own clothes.
    pub(crate) fn peer(self) -> IpAddr {
        self.session.peer
    }

    /// Whether the connection is TLS.
    pub(crate) fn is_secure(self) -> bool {
        self.session.is_secure
    }

    /// The hash of the certificate that the caller has shown, which one of those signed that the door
    /// believes; none where it asks for none.
    pub(crate) fn certificate(self) -> Option<&'a Sha256> {
        self.session.certificate.as_ref()
    }

    /// What the door remembers of this connection, from its first request to its last.
    pub(crate) fn memory(self) -> &'a M {
        &self.session.memory
    }

    /// With which to spawn what outlives the answer, such as a tunnel. Draining waits for it, and cuts
    /// it in the end.
    pub(crate) fn tasks(self) -> &'a Arc<Tasks> {
        &self.session.tasks
    }

    /// Says that the request is under way, until it is dropped.
    pub(crate) fn alive(self) -> Alive {
        Alive::new(&self.session.pulse, self.strand)
    }

    /// With which to send interim answers before the answer. In HTTP/2 there is no way to.
    pub(crate) fn interims(self) -> Option<InterimSink> {
        let is_http1 = self.strand.is_none();
        is_http1.then(|| InterimSink::new(&self.session.pulse))
    }

    /// Where the server is in its life.
    pub(crate) fn phase(self) -> Phase {
        self.session.phase.now()
    }

    /// Is ready once the door closes: what could go on for ever should come to its end.
    pub(crate) fn closing(self) -> impl Future<Output = ()> + Send + use<M> {
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
