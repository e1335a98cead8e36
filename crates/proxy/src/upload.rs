//! The body of a request to an upstream: bounded in size, idle time and minimum rate.
//!
//! A body is streamed and never collected: at most one piece is held. Its failures are the client's, so
//! they do not count against the upstream; [`UploadProgress`] separates the two cases while the
//! response is awaited.

use super::error::UploadError;
use super::hop;
use super::pace::Pace;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The body of a request to an upstream.
#[derive(Debug)]
pub struct Upload {
    /// `None` if there is no body.
    incoming: Option<Incoming>,
    /// Data that was taken and put back.
    ahead: Bytes,
    /// The number of further bytes that are allowed.
    left: u64,
    pace: Pace,
    progress: UploadProgress,
}

/// The progress of a body, for the task that waits for the response. Empty if there is no body.
#[derive(Clone, Debug, Default)]
pub struct UploadProgress(Option<Arc<UploadState>>);

/// The state of a body that is being sent.
#[derive(Debug, Default)]
struct UploadState {
    /// True if a piece came since the last query.
    has_moved: AtomicBool,
    /// True while waiting for the client.
    is_clients: AtomicBool,
    failed: OnceLock<UploadError>,
}

impl UploadProgress {
    /// Returns true if the upstream does not cause the wait: something was sent since the last call, or the
    /// next piece is still to come, for which the client has its own time limit.
    pub(crate) fn goes_on(&self) -> bool {
        self.0.as_ref().is_some_and(|course| {
            course.has_moved.swap(false, Relaxed) || course.is_clients.load(Relaxed)
        })
    }

    /// Returns the error of the body, if that is why the upstream gave up: perhaps because no more of it
    /// came.
    pub(crate) fn failure(&self) -> Option<UploadError> {
        let course = self.0.as_ref()?;
        let is_late = course
            .is_clients
            .load(Relaxed)
            .then_some(UploadError::TooSlow);
        course.failed.get().copied().or(is_late)
    }

    fn waits_for_client(&self) {
        if let Some(course) = &self.0 {
            course.is_clients.store(true, Relaxed);
        }
    }

    fn moved(&self) {
        if let Some(course) = &self.0 {
            course.has_moved.store(true, Relaxed);
            course.is_clients.store(false, Relaxed);
        }
    }

    fn failed(&self, error: UploadError) -> UploadError {
        if let Some(course) = &self.0 {
            *course.failed.get_or_init(|| error)
        } else {
            error
        }
    }
}

impl Upload {
    /// Returns an empty upload.
    pub fn none() -> Self {
        Self {
            incoming: None,
            ahead: Bytes::new(),
            left: 0,
            pace: Pace::new(Duration::MAX, None, None),
            progress: UploadProgress::default(),
        }
    }

    /// Creates an upload of up to `bytes_max` that may come as slowly as `pace` allows. Returns an error if
    /// its announced length is larger.
    ///
    /// # Errors
    ///
    /// [`UploadError::TooLarge`] if the announced length exceeds `bytes_max`. A body without a length is cut off with
    /// the same error once it has.
    pub fn new(incoming: Incoming, bytes_max: u64, pace: Pace) -> Result<Self, UploadError> {
        if incoming.is_end_stream() {
            return Ok(Self::none());
        }
        if incoming.size_hint().lower() > bytes_max {
            return Err(UploadError::TooLarge);
        }
        Ok(Self {
            incoming: Some(incoming),
            ahead: Bytes::new(),
            left: bytes_max,
            pace,
            progress: UploadProgress(Some(Arc::default())),
        })
    }

    /// Returns the progress of the body.
    pub fn progress(&self) -> UploadProgress {
        self.progress.clone()
    }

    /// Sets the protocol of the connection that carries it to the upstream.
    pub(crate) fn set_http2(&mut self, is_http2: bool) {
        self.pace.set_http2(is_http2);
    }

    /// Returns true if there is no body.
    pub fn is_none(&self) -> bool {
        self.incoming.is_none()
    }

    /// Puts data back that was taken, so that it is read again.
    pub fn put_back(&mut self, bytes: Bytes) {
        self.ahead = bytes;
    }

    /// Admits a piece if it fits.
    fn admit(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, UploadError> {
        let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
        let left = self.left.checked_sub(bytes);
        self.left = left.ok_or(UploadError::TooLarge)?;
        Ok(match frame.into_trailers() {
            Ok(mut trailers) => {
                hop::strip_trailers(&mut trailers);
                Frame::trailers(trailers)
            }
            Err(frame) => frame,
        })
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
        if !this.ahead.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut this.ahead)))));
        }
        let Poll::Ready(frame) = Pin::new(&mut *incoming).poll_frame(context) else {
            this.progress.waits_for_client();
            let lost = ready!(this.pace.poll_lost(context));
            return Poll::Ready(Some(Err(this.progress.failed(lost))));
        };
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        this.pace.came(bytes);
        if frame.is_none() || incoming.is_end_stream() {
            this.pace.ended();
        }
        this.progress.moved();
        let frame = frame.map(|frame| this.admit(frame.map_err(|_| UploadError::Broken)?));
        Poll::Ready(frame.map(|it| it.map_err(|error| this.progress.failed(error))))
    }

    fn is_end_stream(&self) -> bool {
        let incoming = self.incoming.as_ref();
        self.ahead.is_empty() && incoming.is_none_or(Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let ahead = self.ahead.len() as u64;
        let Some(incoming) = &self.incoming else {
            return SizeHint::with_exact(0);
        };
        let mut hint = incoming.size_hint();
        if ahead > 0 {
            let upper = hint.upper().map(|bytes| bytes.saturating_add(ahead));
            let lower = hint.lower().saturating_add(ahead);
            hint = SizeHint::new();
            hint.set_lower(lower);
            if let Some(upper) = upper {
                hint.set_upper(upper);
            }
        }
        hint
    }
}
