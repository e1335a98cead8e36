//! Buckets whose quota gets other numbers.
//!
//! A state is kept under the name of its band, not under its numbers, and so it outlives them. The
//! new quota defines how to read it ([`OnChange`]). The [`Basis`] has the facts about the old quota
//! that reading needs.

use super::{Algorithm, BandId, EXACT_MAX, Quota, TICKS_US};
use std::num::NonZeroU64;

/// Of a [whole](Basis::whole) so many leading bits count, so that the product of two is exact.
const BITS: u32 = 26;

/// End of the range of leading bits.
const LEADING_END: u64 = 1 << BITS;

/// Bits of a [code](Basis::code) for the number of the tick, its parts, and the count of bits that
/// follow the leading ones.
const TICK_BITS: u32 = 2;
/// Bits of a [code](Basis::code) for the parts of a tick.
const PARTS_BITS: u32 = 19;
/// Bits of a [code](Basis::code) for the count of bits that follow the leading ones.
const SHIFT_BITS: u32 = 5;

/// The largest prime number below 2^19.
const PARTS_END: NonZeroU64 = NonZeroU64::new(524_287).unwrap();

/// Treatment of a bucket when the amount, the period, the burst or the overdraft of its limit
/// change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnChange {
    /// Used units stay used: a token bucket keeps its debt in time, a window its count. A larger
    /// quota grants no fresh burst. Under a smaller one no client waits longer than an empty bucket
    /// takes to fill.
    #[default]
    Keep,
    /// Used units stay the same share of the whole: half of a hundred becomes half of two hundred.
    /// Rounded up, in favour of the limit.
    Scale,
    /// Other numbers start with new buckets. The same numbers as before continue with the old ones,
    /// as long as those still matter.
    Reset,
}

/// Facts about the quota under which a state was written, for reading it under another quota of the
/// same band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Basis {
    /// Microseconds per tick, which a token bucket counts in; 1 for windows.
    pub tick_us: u64,
    /// Code of the fraction of a tick, if a tick is longer than a microsecond: a number below 2^19
    /// that is hardly ever the same for two drains. 0 otherwise.
    pub parts: u64,
    /// The length of a sliding window, by which it is numbered, in microseconds; 0 for others.
    pub period_us: u64,
    /// The whole of which used units are a share, if the quota scales: the ticks in which an empty
    /// token bucket fills, or the amount of a window. Rounded down to 26 leading bits. 0 otherwise.
    pub whole: u64,
}

impl Quota {
    /// Returns the treatment of its buckets when its numbers change.
    pub fn on_change(&self) -> OnChange {
        self.on_change
    }

    /// Returns true if used units stay the same share of the whole, so that a state must remember
    /// the whole.
    #[inline]
    pub fn scales(&self) -> bool {
        self.on_change == OnChange::Scale
    }

    /// Returns the band regardless of its numbers. It differs from [`id`](Quota::id) only for a
    /// quota with [`OnChange::Reset`].
    pub fn family(&self) -> BandId {
        self.family
    }

    /// Returns the number that represents the quota's numbers in names that people read, for
    /// [`OnChange::Reset`]; `None` otherwise.
    pub fn reset_number(&self) -> Option<u32> {
        let low = self.id.as_u64() & u64::from(u32::MAX);
        u32::try_from(low)
            .ok()
            .filter(|_| self.on_change == OnChange::Reset)
    }

    /// Returns the facts about this quota that reading its states under another one needs.
    ///
    /// ```
    /// use tidegate_core::{OnChange, Quota};
    ///
    /// let quota = Quota::new(100, 1_000_000);
    /// assert_eq!(quota.build()?.basis().whole, 0);
    /// let scaled = quota.on_change(OnChange::Scale).build()?;
    /// assert_eq!(scaled.basis().whole, 1_000_000);
    /// # Ok::<(), tidegate_core::QuotaError>(())
    /// ```
    pub fn basis(&self) -> Basis {
        let tick_us = self.tick_us.get();
        let basis = match self.algorithm {
            Algorithm::TokenBucket if tick_us > 1 => Basis {
                tick_us,
                parts: self.drain.get() % PARTS_END,
                ..Basis::PLAIN
            },
            Algorithm::SlidingWindow => Basis {
                period_us: self.period_us(),
                ..Basis::PLAIN
            },
            Algorithm::TokenBucket
            | Algorithm::FixedWindow(_)
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => Basis::PLAIN,
        };
        let whole = self.scales().then(|| rounded_down(self.whole_parts().0));
        Basis {
            whole: whole.unwrap_or(0),
            ..basis
        }
    }

