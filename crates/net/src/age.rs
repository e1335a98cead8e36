//! The maximum age of a connection.

use crate::random::chance;
use std::future::pending;
use std::time::Duration;
use tidegate_policy::listen::ConnectionAge;
use tokio::time::{Instant, sleep_until, timeout};

/// The maximum jitter of the age either way, in thousandths: connections that were opened together must not
/// all be reopened together.
const JITTER: u64 = 100;

/// The times at which a connection closes because of its age.
#[derive(Debug)]
pub(super) struct ConnectionLifetime {
    /// The time at which the connection asks its client to close; `None` once that is done.
    aged: Option<Instant>,
    /// The time at which it is closed although requests are in flight.
    over: Option<Instant>,
}

/// The action that the age of a connection requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AgeAction {
    /// Ask the client to close it.
    Farewell,
    /// The grace is over: close it.
    End,
}

impl ConnectionLifetime {
    /// Starts the life of a connection.
    pub(super) fn begin(age: Option<ConnectionAge>) -> Self {
        let aged = age.and_then(|age| Instant::now().checked_add(jittered(age.max, chance())));
        let over = aged.zip(age);
        Self {
            aged,
            over: over.and_then(|(aged, age)| aged.checked_add(age.grace)),
        }
    }

    /// Waits for the next action; never returns without a maximum age.
    pub(super) async fn next(&mut self) -> AgeAction {
        match self.aged.or(self.over) {
            Some(time) => sleep_until(time).await,
            None => pending().await,
        }
        match self.aged.take() {
            Some(_) => AgeAction::Farewell,
            None => AgeAction::End,
        }
    }

    /// Waits until the grace is over; never returns without a maximum age.
    pub(super) async fn end(&mut self) {
        while self.next().await != AgeAction::End {}
    }

    /// Waits for `pause`, or until an action is due and then returns that.
    pub(super) async fn within(&mut self, pause: Duration) -> Option<AgeAction> {
        timeout(pause, self.next()).await.ok()
    }
}

/// Returns `age`, varied by up to a tenth either way by `chance`.
fn jittered(age: Duration, chance: u64) -> Duration {
    let micros = u64::try_from(age.as_micros()).unwrap_or(u64::MAX);
    let thousandths = (1_000 - JITTER).saturating_add(chance % (2 * JITTER + 1));
    Duration::from_micros((micros / 1_000).saturating_mul(thousandths))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_varies_by_up_to_a_tenth() {
        let hour = Duration::from_hours(1);
        assert_eq!(jittered(hour, 0), Duration::from_mins(54));
        assert_eq!(jittered(hour, JITTER), hour);
        assert_eq!(jittered(hour, 2 * JITTER), Duration::from_mins(66));
        assert_eq!(jittered(hour, 2 * JITTER + 1), Duration::from_mins(54));
    }
}
