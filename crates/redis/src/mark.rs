//! Under which numbers a record was written: one number at its end, where it cannot be read without.
//!
//! ```text
//! the leading bits of the whole (26)   how many follow (5)   the number of the tick (2)   its parts (19)
//! ```
//!
//! 52 bits, so that the number is exact in a script.

use tidegate_core::quota::Basis;
use tidegate_core::{Algorithm, Quota};

/// The ticks that there are, in microseconds.
const TICKS_US: [u64; 3] = [1, 1_000, 1_000_000];

const PARTS_BITS: u32 = 19;
const TICK_BITS: u32 = 2;
const SHIFT_BITS: u32 = 5;
const LEADING_BITS: u32 = 26;

/// The mark of a quota's records, if they have one.
pub(crate) fn of(quota: &Quota) -> Option<u64> {
    let basis = quota.basis();
    let is_coarse = quota.algorithm() == Algorithm::TokenBucket && basis.tick_us > 1;
    if !is_coarse && !quota.scales() {
        return None;
    }
    let tick = TICKS_US.iter().position(|tick| *tick == basis.tick_us);
    let tick = u64::try_from(tick.unwrap_or(0)).unwrap_or(0);
    let mark = shrunk(basis.whole) << TICK_BITS | tick;
    Some(mark << PARTS_BITS | basis.parts)
}

/// The whole that shares are of, rounded up, in the same form; 0 where nothing scales.
pub(crate) fn whole(quota: &Quota) -> u64 {
    if quota.scales() {
        shrunk(quota.whole_up())
    } else {
        0
    }
}

/// The leading bits of a number that has no others, and how many follow.
fn shrunk(number: u64) -> u64 {
    let bits = u64::BITS - number.leading_zeros();
    let shift = bits.saturating_sub(LEADING_BITS);
    (number >> shift) << SHIFT_BITS | u64::from(shift)
}

/// What a mark says; and what it says that there is none. `None` if it cannot be one. The length of
/// sliding windows is told apart.
pub(crate) fn read(mark: Option<u64>, period_us: u64) -> Option<Basis> {
    let mark = mark.unwrap_or(0);
    let bits = |from: u32, count: u32| (mark >> from) & ((1 << count) - 1);
    let tick = usize::try_from(bits(PARTS_BITS, TICK_BITS)).ok()?;
    let shift = bits(PARTS_BITS + TICK_BITS, SHIFT_BITS);
    Some(Basis {
        tick_us: *TICKS_US.get(tick)?,
        parts: bits(0, PARTS_BITS),
        period_us,
        whole: (mark >> (PARTS_BITS + TICK_BITS + SHIFT_BITS)) << shift,
    })
}

#[cfg(test)]
mod tests {
    use super::{of, read};
    use tidegate_core::quota::EXACT_MAX;
    use tidegate_core::{Algorithm, OnChange, Quota};

    #[test]
    fn a_mark_says_all_that_has_to_be_known_of_a_quota() {
        for amount in [1, 3, 100, 999_999, 1_000_003, 1_000_000_007, 1 << 40] {
            for on_change in [OnChange::Keep, OnChange::Scale] {
                for algorithm in [Algorithm::TokenBucket, Algorithm::SlidingWindow] {
                    let spec = Quota::new(amount, 86_400_000_000).algorithm(algorithm);
                    let Ok(quota) = spec.on_change(on_change).build() else {
                        continue;
                    };
                    let mark = of(&quota);
                    assert!(mark.is_none_or(|mark| mark < EXACT_MAX));
                    let basis = quota.basis();
                    assert_eq!(read(mark, basis.period_us), Some(basis), "{quota:?}");
                }
            }
        }
    }
}
