//! A body that reports if it waits for its source or for the client.

use super::idle_clock::ActivityGuard;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The body of a response that comes in pieces. While it lives its connection is not idle. A client that
    /// does not read a piece is cut off, regardless of the time that the source takes.
    #[derive(Debug)]
    pub struct PacedBody<B> {
        #[pin]
        body: B,
        alive: Option<ActivityGuard>,
    }
}

impl<B> PacedBody<B> {
    /// Creates a body that keeps `alive` until it ends.
    pub fn new(body: B, alive: Option<ActivityGuard>) -> Self {
        Self { body, alive }
    }
}

impl<B: Body> Body for PacedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        if let Some(alive) = this.alive {
            alive.asked();
        }
        let poll = this.body.poll_frame(context);
        if let (Poll::Ready(Some(Ok(_))), Some(alive)) = (&poll, this.alive) {
            alive.gave();
        }
        poll
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
