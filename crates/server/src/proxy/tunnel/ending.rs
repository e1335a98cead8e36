//! When a tunnel is over: both directions ended, one of its sides is gone, or nothing moves.

use super::pipe::{Break, Pipe};
use super::{Side, TunnelEnd};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// How often quiet is looked for, before it has lasted for too long.
const LOOKS: u32 = 5;

/// How long one may still be heard who does not listen any more.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Knows when a tunnel is over. It has one timer for life, which looks now and then whether anything
/// moved, so that what moves reads no clock.
#[derive(Debug)]
pub(in crate::proxy) struct Ending {
    timer: Pin<Box<Sleep>>,
    /// From one look to the next.
    step: Duration,
    /// What had moved at the last look, and for how many looks it was the same.
    seen: u64,
    quiet: u32,
    /// What broke first; from then on the timer is for last words.
    broke: Option<TunnelEnd>,
}

impl Ending {
    /// For a tunnel in which nothing may move for `idle`, or up to a fifth longer.
    pub(in crate::proxy) fn new(idle: Duration) -> Self {
        let step = idle / LOOKS;
        Self {
            timer: Box::pin(sleep(step)),
            step,
            seen: 0,
            quiet: 0,
            broke: None,
        }
    }

    /// Ready when the tunnel of these two is over. To be asked after they were polled.
    pub(in crate::proxy) fn poll(
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
            // Of one that cannot be heard nothing is to be expected.
            Some((Break::Reading(kind), side)) => Poll::Ready(TunnelEnd::Broke { side, kind }),
            // One that takes nothing any more may have said why, before it went.
            Some((Break::Writing(kind), from)) => {
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

    /// For once it is not for them to move that they wait.
    pub(in crate::proxy) fn excuse(&mut self) {
        self.quiet = 0;
    }

    /// From now on the timer runs for `time`, once.
    pub(in crate::proxy) fn set_timer(&mut self, time: Duration) {
        self.timer.as_mut().reset(Instant::now() + time);
    }

    /// Ready when the timer is.
    pub(in crate::proxy) fn poll_timer(&mut self, context: &mut Context<'_>) -> Poll<()> {
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
