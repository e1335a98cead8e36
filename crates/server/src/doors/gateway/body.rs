//! The body of an answer: an upstream's, or ours.

use super::lane::Lane;
use crate::proxy::relayed::{RelayError, Relayed};
use crate::telemetry::gateway::Outcome;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tracing::debug;

/// The body of an answer.
#[derive(Debug)]
pub(crate) enum GatewayBody {
    /// An upstream's, as it comes.
    Theirs {
        body: Relayed,
        lane: Arc<Lane>,
        /// Which of the lane's it is.
        upstream: usize,
        /// How it ended too early, until that is told.
        cut: Option<RelayError>,
    },
    /// Ours; `None` once it was taken, or if there is nothing to say.
    Ours(Option<Bytes>),
}

impl GatewayBody {
    /// That of an upstream of `lane`.
    pub(super) fn theirs(body: Relayed, lane: &Arc<Lane>, upstream: usize) -> Self {
        Self::Theirs {
            body,
            lane: Arc::clone(lane),
            upstream,
            cut: None,
        }
    }

    /// Ours, of these bytes.
    pub(crate) fn ours(bytes: Vec<u8>) -> Self {
        Self::Ours(Some(Bytes::from(bytes)).filter(|bytes| !bytes.is_empty()))
    }
}

impl Body for GatewayBody {
    type Data = Bytes;
    type Error = RelayError;

    #[inline]
    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RelayError>>> {
        match self.get_mut() {
            Self::Theirs {
                body,
                lane,
                upstream,
                cut,
            } => {
                if let Some(error) = cut.take() {
                    return Poll::Ready(Some(Err(error)));
                }
                match Pin::new(body).poll_frame(context) {
                    Poll::Ready(Some(Err(error))) => {
                        debug!(%error, upstream, route = lane.route.id, "an answer was cut short");
                        lane.metrics.count_upstream(*upstream, Outcome::CutShort);
                        // Whoever hears of it drops what was not sent, and the client would see no
                        // answer where there was one. So it is told next time, and what came before
                        // it goes first.
                        *cut = Some(error);
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                    frame => frame,
                }
            }
            Self::Ours(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    #[inline]
    fn is_end_stream(&self) -> bool {
        match self {
            Self::Theirs { body, .. } => body.is_end_stream(),
            Self::Ours(bytes) => bytes.is_none(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Theirs { body, .. } => body.size_hint(),
            Self::Ours(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}
