//! The service: an application behind limits.

use crate::RequestHead;
use crate::body::ResponseBody;
use crate::decide::{LayerAttempt, LayerInner, LayerVerdict};
use crate::future::ResponseFuture;
use crate::permit::offer_permit;
use http::{Request, Response};
use std::fmt;
use std::mem;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use tidegate::{MemoryStore, Store};
use tower_service::Service;

/// A service behind limits; see [`RateLimitLayer`](crate::RateLimitLayer).
///
/// An allowed request reaches the inner service once; a refused one never does. Responses and errors of the
/// inner service are passed on unchanged, apart from the rate limit headers. These are added to every
/// response to an allowed request, error responses included. They replace headers of the same names, so that
/// with nested layers the outermost wins.
///
/// The service is ready when the inner service is, because an allowed request is passed on at once. So while
/// the inner service is busy, a request that would be refused waits as well.
///
/// At limits of requests in flight (`concurrent`), a request counts until the body of its response has ended or
/// is dropped, for example because the client has gone. An application that continues after that, such as a WebSocket,
/// keeps the [`Permit`](tidegate::Permit) that it finds in the extensions of the request.
pub struct RateLimit<Svc, S = MemoryStore> {
    inner: Svc,
    shared: Arc<LayerInner<S>>,
    peer: Option<IpAddr>,
}

impl<Svc, S> RateLimit<Svc, S> {
    pub(crate) fn new(inner: Svc, shared: Arc<LayerInner<S>>) -> Self {
        Self {
            inner,
            shared,
            peer: None,
        }
    }

    /// Sets the address at the other end of the connection, for a service that serves one connection. No
    /// request then needs a [`PeerAddr`](crate::PeerAddr).
    #[must_use]
    pub fn peer(self, address: SocketAddr) -> Self {
        Self {
            peer: Some(address.ip()),
            ..self
        }
    }

    /// Returns the inner service.
    pub fn get_ref(&self) -> &Svc {
        &self.inner
    }

    /// Returns the inner service, mutably. Requests that it gets directly bypass the limits.
    pub fn get_mut(&mut self) -> &mut Svc {
        &mut self.inner
    }

    /// Returns the inner service, without limits.
    pub fn into_inner(self) -> Svc {
        self.inner
    }
}

impl<Svc, S, B, ResB> Service<Request<B>> for RateLimit<Svc, S>
where
    Svc: Service<Request<B>, Response = Response<ResB>> + Clone,
    S: Store + 'static,
{
    type Response = Response<ResponseBody<ResB>>;
    type Error = Svc::Error;
    type Future = ResponseFuture<Svc, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let head = RequestHead::of(&request);
        match self.shared.ask(head, self.peer) {
            LayerAttempt::Done(LayerVerdict::Pass(decision)) => {
                offer_permit(request.extensions_mut(), &decision);
                ResponseFuture::calling(self.inner.call(request), decision)
            }
            LayerAttempt::Done(LayerVerdict::Answer(answer)) => ResponseFuture::answered(answer),
            LayerAttempt::Pending(pending, token_refused) => {
                // The service that is ready goes with the request; its clone is not, and stays.
                let clone = self.inner.clone();
                let ready = mem::replace(&mut self.inner, clone);
                let (parts, body) = request.into_parts();
                let deciding = Arc::clone(&self.shared).wait(parts, pending, token_refused);
                ResponseFuture::deciding(Box::pin(deciding), ready, body)
            }
        }
    }
}

/// A gRPC service keeps its name, so that limits can be put before one service of a server.
#[cfg(feature = "tonic")]
impl<Svc: tonic::server::NamedService, S> tonic::server::NamedService for RateLimit<Svc, S> {
    const NAME: &'static str = Svc::NAME;
}

// By hand, because the store need not be one that can be cloned.
impl<Svc: Clone, S> Clone for RateLimit<Svc, S> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
            shared: Arc::clone(&self.shared),
            peer: self.peer,
        }
    }
}

impl<Svc: fmt::Debug, S> fmt::Debug for RateLimit<Svc, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit")
            .field("inner", &self.inner)
            .field("policy", &self.shared.policy)
            .finish_non_exhaustive()
    }
}
