//! The share of a policy that one instance may grant while it cannot reach the others.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use tidegate_policy::store::LocalShare;

/// The last known number of instances that share the store; 0 if it is not known yet. The store or the caller
/// counts them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Instances(pub(crate) Arc<AtomicU32>);

/// A share of a policy; more than the whole counts as the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) numerator: NonZeroU32,
    pub(crate) denominator: NonZeroU32,
}

impl Share {
    /// Returns the current share for `setting`. If instances were never counted, assumes two, which gives the
    /// default share.
    pub(crate) fn of(setting: LocalShare, instances: &Instances) -> Self {
        let (numerator, denominator) = match setting {
            LocalShare::Millionths(millionths) => (millionths, 1_000_000),
            LocalShare::Auto => match instances.0.load(Relaxed) {
                0 => (1, 2),
                instances => (1, instances),
            },
        };
        let at_least_1 = |n| NonZeroU32::new(n).unwrap_or(NonZeroU32::MIN);
        Self {
            numerator: at_least_1(numerator),
            denominator: at_least_1(denominator),
        }
    }

    /// Returns this share of `units`, rounded down.
    pub(crate) fn part(self, units: u64) -> u64 {
        let part = u128::from(units) * u128::from(self.numerator.get());
        u64::try_from(part / u128::from(self.denominator.get())).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_configured_one_or_one_per_live_instance() {
        let instances = Instances::default();
        let part = |setting| Share::of(setting, &instances).part(100);
        assert_eq!(part(LocalShare::default()), 50);
        assert_eq!(part(LocalShare::Millionths(333_333)), 33);
        assert_eq!(part(LocalShare::Auto), 50, "not known yet");
        for (live, expected) in [(1, 100), (3, 33), (1_000, 0)] {
            instances.0.store(live, Relaxed);
            assert_eq!(part(LocalShare::Auto), expected);
        }
    }
}
