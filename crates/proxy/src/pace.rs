//! The minimum rate of a request body.
//!
//! Two bounds protect connections and upstreams from clients that send slowly. `idle` bounds each gap, and the
//! minimum rate bounds the sum of all gaps, so that a client cannot hold a connection with a byte now and then.

use super::backlog::UnreadBody;
use super::error::UploadError;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep};

/// The minimum rate of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastRate {
    /// The minimum bytes per second, at least 1.
    pub bytes: u64,
    /// The waiting time that a client has on top of that.
    pub grace: Duration,
    /// True if the rate does not apply to a body that an HTTP/2 connection carries to the upstream.
    pub exempts_http2: bool,
}

/// The time until the minimum rate is checked again while it cannot apply.
const PAUSE: Duration = Duration::from_secs(1);

/// The time limits for a client that sends a body. Only the time spent waiting for the client counts: it need
/// not send faster than the upstream reads. For the minimum rate, time does not count in which other bodies
/// of the connection wait to be read, because the client may then be unable to send. A body that is always
/// available at once costs no timer.
pub struct Pace {
    /// The maximum time for each piece.
    idle: Duration,
    least: Option<LeastRate>,
    /// True if an HTTP/2 connection carries the body to the upstream.
    is_http2: bool,
    /// The bytes received, and the time spent waiting for them.
    bytes: u64,
    waited: Duration,
    waits: Option<PieceWait>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The body's entry in the backlog of an HTTP/2 connection.
    unread: Option<UnreadBody>,
}

/// A wait for the next piece.
#[derive(Clone, Copy, Debug)]
struct PieceWait {
    /// The start of the wait.
    since: Instant,
    /// The time up to which it is charged, and the time of the backlog then.
    charged: Instant,
    backlog: Duration,
    /// The bound that the client exceeds when the timer fires.
    lost: UploadError,
}

impl Pace {
    /// Creates the time limits: each piece may take up to `idle`, and all pieces together as long as `least`
    /// allows. `unread` is for bodies on HTTP/2 connections.
    pub fn new(idle: Duration, least: Option<LeastRate>, unread: Option<UnreadBody>) -> Self {
        Self {
            idle,
            least,
            is_http2: false,
            bytes: 0,
            waited: Duration::ZERO,
            waits: None,
            timer: None,
            unread,
        }
    }

    /// Sets the protocol of the connection that carries the body to the upstream.
    pub(crate) fn set_http2(&mut self, is_http2: bool) {
        self.is_http2 = is_http2;
    }

    /// Records a piece of this many bytes.
    pub fn came(&mut self, bytes: usize) {
        self.charge();
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if let Some(unread) = &mut self.unread {
            unread.set(true);
        }
    }

    /// Records the end of the body.
    pub fn ended(&mut self) {
        self.unread = None;
    }

    /// Records that nothing is available. Ready with an error once that has lasted too long.
    pub(crate) fn poll_lost(&mut self, context: &mut Context<'_>) -> Poll<UploadError> {
        if let Some(unread) = &mut self.unread {
            unread.set(false);
        }
        let mut wait = match self.waits {
            Some(wait) => wait,
            None => self.wait(Instant::now()),
        };
        while let Some(timer) = &mut self.timer {
            ready!(timer.as_mut().poll(context));
            if wait.lost != UploadError::TooLittle || !self.charge() {
                return Poll::Ready(wait.lost);
            }
            wait = self.wait(wait.since);
        }
        Poll::Pending
    }

    /// Sets the timer for a wait that began at `since`.
    fn wait(&mut self, since: Instant) -> PieceWait {
        let now = Instant::now();
        let idle = self.idle.saturating_sub(now.duration_since(since));
        let (time, lost) = match self.left() {
            Some(left) if left < idle => (left, UploadError::TooLittle),
            _ => (idle, UploadError::TooSlow),
        };
        // Nothing is charged meanwhile, so the timer must not fire repeatedly.
        let is_blocked = self.unread.as_ref().is_some_and(UnreadBody::has_others);
        let time = if is_blocked {
            time.max(PAUSE.min(idle))
        } else {
            time
        };
        let wait = PieceWait {
            since,
            charged: now,
            backlog: self.backlog(),
            lost,
        };
        self.waits = Some(wait);
        match (&mut self.timer, now.checked_add(time)) {
            (Some(timer), Some(due)) => timer.as_mut().reset(due),
            (timer, _) => *timer = Some(Box::pin(sleep(time))),
        }
        wait
    }

    /// Charges the present wait, if there is one, without the time of the backlog. Returns true if there was
    /// such time.
    fn charge(&mut self) -> bool {
        let Some(wait) = self.waits.take() else {
            return false;
        };
        let blocked = self.backlog().saturating_sub(wait.backlog);
        let charged = wait.charged.elapsed().saturating_sub(blocked);
        self.waited = self.waited.saturating_add(charged);
        !blocked.is_zero()
    }

