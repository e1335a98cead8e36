//! A cache of the quotas built from the parameters of calls.
//!
//! Callers send the same few parameters with every call, and building a quota takes longer than deciding
//! by it.

use tidegate::Throttle;
use tidegate_core::{Quota, QuotaError};

/// The number of cached quotas; a power of two.
const KEPT: usize = 8;

/// The parameters of a quota: burst, count, and period in seconds.
pub(super) type Parameters = (u64, u64, u64);

type CachedQuota = (Parameters, Quota);

/// The quotas of one connection. Each has exactly one possible slot.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    /// Allocated at the first use.
    kept: Option<Box<[Option<CachedQuota>; KEPT]>>,
}

impl Quotas {
    /// Returns the quota of these parameters, or the reason why there is none.
    #[inline]
    pub(super) fn of(&mut self, parameters: Parameters) -> Result<&Quota, QuotaError> {
        let kept = self.kept.get_or_insert_with(|| Box::new([None; KEPT]));
        let Some(slot) = kept.get_mut(place(parameters)) else {
            // Unreachable: `place` is within bounds.
            return Err(QuotaError::NoPeriod);
        };
        if !matches!(slot, Some((known, _)) if *known == parameters) {
            let (burst, count, period_s) = parameters;
            *slot = Some((parameters, Throttle::quota(burst, count, period_s)?));
        }
        match slot {
            Some((_, quota)) => Ok(quota),
            // Unreachable: it was put there above.
            None => Err(QuotaError::NoPeriod),
        }
    }
}

/// Returns the slot of a quota. It depends on all three parameters, because callers often vary only one
/// of them.
#[inline]
fn place((burst, count, period_s): Parameters) -> usize {
    const ODD: u64 = 0x9E37_79B9_7F4A_7C15;
    let mixed = burst
        .wrapping_mul(3)
        .wrapping_add(count.wrapping_mul(5))
        .wrapping_add(period_s.wrapping_mul(7))
        .wrapping_mul(ODD);
    usize::try_from(mixed >> 61).unwrap_or_default() & (KEPT - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_depends_on_its_parameters_not_on_the_cache() {
        let mut quotas = Quotas::default();
        for round in 0..3_u64 {
            for n in 1..50_u64 {
                let parameters = (n, n % 7 + 1, n % 5 + round + 1);
                let quota = *quotas.of(parameters).unwrap();
                let (burst, count, period_s) = parameters;
                assert_eq!(quota, Throttle::quota(burst, count, period_s).unwrap());
            }
        }
    }

    #[test]
    fn invalid_parameters_always_fail_and_leave_the_cache_intact() {
        let mut quotas = Quotas::default();
        let sound = (1, 1, 1);
        let wrong = (u64::MAX, 1, 1);
        for _ in 0..2 {
            assert!(quotas.of(sound).is_ok());
            assert!(quotas.of(wrong).is_err());
        }
    }
}
