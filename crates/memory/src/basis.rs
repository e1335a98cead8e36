//! What a record remembers of the quota that left it: a [`Basis`] in half the room.

use tidegate_core::Quota;
use tidegate_core::quota::Basis;

/// The ticks that there are, in microseconds.
const TICKS_US: [u64; 3] = [1, 1_000, 1_000_000];

const PARTS_BITS: u32 = 20;
const SHIFT_BITS: u32 = 6;

/// A basis in sixteen bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The number of the tick, and the parts that it is counted in.
    tick: u32,
    /// The leading bits of the whole, at most 26, and how many follow.
    whole: u32,
    period_us: u64,
}

impl Kept {
    /// What is to be remembered of `quota`.
    pub(crate) fn of(quota: &Quota) -> Self {
        let basis = quota.basis();
        let tick = TICKS_US.iter().position(|tick| *tick == basis.tick_us);
        let parts = basis.parts & ((1 << PARTS_BITS) - 1);
        let shift = basis.whole.trailing_zeros() % u64::BITS;
        Self {
            tick: small(tick.unwrap_or(0)) << PARTS_BITS | small(parts),
            whole: small(basis.whole >> shift) << SHIFT_BITS | shift,
            period_us: basis.period_us,
        }
    }

    /// What was remembered.
    pub(crate) fn basis(self) -> Basis {
        let tick = usize::try_from(self.tick >> PARTS_BITS).unwrap_or(0);
        let shift = self.whole & ((1 << SHIFT_BITS) - 1);
        Basis {
            tick_us: TICKS_US.get(tick).copied().unwrap_or(1),
            parts: u64::from(self.tick & ((1 << PARTS_BITS) - 1)),
            period_us: self.period_us,
            whole: u64::from(self.whole >> SHIFT_BITS) << shift,
        }
    }
}

/// The basis of what is in a word: a tick of a microsecond, and nothing that scales.
pub(crate) const WORD: Basis = Basis {
    tick_us: 1,
    parts: 0,
    period_us: 0,
    whole: 0,
};

fn small(number: impl TryInto<u32>) -> u32 {
    number.try_into().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Kept, WORD};
    use tidegate_core::{Algorithm, OnChange, Quota};

    #[test]
    fn what_is_remembered_of_a_quota_is_its_basis() {
        let day = 86_400_000_000;
        for amount in [1, 2, 7, 100, 999_999, 1_000_000, 1_000_003, 1_000_000_007] {
            for on_change in [OnChange::Keep, OnChange::Scale] {
                for algorithm in [
                    Algorithm::TokenBucket,
                    Algorithm::SlidingWindow,
                    Algorithm::FixedWindow(tidegate_core::Align::Clock),
                ] {
                    let spec = Quota::new(amount, day).algorithm(algorithm);
                    let quota = spec.on_change(on_change).build().unwrap();
                    assert_eq!(Kept::of(&quota).basis(), quota.basis(), "{quota:?}");
                    assert!(!quota.is_narrow() || quota.basis() == WORD);
                }
            }
        }
    }
}
