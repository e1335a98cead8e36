//! The deadline of a response.

use crate::upload::UploadProgress;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The deadline of a response. A connection has one for life: a new request only moves the due time, and the
/// timer is reset no sooner than it fires.
#[derive(Debug)]
pub(super) struct Deadline {
    timer: Pin<Box<Sleep>>,
    since: Instant,
}

impl Deadline {
    pub(super) fn new() -> Self {
        Self {
            timer: Box::pin(sleep(Duration::ZERO)),
            since: Instant::now(),
        }
    }

    /// Starts the time now.
    pub(super) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Returns ready once `time_max` has passed since the start, or since `upload` last made progress. All
    /// calls for a connection must pass the same time.
    pub(super) fn poll_over(
        &mut self,
        context: &mut Context<'_>,
        upload: &UploadProgress,
        time_max: Duration,
    ) -> Poll<()> {
        while self.timer.as_mut().poll(context).is_ready() {
            // A deadline beyond the clock's range never comes.
            let Some(mut due) = self.since.checked_add(time_max) else {
                return Poll::Pending;
            };
            let now = Instant::now();
            if due <= now {
                if !upload.goes_on() {
                    return Poll::Ready(());
                }
                self.since = now;
                due = now.checked_add(time_max).unwrap_or(now);
            }
            self.timer.as_mut().reset(due);
        }
        Poll::Pending
    }
}
