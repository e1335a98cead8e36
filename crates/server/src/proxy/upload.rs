//! The body of a request on its way to an upstream: bounded in size, and in how long it may stand
//! still.

use super::patience::Patience;
use super::trouble::UploadError;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

/// The body of a request on its way to an upstream.
#[derive(Debug)]
pub(crate) struct Upload {
    /// Absent where there is none.
    incoming: Option<Incoming>,
    /// How many more bytes may come.
    left: u64,
    patience: Patience,
    progress: Progress,
}

/// Whether a body went on, for whoever waits for the answer to it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Option<Arc<AtomicBool>>);

impl Progress {
    /// Whether anything of it was sent since this was last asked.
    pub(crate) fn has_moved(&self) -> bool {
        let moved = self.0.as_ref();
        moved.is_some_and(|moved| moved.swap(false, Relaxed))
    }

    fn note(&self) {
        if let Some(moved) = &self.0 {
            moved.store(true, Relaxed);
        }
    }
}

impl Upload {
    /// No body.
    pub(crate) fn none() -> Self {
        Self {
            incoming: None,
            left: 0,
            patience: Patience::new(Duration::MAX),
            progress: Progress::default(),
        }
    }

    /// This body, of up to `bytes_max`, of which the next piece may take `patience` to come. An error
    /// if it says itself that it is larger.
    pub(crate) fn new(
        incoming: Incoming,
        bytes_max: u64,
        patience: Duration,
    ) -> Result<Self, UploadError> {
        if incoming.is_end_stream() {
            return Ok(Self::none());
        }
        if incoming.size_hint().lower() > bytes_max {
            return Err(UploadError::TooLarge);
        }
        Ok(Self {
            incoming: Some(incoming),
            left: bytes_max,
            patience: Patience::new(patience),
            progress: Progress(Some(Arc::default())),
        })
    }

    /// What tells whether it goes on.
    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Whether there is no body.
    pub(crate) fn is_none(&self) -> bool {
        self.incoming.is_none()
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = UploadError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, UploadError>>> {
        let this = &mut *self;
        let Some(incoming) = &mut this.incoming else {
            return Poll::Ready(None);
        };
        let Poll::Ready(frame) = Pin::new(incoming).poll_frame(context) else {
            return this
                .patience
                .poll_lost(context)
                .map(|()| Some(Err(UploadError::TooSlow)));
        };
        this.patience.renew();
        this.progress.note();
        Poll::Ready(match frame {
            None => None,
            Some(Err(_)) => Some(Err(UploadError::Broken)),
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
                match this.left.checked_sub(bytes) {
                    None => Some(Err(UploadError::TooLarge)),
                    Some(left) => {
                        this.left = left;
                        Some(Ok(frame))
                    }
                }
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.as_ref().is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let incoming = self.incoming.as_ref();
        incoming.map_or(SizeHint::with_exact(0), Body::size_hint)
    }
}
