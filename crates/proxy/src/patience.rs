//! An idle timeout.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// An idle timeout for data that comes in pieces. Data that is always available at once costs no timer.
pub(crate) struct IdleTimeout {
    time: Duration,
    timer: Option<Pin<Box<Sleep>>>,
    /// True if a piece came since the timer was set.
    is_stale: bool,
}

impl IdleTimeout {
    /// Creates a timeout of this length for each piece.
    pub(crate) fn new(time: Duration) -> Self {
        Self {
            time,
            timer: None,
            is_stale: false,
        }
    }

    /// Records that a piece came.
    pub(crate) fn renew(&mut self) {
        self.is_stale = true;
    }

    /// Records that nothing is available. Ready once that has lasted too long.
    pub(crate) fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let time = self.time;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(time)));
        if std::mem::take(&mut self.is_stale)
            && let Some(due) = Instant::now().checked_add(time)
        {
            timer.as_mut().reset(due);
        }
        timer.as_mut().poll(context)
    }
}

impl fmt::Debug for IdleTimeout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Patience").field(&self.time).finish()
    }
}
