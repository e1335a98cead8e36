//! The time of a decision, and the times for which its request waited or its client is blocked.

use super::{DecidedBy, Decision};
use std::time::Duration;
use tidegate_core::Timestamp;
use tidegate_memory::SystemClock;

impl Decision {
    /// Returns the time of the decision, by the clock of the component that decided: Redis has its own.
    /// Returns the epoch if neither the store nor local buckets were needed. See
    /// [`wall_time`](Self::wall_time) for responses.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Returns the current time for responses that contain an instant: the wall clock if this machine's clock
    /// decided, otherwise [`at`](Self::at). They differ once the wall clock has been set.
    pub fn wall_time(&self) -> Timestamp {
        let machine = self.rules.machine_clock;
        let is_machine = match self.decided_by {
            DecidedBy::Store => machine.store,
            DecidedBy::Local | DecidedBy::Failure => machine.local,
        };
        if is_machine || self.at == Timestamp::default() {
            SystemClock::wall()
        } else {
            self.at
        }
    }

    /// Returns the time for which a limit queued the request before it passed (`on_refusal: wait`). Zero if
    /// it passed immediately or was refused.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let limit = LimitSpec::new("jobs").band("50/s burst 1").wait(Duration::from_secs(1));
    /// let limiter = Limiter::builder().limit(limit).build()?;
    /// assert_eq!(limiter.check(&Request::new()).await?.waited(), Duration::ZERO);
    /// assert!(limiter.check(&Request::new()).await?.waited() >= Duration::from_millis(10));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn waited(&self) -> Duration {
        let waited_us = if self.allowed { self.held_us } else { 0 };
        Duration::from_micros(waited_us)
    }

    /// Returns true if the request is refused because a limit blocks the client (`block`): from this refusal
    /// on, if it is the first, or since an earlier one.
    pub fn is_blocked(&self) -> bool {
        self.blocked_for().is_some()
    }

    /// Returns the time for which a limit blocks the client, if that is the reason for the refusal; the
    /// longest of several. Further requests do not prolong a block.
    ///
    /// ```
    /// use std::time::Duration;
    /// use tidegate::{LimitSpec, Limiter, Request};
    ///
    /// let login = LimitSpec::new("login").band("5/s").block(Duration::from_secs(300));
    /// let limiter = Limiter::builder().limit(login).build()?;
    /// assert!(limiter.check_now(&Request::new().cost(5))?.is_allowed());
    /// let refused = limiter.check_now(&Request::new())?;
    /// assert_eq!(refused.blocked_for(), Some(Duration::from_secs(300)));
    /// assert!(limiter.check_now(&Request::new())?.is_blocked());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn blocked_for(&self) -> Option<Duration> {
        let is_blocked = !self.allowed && self.held_us > 0 && !self.is_denied_by_guard();
        is_blocked.then(|| Duration::from_micros(self.held_us))
    }
}
