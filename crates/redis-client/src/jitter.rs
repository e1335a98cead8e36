//! Random pauses that spread instances apart.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// Returns a random number, good enough for spreading and for names that must not collide. It is no
/// cryptographic one.
pub fn random() -> u64 {
    // Each `RandomState` has other keys, which stem from the system's randomness.
    RandomState::new().build_hasher().finish()
}

/// Returns 75 % to 125 % of `pause`, so that instances that start together do not stay together.
pub fn jittered(pause: Duration) -> Duration {
    let percent = 75 + u32::try_from(random() % 51).unwrap_or(25);
    pause.saturating_mul(percent) / 100
}

#[cfg(test)]
mod tests {
    use super::random;

    #[test]
    fn random_numbers_differ() {
        assert_ne!(random(), random());
    }
}
