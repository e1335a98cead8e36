//! The body of a response: an upstream's, or the gateway's own.

use super::active_route::ActiveRoute;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tidegate::Permit;
use tidegate_net::promise::boxed;
use tidegate_proxy::relayed_body::{RelayError, RelayedBody};
use tidegate_telemetry::gateway::UpstreamOutcome;
use tracing::debug;

/// The body of a response. It is small, because a response is moved from step to step with it.
#[derive(Debug)]
pub enum GatewayBody {
    /// An upstream's body, as it arrives.
    Theirs(Box<UpstreamBody>),
    /// The gateway's own body; `None` once it was sent, or if it is empty.
    Ours(Option<Bytes>),
}

/// The body of an upstream's response.
#[derive(Debug)]
pub struct UpstreamBody {
    body: RelayedBody,
    lane: Arc<ActiveRoute>,
    /// The index of the upstream in the lane.
    upstream: usize,
    /// The error that cut the body short, until it is reported.
    cut: Option<RelayError>,
    /// The permits of the request, which is in flight until this body has ended or is dropped.
    permit: Option<Permit>,
}

impl GatewayBody {
    /// Returns the body of an upstream of `active_route`, which holds the permits of its request.
    pub(super) fn upstream(
        body: RelayedBody,
        (lane, upstream): (&Arc<ActiveRoute>, usize),
        permit: Option<Permit>,
    ) -> Self {
        let lane = Arc::clone(lane);
        Self::Theirs(boxed(|| UpstreamBody {
            body,
            lane,
            upstream,
            cut: None,
            permit,
        }))
    }

    /// Returns a body of the gateway's own.
    pub(crate) fn own(bytes: Vec<u8>) -> Self {
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
            Self::Theirs(theirs) => {
                let UpstreamBody {
                    body,
                    lane,
                    upstream,
                    cut,
                    permit,
                } = &mut **theirs;
                if let Some(error) = cut.take() {
                    return Poll::Ready(Some(Err(error)));
                }
                match Pin::new(body).poll_frame(context) {
                    Poll::Ready(Some(Err(error))) => {
                        debug!(event = "response_cut_short", %error, upstream, route = lane.route.name, "response cut short");
                        lane.metrics
                            .count_upstream(*upstream, UpstreamOutcome::CutShort);
                        // hyper drops unsent data when a body fails, and the client would see no response
                        // where there was one. So report the error on the next poll, and let the earlier
                        // data go first.
                        *cut = Some(error);
                        context.waker().wake_by_ref();
                        Poll::Pending
                    }
                    Poll::Ready(None) => {
                        *permit = None;
                        Poll::Ready(None)
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
            Self::Theirs(theirs) => theirs.body.is_end_stream(),
            Self::Ours(bytes) => bytes.is_none(),
        }
    }

    #[inline]
    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Theirs(theirs) => theirs.body.size_hint(),
            Self::Ours(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::GatewayBody;
    use http::Response;
    use tidegate_net::paced_body::PacedBody;

    /// A response is moved a dozen times on its way from an upstream to the client: each byte of its size
    /// counts.
    #[test]
    fn a_response_in_flight_is_small() {
        let body = size_of::<GatewayBody>();
        let answer = size_of::<Response<PacedBody<GatewayBody>>>();
        assert!(body <= 40 && answer <= 176, "{body}, {answer}");
    }
}