    /// Returns the [code](Basis::code) of its basis, where its states cannot be read without.
    pub fn basis_code(&self) -> Option<u64> {
        let basis = self.basis();
        (basis.tick_us > 1 || self.scales()).then(|| basis.code())
    }

    /// Returns the whole that shares are of, rounded up, in the form that it has in a
    /// [code](Basis::code); 0 where nothing scales.
    pub fn whole_code(&self) -> u64 {
        if self.scales() {
            whole_code(self.whole_up())
        } else {
            0
        }
    }

    /// Returns the whole that shares are of, rounded up to as many leading bits as count.
    pub fn whole_up(&self) -> u64 {
        let (leading, shift) = shrunk_up(self.whole_parts().1);
        leading.saturating_mul(power(shift).get())
    }

    /// Returns the whole of a share as a quotient rounded down and up; at least 1.
    fn whole_parts(&self) -> (u64, u64) {
        let (down, up) = match self.algorithm {
            Algorithm::TokenBucket => {
                let debt = self.capacity.saturating_mul(self.price.get());
                (debt / self.drain, debt.div_ceil(self.drain.get()))
            }
            Algorithm::FixedWindow(_)
            | Algorithm::SlidingWindow
            | Algorithm::SlidingLog
            | Algorithm::BucketedWindow
            | Algorithm::CalendarWindow
            | Algorithm::Concurrent => (self.amount, self.amount),
        };
        (down.max(1), up.max(1))
    }
}

impl Basis {
    /// The basis of a quota that counts in microseconds and does not scale.
    pub const PLAIN: Self = Self {
        tick_us: 1,
        parts: 0,
        period_us: 0,
        whole: 0,
    };

    /// Returns all but the length of a sliding window, in one number of 52 bits, which is exact in a script.
    ///
    /// ```text
    /// the leading bits of the whole (26)   how many follow (5)   the number of the tick (2)   its parts (19)
    /// ```
    pub fn code(self) -> u64 {
        let tick = (0..).zip(TICKS_US).find(|(_, us)| *us == self.tick_us);
        let tick = tick.map_or(0, |(tick, _)| tick);
        (whole_code(self.whole) << TICK_BITS | tick) << PARTS_BITS | self.parts
    }

    /// Reads a [code](Self::code); without one, the basis is plain. `None` if it cannot be one.
    pub fn decode(code: Option<u64>, period_us: u64) -> Option<Self> {
        let code = code.unwrap_or(0);
        let bits = |from: u32, count: u32| (code >> from) % power(count);
        let tick = usize::try_from(bits(PARTS_BITS, TICK_BITS)).ok()?;
        let shift = bits(PARTS_BITS + TICK_BITS, SHIFT_BITS);
        Some(Self {
            tick_us: *TICKS_US.get(tick)?,
            parts: bits(0, PARTS_BITS),
            period_us,
            whole: (code >> (PARTS_BITS + TICK_BITS + SHIFT_BITS)) << shift,
        })
    }

    /// Returns true if a tick of debt means the same under it and under `own`, so that counts of
    /// ticks can be carried over.
    pub(crate) fn keeps_ticks(self, own: Self) -> bool {
        self.tick_us == own.tick_us && !self.is_scaled_to(own)
    }

    /// Returns true if units used under it have to be scaled to be read under `own`.
    pub(crate) fn is_scaled_to(self, own: Self) -> bool {
        let differ = (self.whole, self.tick_us) != (own.whole, own.tick_us);
        self.whole > 0 && own.whole > 0 && differ
    }
}

/// Returns the leading bits of a number that has no others, and how many follow.
fn whole_code(whole: u64) -> u64 {
    let (leading, shift) = shrunk_down(whole);
    leading << SHIFT_BITS | u64::from(shift)
}

