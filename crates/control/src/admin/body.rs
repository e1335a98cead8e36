//! The body of a response of the admin listener: static, complete, or a stream.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hyper::body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::fmt;
use std::io::Cursor;
use std::pin::Pin;
use std::task::{Context, Poll};
use tidegate_frontends::respond::WholeBody;
use tidegate_net::phase::{Phase, PhaseWatch};
use tokio::sync::mpsc;

/// The body of a response.
#[derive(Debug)]
pub enum AdminBody {
    /// Bytes that live as long as the program. They are sent without a copy.
    Static(&'static [u8]),
    /// A complete body, made for this response.
    Whole(WholeBody),
    /// Pieces that are sent as they come.
    Stream(PieceStream),
}

/// The pieces of a streamed body. It ends when its sender is dropped, or when the server drains: a
/// stream must not hold the shutdown up.
pub struct PieceStream {
    pieces: mpsc::Receiver<Bytes>,
    /// Completes when the server drains.
    drain: BoxFuture<'static, ()>,
    is_draining: bool,
}

impl AdminBody {
    /// Returns a complete body.
    pub(crate) fn whole(bytes: Vec<u8>) -> Self {
        Self::Whole(WholeBody::new(Cursor::new(bytes)))
    }

    /// Returns a streamed body and its sender. Up to `waiting_max` pieces wait for a slow client; then the
    /// sender waits. Sending fails once the client has disconnected or the server drains.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "no route streams yet; server-sent events will")
    )]
    pub(crate) fn stream(waiting_max: usize, mut phase: PhaseWatch) -> (mpsc::Sender<Bytes>, Self) {
        let (sender, pieces) = mpsc::channel(waiting_max);
        let stream = PieceStream {
            pieces,
            drain: Box::pin(async move { phase.reaches(Phase::Draining).await }),
            is_draining: false,
        };
        (sender, Self::Stream(stream))
    }
}

impl PieceStream {
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Poll::Ready(piece) = self.pieces.poll_recv(context) {
            return Poll::Ready(piece);
        }
        if !self.is_draining && self.drain.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.is_draining = true;
        self.pieces.close();
        // One may have come in before it was closed.
        match self.pieces.poll_recv(context) {
            Poll::Ready(piece) => Poll::Ready(piece),
            Poll::Pending => Poll::Ready(None),
        }
    }
}

impl Body for AdminBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Static(b"") => Poll::Ready(None),
            Self::Static(bytes) => {
                let bytes = Bytes::from_static(std::mem::take(bytes));
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            Self::Whole(whole) => {
                let frame = Pin::new(whole).poll_frame(context);
                // A vector becomes `Bytes` without a copy.
                let bytes = |data: Cursor<Vec<u8>>| Bytes::from(data.into_inner());
                frame.map(|frame| frame.map(|frame| frame.map(|it| it.map_data(bytes))))
            }
            Self::Stream(stream) => {
                let piece = stream.poll_piece(context);
                piece.map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Static(bytes) => bytes.is_empty(),
            Self::Whole(whole) => whole.is_end_stream(),
            Self::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Static(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Whole(whole) => whole.size_hint(),
            Self::Stream(_) => SizeHint::default(),
        }
    }
}

impl fmt::Debug for PieceStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PieceStream")
            .field("pieces", &self.pieces)
            .field("is_draining", &self.is_draining)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use http_body_util::{BodyExt, Empty};
    use hyper::body::Incoming;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use parking_lot::Mutex;
    use tidegate_net::phase;

    /// Sends a body through a connection. Returns the response that the client sees.
    #[expect(
        clippy::disallowed_methods,
        reason = "no server drains here; the tasks end with the runtime of the test"
    )]
    async fn sent(body: AdminBody) -> Response<Incoming> {
        let (client, server) = tokio::io::duplex(1 << 16);
        let body = Mutex::new(Some(body));
        tokio::spawn(async move {
            let service = service_fn(move |_: Request<Incoming>| {
                let body = body.lock().take().unwrap();
                async { Ok::<_, Infallible>(Response::new(body)) }
            });
            let http = hyper::server::conn::http1::Builder::new();
            http.serve_connection(TokioIo::new(server), service)
                .await
                .unwrap();
        });
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(client))
            .await
            .unwrap();
        tokio::spawn(connection);
        let request = Request::new(Empty::<Bytes>::new());
        sender.send_request(request).await.unwrap()
    }

    async fn next(response: &mut Response<Incoming>) -> Option<Bytes> {
        let frame = response.body_mut().frame().await?;
        Some(frame.unwrap().into_data().unwrap())
    }

    #[tokio::test]
    async fn static_and_complete_bodies_have_a_length() {
        for body in [
            AdminBody::Static(b"<html>"),
            AdminBody::whole(b"<html>".to_vec()),
        ] {
            let mut response = sent(body).await;
            assert_eq!(response.headers()["content-length"], "6");
            assert_eq!(next(&mut response).await.as_deref(), Some(&b"<html>"[..]));
            assert_eq!(next(&mut response).await, None);
        }
        let mut empty = AdminBody::Static(b"");
        assert!(empty.is_end_stream());
        assert!(empty.frame().await.is_none());
    }

    #[tokio::test]
    async fn static_bodies_are_not_copied() {
        static PAGE: [u8; 3] = *b"abc";
        let frame = AdminBody::Static(&PAGE).frame().await.unwrap().unwrap();
        assert_eq!(frame.into_data().unwrap().as_ptr(), PAGE.as_ptr());
    }

    #[tokio::test]
    async fn streams_are_delivered_piece_by_piece() {
        let (_lead, phase) = phase::channel();
        let (sender, body) = AdminBody::stream(1, phase);
        let mut response = sent(body).await;
        assert_eq!(response.headers()["transfer-encoding"], "chunked");
        for piece in ["data: 1\n\n", "data: 2\n\n"] {
            // The client has the first before the second is made.
            sender
                .send(Bytes::from_static(piece.as_bytes()))
                .await
                .unwrap();
            assert_eq!(next(&mut response).await.as_deref(), Some(piece.as_bytes()));
        }
        drop(sender);
        assert_eq!(next(&mut response).await, None);
    }

    #[tokio::test]
    async fn streams_end_cleanly_when_the_server_drains() {
        let (lead, phase) = phase::channel();
        let (sender, body) = AdminBody::stream(4, phase);
        let mut response = sent(body).await;
        sender.send(Bytes::from_static(b"one")).await.unwrap();
        assert_eq!(next(&mut response).await.as_deref(), Some(&b"one"[..]));
        lead.enter(Phase::Serving);
        sender.send(Bytes::from_static(b"two")).await.unwrap();
        lead.enter(Phase::Draining);
        // What was sent before arrives, and then the end: not an error, as of a connection that broke.
        assert_eq!(next(&mut response).await.as_deref(), Some(&b"two"[..]));
        assert_eq!(next(&mut response).await, None);
        assert!(sender.send(Bytes::from_static(b"three")).await.is_err());
    }
}
