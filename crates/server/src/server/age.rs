//! The maximum age of a connection.

use crate::telemetry::chance::chance;
use std::future::pending;
use std::time::Duration;
use tidegate_policy::config::ConnectionAge;
use tokio::time::{Instant, sleep_until, timeout};

/// The age varies by up to this share of it either way, in thousandths: connections that were opened
/// together must not all be opened again together.
const JITTER: u64 = 100;

/// The times at which a connection closes because of its age.
#[derive(Debug)]
pub(super) struct Life {
    /// The time at which the client is asked to close it; `None` once it was.
    aged: Option<Instant>,
    /// The time at which it is closed although requests are in flight.
    over: Option<Instant>,
}

/// What the age of a connection calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The client is to be asked to close it.
    Farewell,
    /// The grace is over: it is to be closed.
    End,
}

impl Life {
    /// Begins the life of a connection.
    pub(super) fn begin(age: Option<ConnectionAge>) -> Self {
        let aged = age.and_then(|age| Instant::now().checked_add(jittered(age.max, chance())));
        let over = aged.zip(age);
        Self {
            aged,
            over: over.and_then(|(aged, age)| aged.checked_add(age.grace)),
        }
    }

    /// Waits for what is due next; without a maximum age, for ever.
    pub(super) async fn next(&mut self) -> Due {
        match self.aged.or(self.over) {
            Some(time) => sleep_until(time).await,
            None => pending().await,
        }
        match self.aged.take() {
            Some(_) => Due::Farewell,
            None => Due::End,
        }
    }

    /// Waits until the grace is over; without a maximum age, for ever.
    pub(super) async fn end(&mut self) {
        while self.next().await != Due::End {}
    }

    /// Waits for `pause`, or until something is due and then returns that.
    pub(super) async fn within(&mut self, pause: Duration) -> Option<Due> {
        timeout(pause, self.next()).await.ok()
    }
}

/// Returns `age`, less or more by up to a tenth as `chance` has it.
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
