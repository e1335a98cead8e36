//! The body of an answer on its way from an upstream to the client.

use super::patience::Patience;
use super::standing::Turn;
use super::target::Target;
use super::wire::Wire;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The body of an answer. It drives the connection that it comes from, and gives it back to the pool
/// once all of it is there; dropped before that, it closes the connection.
#[derive(Debug)]
pub(crate) struct Relayed {
    incoming: Incoming,
    /// Absent for HTTP/2, whose connections drive themselves, and once it was given back.
    wire: Option<Box<Wire>>,
    target: Arc<Target>,
    /// The request is under way for as long as its answer is.
    _turn: Turn,
    patience: Patience,
}

/// Why a body did not come to its end.
#[derive(Debug)]
pub(crate) enum RelayError {
    /// The upstream broke off.
    Broken(hyper::Error),
    /// The upstream fell silent.
    Silent,
}

impl Relayed {
    /// A body that comes over `wire`, and of which the next piece may take `patience` to come.
    pub(crate) fn new(
        incoming: Incoming,
        wire: Option<Box<Wire>>,
        of: (Arc<Target>, Turn),
        patience: Duration,
    ) -> Self {
        Self {
            incoming,
            wire,
            target: of.0,
            _turn: of.1,
            patience: Patience::new(patience),
        }
    }

    /// Gives the connection back if nothing more is to come.
    pub(crate) fn release_if_done(&mut self) {
        if self.incoming.is_end_stream() {
            self.release();
        }
    }

    fn release(&mut self) {
        let Some(mut wire) = self.wire.take() else {
            return;
        };
        // Driven once more, so that it sees its own end of the message.
        if wire.rest() {
            self.target.pool.put(wire);
        }
    }

    /// The next frame, for which the connection is driven if it is not there yet.
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = Pin::new(&mut self.incoming).poll_frame(context);
        match &mut self.wire {
            Some(wire) if frame.is_pending() => {
                wire.drive(context);
                Pin::new(&mut self.incoming).poll_frame(context)
            }
            _ => frame,
        }
    }
}

impl Body for Relayed {
    type Data = Bytes;
    type Error = RelayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayError>>> {
        let this = &mut *self;
        match this.poll_next(context) {
            Poll::Pending => this.patience.poll_lost(context).map(|()| {
                this.wire = None;
                Some(Err(RelayError::Silent))
            }),
            Poll::Ready(Some(Ok(frame))) => {
                this.patience.renew();
                this.release_if_done();
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.wire = None;
                Poll::Ready(Some(Err(RelayError::Broken(error))))
            }
            Poll::Ready(None) => {
                this.release();
                Poll::Ready(None)
            }
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

impl fmt::Display for RelayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => write!(f, "the upstream broke off: {error}"),
            Self::Silent => f.write_str("the upstream fell silent"),
        }
    }
}

impl Error for RelayError {}
