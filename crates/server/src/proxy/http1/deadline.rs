//! How long an answer may take.

use crate::proxy::upload::UploadProgress;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// How long an answer may take. A connection has one for life: a new request only moves it into the
/// future, and its timer hears of that no sooner than it rings.
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

    /// The time runs from now on.
    pub(super) fn begin(&mut self) {
        self.since = Instant::now();
    }

    /// Ready once `time_max` has passed since it began, or since `upload` last went on. The same time is
    /// to be given for the same connection.
    pub(super) fn poll_over(
        &mut self,
        context: &mut Context<'_>,
        upload: &UploadProgress,
        time_max: Duration,
    ) -> Poll<()> {
        while self.timer.as_mut().poll(context).is_ready() {
            // A time that no clock will ever show is as good as none.
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
