//! The body of an answer: the application's, or ours.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use std::pin::Pin;
use std::task::{Context, Poll};

pin_project! {
    /// The body of an answer: the application's as it is, or that of a refusal.
    ///
    /// Its frames are those of the application's body, so that whoever takes that one takes this one
    /// as well, if a frame can be made of [`Bytes`]; axum's and tonic's are made of nothing else.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
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
    /// The application's.
    pub(crate) fn theirs(body: B) -> Self {
        Self {
            kind: Kind::Theirs { body },
        }
    }

    /// Ours.
    pub(crate) fn ours(bytes: Bytes) -> Self {
        let bytes = Some(bytes).filter(|bytes| !bytes.is_empty());
        Self {
            kind: Kind::Ours { bytes },
        }
    }
}

/// Nothing: a body of ours that is empty.
impl<B> Default for ResponseBody<B> {
    fn default() -> Self {
        Self::ours(Bytes::new())
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
        match self.project().kind.project() {
            KindProj::Theirs { body } => body.poll_frame(cx),
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
    async fn both_kinds_are_read_to_their_end_and_say_how_long_they_are() {
        let text = Bytes::from_static(b"tide");
        for body in [
            Either::ours(text.clone()),
            Either::theirs(Full::new(text.clone())),
        ] {
            assert_eq!(body.size_hint().exact(), Some(4));
            assert!(!body.is_end_stream());
            assert_eq!(read(body).await, text);
        }
    }

    #[tokio::test]
    async fn nothing_is_over_before_it_is_read() {
        let empty = Either::default();
        assert!(empty.is_end_stream());
        assert_eq!(empty.size_hint().exact(), Some(0));
        assert_eq!(read(empty).await, Bytes::new());
    }
}
