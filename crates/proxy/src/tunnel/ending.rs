//! The end of a tunnel: both directions ended, one side is gone, or nothing moves.

use super::pipe::{Pipe, PipeBreak};
use super::{Side, TunnelEnd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The number of idle checks within the idle timeout.
const LOOKS: u32 = 5;

/// The time for reading from a side that no longer takes data.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The detector of a tunnel's end. It has one timer for life, which checks periodically if anything moved, so
/// that moving data reads no clock.
#[derive(Debug)]
pub(crate) struct Ending {
    timer: Pin<Box<Sleep>>,
    /// The time between two checks.
    step: Duration,
    /// The progress at the last check, and the number of checks without change.
    seen: u64,
    quiet: u32,
    /// The first error. From then on the timer is for the last data.
    broke: Option<TunnelEnd>,
}

impl Ending {
    /// Creates the detector for a tunnel in which nothing may move for `idle`, or up to a fifth longer.
    pub(crate) fn new(idle: Duration) -> Self {
        let step = idle / LOOKS;
        Self {
            timer: Box::pin(sleep(step)),
            step,
            seen: 0,
            quiet: 0,
            broke: None,
        }
    }

    /// Returns ready when the tunnel of these two pipes is over. Call it after polling them.
    pub(crate) fn poll(
        &mut self,
        context: &mut Context<'_>,
        up: &Pipe,
        down: &Pipe,
    ) -> Poll<TunnelEnd> {
        let is_over = up.is_over() && down.is_over();
        if let Some(why) = self.broke {
            return if is_over {
                Poll::Ready(why)
            } else {
                self.poll_timer(context).map(|()| why)
            };
        }
        let up_broke = up.broken().map(|broke| (broke, Side::Client));
        let down_broke = down.broken().map(|broke| (broke, Side::Upstream));
        match up_broke.or(down_broke) {
            // Nothing more can come from a side that cannot be read.
            Some((PipeBreak::Reading(kind), side)) => Poll::Ready(TunnelEnd::Broke { side, kind }),
            // A side that no longer takes data may have sent the reason before.
            Some((PipeBreak::Writing(kind), from)) => {
                let side = from.other();
                self.broke = Some(TunnelEnd::Broke { side, kind });
                self.set_timer(LAST_WORDS);
                self.poll(context, up, down)
            }
            None if is_over => Poll::Ready(TunnelEnd::Closed),
            None => {
                let moved = up.moved().wrapping_add(down.moved());
                self.poll_quiet(context, moved).map(|()| TunnelEnd::Idle)
            }
        }
    }

    /// Resets the idle time once, for a wait that is not caused by the two sides.
    pub(crate) fn excuse(&mut self) {
        self.quiet = 0;
    }

    /// Sets the timer to fire once after `time`.
    pub(crate) fn set_timer(&mut self, time: Duration) {
        self.timer.as_mut().reset(Instant::now() + time);
    }

    /// Returns ready when the timer has fired.
    pub(crate) fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
        self.timer.as_mut().poll(context)
    }

    fn poll_quiet(&mut self, context: &mut Context<'_>, moved: u64) -> Poll<()> {
        while self.poll_timer(context).is_ready() {
            self.quiet = if moved == self.seen {
                self.quiet.saturating_add(1)
            } else {
                0
            };
            self.seen = moved;
            if self.quiet >= LOOKS {
                return Poll::Ready(());
            }
            self.set_timer(self.step);
        }
        Poll::Pending
    }
}