    /// Returns the total time for which bodies of the connection have waited to be read.
    fn backlog(&self) -> Duration {
        self.unread
            .as_ref()
            .map(UnreadBody::time)
            .unwrap_or_default()
    }

    /// Returns the waiting time that the minimum rate still allows the client.
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
    use super::super::backlog::Backlog;
    use super::*;
    use std::future::poll_fn;
    use std::sync::Arc;
    use tokio::time::{advance, timeout};

    const SECOND: Duration = Duration::from_secs(1);

    fn pace() -> Pace {
        pace_on(None)
    }

    fn pace_on(unread: Option<UnreadBody>) -> Pace {
        let least = LeastRate {
            bytes: 100,
            grace: 5 * SECOND,
            exempts_http2: false,
        };
        Pace::new(60 * SECOND, Some(least), unread)
    }

    /// Waits for a piece of this many bytes for this long, unless a time limit ends the wait before.
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
    async fn a_client_below_the_minimum_rate_is_dropped() {
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
    async fn a_client_at_the_minimum_rate_is_never_dropped() {
        let mut pace = pace();
        for _ in 0..1_000 {
            assert_eq!(wait(&mut pace, SECOND, 100).await, Ok(()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_sent_early_count_towards_the_rate_later() {
        let mut pace = pace();
        pace.came(2_000);
        assert_eq!(wait(&mut pace, 24 * SECOND, 0).await, Ok(()));
        assert_eq!(
            wait(&mut pace, 2 * SECOND, 0).await,
            Err(UploadError::TooLittle)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_upstream_does_not_count_against_the_client() {
        let mut pace = pace();
        for _ in 0..100 {
            pace.came(1);
            advance(10 * SECOND).await;
        }
        assert_eq!(wait(&mut pace, 4 * SECOND, 1).await, Ok(()));
    }

    /// Other bodies can use up the window of an HTTP/2 connection: then the client cannot send.
    #[tokio::test(start_paused = true)]
    async fn unread_bodies_do_not_count_against_other_bodies() {
        let backlog = Arc::<Backlog>::default();
        let mut pace = pace_on(Some(UnreadBody::new(&backlog)));
        let other = UnreadBody::new(&backlog);
        assert_eq!(wait(&mut pace, 50 * SECOND, 1).await, Ok(()));
        assert_eq!(wait(&mut pace, 50 * SECOND, 1).await, Ok(()));
        drop(other);
        assert_eq!(wait(&mut pace, 4 * SECOND, 1).await, Ok(()));
        assert_eq!(
            wait(&mut pace, 2 * SECOND, 1).await,
            Err(UploadError::TooLittle)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn only_time_without_other_waiting_bodies_counts() {
        let backlog = Arc::<Backlog>::default();
        let mut pace = pace_on(Some(UnreadBody::new(&backlog)));
        for _ in 0..4 {
            let turns = async {
                advance(SECOND).await;
                let other = UnreadBody::new(&backlog);
                advance(9 * SECOND).await;
                drop(other);
            };
            let (waited, ()) = tokio::join!(wait(&mut pace, 10 * SECOND, 0), turns);
            assert_eq!(waited, Ok(()));
        }
        assert_eq!(
            wait(&mut pace, 2 * SECOND, 0).await,
            Err(UploadError::TooLittle)
        );
    }

    /// Several slow bodies on one connection do not excuse each other.
    #[tokio::test(start_paused = true)]
    async fn bodies_that_trickle_do_not_excuse_each_other() {
        let backlog = Arc::<Backlog>::default();
        let [mut one, mut two] = [0; 2].map(|_| pace_on(Some(UnreadBody::new(&backlog))));
        let mut seconds = 0;
        loop {
            let both = poll_fn(|context| match one.poll_lost(context) {
                Poll::Ready(lost) => Poll::Ready(lost),
                Poll::Pending => two.poll_lost(context),
            });
            if let Ok(lost) = timeout(SECOND, both).await {
                break assert_eq!(lost, UploadError::TooLittle);
            }
            one.came(1);
            two.came(1);
            seconds += 1;
            assert!(seconds < 7, "neither is lost");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_dropped_although_another_body_waits() {
        let backlog = Arc::<Backlog>::default();
        let mut pace = pace_on(Some(UnreadBody::new(&backlog)));
        let _other = UnreadBody::new(&backlog);
        let lost = wait(&mut pace, 61 * SECOND, 0).await;
        assert_eq!(lost, Err(UploadError::TooSlow));
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_minimum_rate_only_silence_counts() {
        let mut pace = Pace::new(60 * SECOND, None, None);
        for _ in 0..100 {
            assert_eq!(wait(&mut pace, 59 * SECOND, 1).await, Ok(()));
        }
        assert_eq!(
            wait(&mut pace, 61 * SECOND, 1).await,
            Err(UploadError::TooSlow)
        );
    }
}
