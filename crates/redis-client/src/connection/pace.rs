//! Pauses between attempts to connect.

use crate::jitter::jittered;
use std::time::Duration;

/// Pauses between the starts of two attempts to connect. They double, up to a bound that recovery
/// from an outage depends on.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// The pause after the first failure.
    const FIRST: Duration = Duration::from_millis(20);
    /// The longest pause. Recovery from an outage takes at least this long in the worst case.
    const MAX: Duration = super::probe::PAUSE;

    /// Returns a back-off that starts with the shortest pause.
    pub(super) fn new() -> Self {
        Self { next: Self::FIRST }
    }

    /// The next pause.
    pub(super) fn next(&mut self) -> Duration {
        let pause = self.next;
        self.next = pause.saturating_mul(2).min(Self::MAX);
        jittered(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_with_jitter_of_a_quarter() {
        let mut backoff = Backoff::new();
        let mut plain = Duration::from_millis(20);
        for _ in 0..20 {
            let pause = backoff.next();
            assert!(
                pause >= plain * 3 / 4 && pause <= plain * 5 / 4,
                "{pause:?}"
            );
            plain = (plain * 2).min(Backoff::MAX);
        }
    }
}
