//! Pauses that spread instances apart.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A random number, good enough for spreading and for names that must not collide.
pub(crate) fn random() -> u64 {
    // Each `RandomState` has other keys, which stem from the system's randomness.
    RandomState::new().build_hasher().finish()
}

/// 75 % to 125 % of `pause`.
pub(crate) fn jittered(pause: Duration) -> Duration {
    let percent = 75 + u32::try_from(random() % 51).unwrap_or(25);
    pause.saturating_mul(percent) / 100
}

/// Pauses between the starts of two attempts to connect. They double, up to a bound that recovery
/// from an outage depends on.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(20);
    const MAX: Duration = super::probe::PAUSE;

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
    fn pauses_double_up_to_a_bound_give_or_take_a_quarter() {
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

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
