//! The body of a response from an upstream, forwarded to the client.

use super::fault::Http1Fault;
use super::http1::UpstreamHttp1;
use super::patience::IdleTimeout;
use super::pool::Pool;
use super::upstream_health::UpstreamLease;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The body of a response.
#[derive(Debug)]
pub struct RelayedBody {
    source: BodySource,
    /// The request counts as in flight until its response ends.
    _turn: UpstreamLease,
    patience: IdleTimeout,
}

/// The source of a body.
#[derive(Debug)]
pub enum BodySource {
    /// The complete body; `None` once it was taken, or if there is none.
    Whole(Option<Bytes>),
    /// A connection that is driven as the body is read, and returned to the pool at the end of the body. If
    /// dropped before that, it is closed.
    Http1(Box<UpstreamHttp1>, Arc<Pool>),
    /// A stream of a connection that drives itself.
    Http2(Incoming),
    /// The source broke off. The body must not appear complete.
    Lost,
}

/// The reason why a body is incomplete.
#[derive(Debug)]
pub enum RelayError {
    /// The upstream broke off.
    Broken(Http1Fault),
    /// The upstream sent nothing for too long.
    Silent,
}

impl BodySource {
    /// Returns the body of the response on `wire`. If it is complete already, the connection is returned to
    /// the pool.
    pub(super) fn http1(mut wire: Box<UpstreamHttp1>, pool: &Arc<Pool>) -> Self {
        match wire.whole() {
            Some(bytes) => {
                release(wire, pool);
                Self::Whole(Some(bytes).filter(|bytes| !bytes.is_empty()))
            }
            None => Self::Http1(wire, Arc::clone(pool)),
        }
    }

    fn poll_frame(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Http1Fault>>> {
        let frame = match self {
            Self::Whole(bytes) => return Poll::Ready(bytes.take().map(|it| Ok(Frame::data(it)))),
            Self::Http1(wire, _) => wire.poll_frame(context),
            Self::Lost => return Poll::Ready(Some(Err(Http1Fault::Ended))),
            Self::Http2(incoming) => {
                let frame = Pin::new(incoming).poll_frame(context);
                return frame.map_err(Http1Fault::Http2);
            }
        };
        if let Poll::Ready(Some(Err(_))) = &frame {
            *self = Self::Lost;
        } else if frame.is_ready()
            && self.is_end()
            && let Self::Http1(wire, pool) = std::mem::replace(self, Self::Whole(None))
        {
            release(wire, &pool);
        }
        frame
    }

    fn is_end(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Http1(wire, _) => wire.is_done(),
            Self::Http2(incoming) => incoming.is_end_stream(),
            Self::Lost => false,
        }
    }
}

/// Returns a connection to the pool, if it can take another request.
fn release(mut wire: Box<UpstreamHttp1>, pool: &Pool) {
    if wire.rest() {
        // Return the connection before the permit: the next request finds both.
        let place = wire.set_place(None);
        pool.put(wire);
        drop(place);
    }
}

impl RelayedBody {
    /// Creates a body from `source`. Each piece may take up to `patience`.
    pub fn new(source: BodySource, turn: UpstreamLease, patience: Duration) -> Self {
        Self {
            source,
            _turn: turn,
            patience: IdleTimeout::new(patience),
        }
    }
}

impl Body for RelayedBody {
    type Data = Bytes;
    type Error = RelayError;

    #[inline]
    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayError>>> {
        let this = &mut *self;
        match this.source.poll_frame(context) {
            Poll::Pending => this.patience.poll_lost(context).map(|()| {
                this.source = BodySource::Lost;
                Some(Err(RelayError::Silent))
            }),
            Poll::Ready(Some(Ok(frame))) => {
                this.patience.renew();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(fault))) => Poll::Ready(Some(Err(RelayError::Broken(fault)))),
            Poll::Ready(None) => Poll::Ready(None),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.source.is_end()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            BodySource::Http1(wire, _) => wire.size_hint(),
            BodySource::Http2(incoming) => incoming.size_hint(),
            BodySource::Lost => SizeHint::default(),
        }
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(fault) => write!(f, "the upstream closed the connection: {fault}"),
            Self::Silent => f.write_str("the upstream timed out"),
        }
    }
}

impl Error for RelayError {}
