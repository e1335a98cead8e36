//! How long to wait after a failure.

use foldhash::fast::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// After the first failure.
const FIRST_MS: u64 = 1_000;

/// Never longer than this.
const LONGEST_MS: u64 = 30_000;

/// The longest until a file is read again that could not be, or was invalid. Reading a file burdens no
/// other machine, and a correction is to count soon.
pub(crate) const FILE_RETRY: Duration = Duration::from_secs(2);

/// Failures in a row are followed up so quickly for this long; then it is tried as often as if nothing
/// were the matter.
pub(super) const IN_ALL: Duration = Duration::from_mins(3);

/// How long to wait after so many failures in a row before this one: twice as long each time, and up to
/// a half less, by chance, so that instances that failed together do not come back together.
pub fn delay(earlier: u32) -> Duration {
    let doubled = 1_u64.checked_shl(earlier).unwrap_or(u64::MAX);
    let longest = FIRST_MS.saturating_mul(doubled).min(LONGEST_MS);
    // Seeded anew each time, and good enough for a die.
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
        assert!((0..50).any(|_| delay(5) != first), "no chance in it");
    }
}
