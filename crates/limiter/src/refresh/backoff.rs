//! The pause after a failure.

use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// The pause after the first failure.
const FIRST_MS: u64 = 1_000;

/// The longest pause.
const LONGEST_MS: u64 = 30_000;

/// The longest pause until a file that could not be read, or was invalid, is read again. Reading a file puts
/// no load on another machine, and a correction should take effect soon.
pub(crate) const FILE_RETRY: Duration = Duration::from_secs(2);

/// The duration for which consecutive failures are retried this fast; after it, reads return to their normal
/// interval.
pub(super) const IN_ALL: Duration = Duration::from_secs(180);

/// Returns the pause after a failure with `earlier` consecutive failures before it. It doubles each time,
/// with a random reduction of up to one half, so that instances that failed together do not retry together.
pub fn delay(earlier: u32) -> Duration {
    let doubled = 1_u64.checked_shl(earlier).unwrap_or(u64::MAX);
    let longest = FIRST_MS.saturating_mul(doubled).min(LONGEST_MS);
    // A new random seed each time, which is random enough here.
    let chance = RandomState::default().hash_one(earlier);
    let half = longest / 2;
    Duration::from_millis(half.saturating_add(chance % half.saturating_add(1)))
}

#[cfg(test)]
mod tests {
    use super::delay;
    use std::time::Duration;

    #[test]
    fn delays_double_up_to_half_a_minute_and_vary_by_a_half() {
        let seconds = |s| Duration::from_secs(s);
        for (earlier, longest) in [(0, 1), (1, 2), (2, 4), (3, 8), (4, 16), (5, 30), (70, 30)] {
            for _ in 0..50 {
                let delay = delay(earlier);
                assert!(delay <= seconds(longest), "{earlier}: {delay:?}");
                assert!(delay >= seconds(longest) / 2, "{earlier}: {delay:?}");
            }
        }
        let first = delay(5);
        assert!((0..50).any(|_| delay(5) != first), "no jitter");
    }
}
