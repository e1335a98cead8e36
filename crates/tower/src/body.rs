//! The body of a response: the application's, or that of a refusal.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};
use tidegate::Permit;

pin_project! {
    /// The body of a response: the application's, unchanged, or that of a refusal.
    ///
    /// Its frames have the type of the application's body, which must be convertible from [`Bytes`]; those of
    /// axum and tonic are.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
        // The permits of the request, which is in flight until this body has ended or is dropped.
        permit: Option<Permit>,
    }
}

pin_project! {
    #[project = KindProj]
    #[derive(Debug)]
    enum Kind<B> {
        Theirs { #[pin] body: B },
        /// `None` once it has been taken, or if there never was anything.
        Ours { bytes: Option<Bytes> },
    }
}

// === impl ResponseBody ===

impl<B> ResponseBody<B> {
    /// Returns the application's body, which holds the permits of its request.
    pub(crate) fn application(body: B, permit: Option<Permit>) -> Self {
        Self {
            kind: Kind::Theirs { body },
            permit,
        }
    }

    /// Returns the body of a refusal.
    pub(crate) fn refusal(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self {
            kind: Kind::Ours { bytes },
            permit: None,
        }
    }
}

/// An empty body.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::refusal(Bytes::new())
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        let this = self.project();
        match this.kind.project() {
            KindProj::Theirs { body } => {
                let polled = body.poll_frame(cx);
                if let Poll::Ready(None) = polled {
                    *this.permit = None;
                }
                polled
            }
            KindProj::Ours { bytes } => {
                let frame = bytes.take().map(|bytes| Ok(Frame::data(bytes.into())));
                Poll::Ready(frame)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Theirs { body } => body.is_end_stream(),
            Kind::Ours { bytes } => bytes.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Theirs { body } => body.size_hint(),
            Kind::Ours { bytes } => {
                let len = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(len).unwrap_or(u64::MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::{BodyExt as _, Full};

    type Either = ResponseBody<Full<Bytes>>;

    async fn read(body: Either) -> Bytes {
        body.collect().await.unwrap().to_bytes()
    }

    #[tokio::test]
    async fn both_kinds_of_body_are_read_completely_and_report_their_length() {
        let text = Bytes::from_static(b"tide");
        for body in [
            Either::refusal(text.clone()),
            Either::application(Full::new(text.clone()), None),
        ] {
            assert_eq!(body.size_hint().exact(), Some(4));
            assert!(!body.is_end_stream());
            assert_eq!(read(body).await, text);
        }
    }

    #[tokio::test]
    async fn an_unread_body_has_not_ended() {
        let empty = Either::default();
        assert!(empty.is_end_stream());
        assert_eq!(empty.size_hint().exact(), Some(0));
        assert_eq!(read(empty).await, Bytes::new());
    }
}
