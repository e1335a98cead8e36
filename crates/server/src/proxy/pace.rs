//! How slowly the body of a request may come.

use super::trouble::UploadError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The least rate of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeastRate {
    /// Bytes that must come in a second, at least 1.
    pub(crate) bytes: u64,
    /// How long a client may be waited for on top of that.
    pub(crate) grace: Duration,
    /// Whether it does not apply to a body that an HTTP/2 connection carries to the upstream.
    pub(crate) exempts_http2: bool,
}

/// Patience with a client that sends a body. Only the time counts in which the client is waited for: a
/// client need not send faster than the upstream takes what it sends. A body that is always there at
/// once costs no timer.
pub(crate) struct Pace {
    /// How long each piece may take.
    idle: Duration,
    least: Option<LeastRate>,
    /// Whether an HTTP/2 connection carries the body to the upstream.
    is_http2: bool,
    /// How much came, and how long the client was waited for until then.
    bytes: u64,
    waited: Duration,
    /// Since when the client is waited for, and for what of the two it may be lost.
    waits: Option<(Instant, UploadError)>,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Pace {
    /// Each piece may take as long as `idle`, and all of them together as long as `least` says.
    pub(crate) fn new(idle: Duration, least: Option<LeastRate>) -> Self {
        Self {
            idle,
            least,
            is_http2: false,
            bytes: 0,
            waited: Duration::ZERO,
            waits: None,
            timer: None,
        }
    }

    /// Notes the protocol of the connection that carries the body to the upstream.
    pub(crate) fn set_http2(&mut self, is_http2: bool) {
        self.is_http2 = is_http2;
    }

    /// A piece of so many bytes came.
    pub(crate) fn came(&mut self, bytes: usize) {
        if let Some((since, _)) = self.waits.take() {
            self.waited = self.waited.saturating_add(since.elapsed());
        }
        self.bytes = self.bytes.saturating_add(bytes as u64);
    }

    /// Nothing is there: ready with what is wrong once that has been so for too long.
    pub(crate) fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<UploadError> {
        let lost = match self.waits {
            Some((_, lost)) => lost,
            None => self.begin_to_wait(),
        };
        if let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(context));
            return Poll::Ready(lost);
        }
        Poll::Pending
    }

    fn begin_to_wait(&mut self) -> UploadError {
        let now = Instant::now();
        let (time, lost) = match self.left() {
            Some(left) if left < self.idle => (left, UploadError::TooLittle),
            _ => (self.idle, UploadError::TooSlow),
        };
        self.waits = Some((now, lost));
        match (&mut self.timer, now.checked_add(time)) {
            (Some(timer), Some(due)) => timer.as_mut().reset(due),
            (timer, _) => *timer = Some(Box::pin(sleep(time))),
        }
        lost
    }

    /// How long the client may still be waited for by the least rate.
    fn left(&self) -> Option<Duration> {
        let is_http2 = self.is_http2;
        let least = self.least.filter(|it| !(it.exempts_http2 && is_http2))?;
        let micros = self.bytes.saturating_mul(1_000_000) / least.bytes.max(1);
        let earned = least.grace.saturating_add(Duration::from_micros(micros));
        Some(earned.saturating_sub(self.waited))
    }
}

impl fmt::Debug for Pace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pace")
            .field("idle", &self.idle)
            .field("least", &self.least)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::time::{advance, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    fn pace() -> Pace {
        let least = LeastRate {
            bytes: 100,
            grace: 5 * SECOND,
            exempts_http2: false,
        };
        Pace::new(60 * SECOND, Some(least))
    }

    /// Waits for a piece of so many bytes for so long, unless patience ends before.
    async fn wait(pace: &mut Pace, time: Duration, bytes: usize) -> Result<(), UploadError> {
        let lost = timeout(time, poll_fn(|context| pace.poll_lost(context))).await;
        match lost {
            Ok(lost) => Err(lost),
            Err(_) => {
                pace.came(bytes);
                Ok(())
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_trickles_is_lost_although_it_is_never_silent() {
        let mut pace = pace();
        for _ in 0..5 {
            assert_eq!(wait(&mut pace, SECOND, 1).await, Ok(()));
        }
        assert_eq!(
            wait(&mut pace, SECOND, 1).await,
            Err(UploadError::TooLittle)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_keeps_the_rate_is_never_lost() {
        let mut pace = pace();
        for _ in 0..1_000 {
            assert_eq!(wait(&mut pace, SECOND, 100).await, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_client_sent_early_it_may_take_later() {
        let mut pace = pace();
        pace.came(2_000);
        assert_eq!(wait(&mut pace, 24 * SECOND, 0).await, Ok(()));
        assert_eq!(
            wait(&mut pace, 2 * SECOND, 0).await,
            Err(UploadError::TooLittle)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_does_not_read_is_not_held_against_the_client() {
        let mut pace = pace();
        for _ in 0..100 {
            pace.came(1);
            advance(10 * SECOND).await;
        }
        assert_eq!(wait(&mut pace, 4 * SECOND, 1).await, Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_least_rate_only_silence_counts() {
        let mut pace = Pace::new(60 * SECOND, None);
        for _ in 0..100 {
            assert_eq!(wait(&mut pace, 59 * SECOND, 1).await, Ok(()));
        }
        assert_eq!(
            wait(&mut pace, 61 * SECOND, 1).await,
            Err(UploadError::TooSlow)
        );
    }
}