/// `used` of `whole` as the same share of `new_whole`, rounded up; at most 2^53.
///
/// `whole` and `new_whole` have 26 leading bits at most. So everything that is multiplied is below 2^53,
/// and a script with doubles only gets the same result.
///
/// ```
/// use tidegate_core::quota::same_share;
///
/// assert_eq!(same_share(50, 100, 200), 100);
/// assert_eq!(same_share(1, 3, 100), 34);
/// assert_eq!(same_share(0, 100, 200), 0);
/// ```
pub fn same_share(used: u64, whole: u64, new_whole: u64) -> u64 {
    let (mut of, shift) = shrunk_down(whole);
    let mut part = halved_up(used.min(EXACT_MAX), shift);
    while part > LEADING_END {
        part = halved_up(part, 1);
        of /= 2;
    }
    let (new, new_shift) = shrunk_up(new_whole);
    let of = NonZeroU64::new(of).unwrap_or(NonZeroU64::MIN);
    let scaled = part.saturating_mul(new).div_ceil(of.get());
    scaled.saturating_mul(power(new_shift).get()).min(EXACT_MAX)
}

/// Returns the leading bits, and how many follow: `n` is at least the one shifted by the other.
fn shrunk_down(n: u64) -> (u64, u32) {
    let shift = following(n);
    (n / power(shift), shift)
}

/// Returns the same, rounded up: `n` is at most that.
fn shrunk_up(n: u64) -> (u64, u32) {
    let shift = following(n);
    (halved_up(n, shift), shift)
}

/// Rounds down to 26 leading bits.
fn rounded_down(n: u64) -> u64 {
    let (leading, shift) = shrunk_down(n);
    leading.saturating_mul(power(shift).get())
}

/// Halved so often, rounded up.
fn halved_up(n: u64, times: u32) -> u64 {
    n.div_ceil(power(times).get())
}

/// Returns the number of bits that follow the leading ones.
fn following(n: u64) -> u32 {
    let bits = u64::BITS.saturating_sub(n.leading_zeros());
    bits.saturating_sub(BITS)
}

/// Returns two to this power.
fn power(of_two: u32) -> NonZeroU64 {
    let power = 1_u64.checked_shl(of_two).and_then(NonZeroU64::new);
    power.unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_scaled_exactly_and_rounded_up() {
        for (used, whole, new, scaled) in [
            (50, 100, 200, 100),
            (100, 100, 10, 10),
            (1, 100, 10, 1),
            (11, 100, 10, 2),
            (150, 100, 10, 15),
            (67_108_863, 67_108_863, 67_108_862, 67_108_862),
            (7, 1, 1, 7),
        ] {
            assert_eq!(same_share(used, whole, new), scaled, "{used} of {whole}");
        }
    }

    #[test]
    fn large_numbers_are_scaled_up_with_a_tiny_error() {
        let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
        let mut roll = |bits: u32| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> (64 - bits)).max(1)
        };
        for i in 0..100_000_u32 {
            let (of, new) = (roll(1 + i % 50), roll(1 + i % 47));
            let used = u64::try_from(u128::from(of) * u128::from(roll(20)) / (1 << 20)).unwrap();
            let (leading, shift) = shrunk_up(new);
            let scaled = same_share(used, rounded_down(of), leading << shift);
            let share = u128::from(used) * u128::from(new);
            let exact = u64::try_from(share.div_ceil(of.into())).unwrap();
            assert!(scaled >= exact, "{used} of {of} to {new}: {scaled}");
            let most = exact + new / (1 << 22) + 2;
            assert!(scaled <= most, "{used} of {of} to {new}: {scaled}");
        }
    }

    #[test]
    fn a_quota_code_round_trips_the_quota() {
        for amount in [1, 2, 3, 100, 999_999, 1_000_003, 1_000_000_007, 1 << 40] {
            for on_change in [OnChange::Keep, OnChange::Scale] {
                for algorithm in Algorithm::ALL {
                    let spec = Quota::new(amount, 86_400_000_000).algorithm(algorithm);
                    let Ok(quota) = spec.on_change(on_change).build() else {
                        continue;
                    };
                    let basis = quota.basis();
                    let code = quota.basis_code();
                    assert!(basis.code() < EXACT_MAX);
                    assert_eq!(code.unwrap_or(0), basis.code(), "{quota:?}");
                    assert_eq!(
                        Basis::decode(code, basis.period_us),
                        Some(basis),
                        "{quota:?}"
                    );
                    assert!(!quota.is_narrow() || basis == Basis::PLAIN);
                }
            }
        }
    }

    #[test]
    fn values_beyond_the_range_saturate() {
        assert_eq!(same_share(EXACT_MAX, 1, 1 << 40), EXACT_MAX);
        assert_eq!(same_share(u64::MAX, 1 << 50, 1), 8);
    }
}
