//! A request's body, bounded in size and time.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;
use tokio::time::timeout;

/// The reason why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    /// The body is larger than allowed.
    TooLarge,
    /// The body did not arrive in time.
    TooSlow,
    /// The client disconnected, or sent invalid HTTP.
    Broken,
}

/// Reads a body of up to `bytes_max` within `time_max`. A body that arrives in one piece is not copied.
///
/// `time_max` bounds the whole body, not the gap between two parts, so that a slow sender cannot hold a
/// connection by single bytes.
///
/// # Errors
///
/// [`BodyError::TooLarge`] at once if the declared length exceeds `bytes_max`, otherwise as soon as the bytes
/// received do.
pub async fn read(
    mut body: Incoming,
    bytes_max: usize,
    time_max: Duration,
) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(BodyError::TooLarge);
    }
    let first = match at_once(&mut body).await {
        Some(Some(frame)) => data(frame)?,
        Some(None) | None => Bytes::new(),
    };
    if body.is_end_stream() {
        return Ok(first);
    }
    // Boxed: this future is large and seldom needed.
    let rest = Box::pin(timeout(time_max, gather(first, body, bytes_max)));
    rest.await.unwrap_or(Err(BodyError::TooSlow))
}

/// Returns the next frame if it is already here, which saves a timer. It nearly always is: hyper reads
/// ahead.
async fn at_once(body: &mut Incoming) -> Option<Option<Result<Frame<Bytes>, hyper::Error>>> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *body).poll_frame(context) {
            Poll::Ready(frame) => Some(frame),
            Poll::Pending => None,
        })
    })
    .await
}

/// Reads the rest of a body that begins with `first`, and returns the whole.
async fn gather(first: Bytes, mut body: Incoming, bytes_max: usize) -> Result<Bytes, BodyError> {
    let mut whole = BytesMut::from(first);
    while let Some(frame) = body.frame().await {
        let next = data(frame)?;
        if whole.len().saturating_add(next.len()) > bytes_max {
            return Err(BodyError::TooLarge);
        }
        whole.extend_from_slice(&next);
    }
    Ok(whole.freeze())
}

/// Returns the data of a frame. Trailers have none.
fn data(frame: Result<Frame<Bytes>, hyper::Error>) -> Result<Bytes, BodyError> {
    let frame = frame.map_err(|_| BodyError::Broken)?;
    Ok(frame.into_data().unwrap_or_default())
}
