//! Instants and waits, counted in whole microseconds.

use std::fmt;
use std::time::Duration;

/// An instant: microseconds since the Unix epoch.
///
/// The unit is the same in every store. Microseconds of our time stay below 2^53, so that a
/// double, which is all a Redis script has, still counts them exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// Returns the instant `micros` microseconds after the epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns the instant `millis` milliseconds after the epoch; the last representable one if
    /// that is too far away.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// Returns the microseconds since the epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Returns the microseconds from `earlier` to this instant; 0 if it is not earlier.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the instant `micros` later; the last representable one if that is too far away.
    #[must_use]
    pub const fn plus(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}

/// Time until a request would pass: a number of microseconds, until someone releases a permit, or never.
///
/// Waits are ordered, and *never* is the longest. The instant of a release is unknown. So its wait is longer
/// than any number. As a number it is a second, after which a retry makes sense.
///
/// ```
/// use tidegate_core::Wait;
///
/// assert!(Wait::NONE < Wait::from_micros(5) && Wait::from_micros(5) < Wait::NEVER);
/// assert_eq!(Wait::from_micros(5).as_micros(), Some(5));
/// assert_eq!(Wait::NEVER.as_micros(), None);
///
/// assert!(Wait::from_micros(5) < Wait::RELEASE && Wait::RELEASE < Wait::NEVER);
/// assert_eq!(Wait::RELEASE.as_micros(), Some(1_000_000));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Wait(u64);

impl Wait {
    /// No wait at all: it passes now.
    pub const NONE: Self = Self(0);
    /// No wait is long enough: the request can never pass.
    pub const NEVER: Self = Self(u64::MAX);
    /// Until permits are released. The instant is unknown.
    pub const RELEASE: Self = Self(u64::MAX - 1);

    /// The wait in place of that for a release, in microseconds.
    const RELEASE_US: u64 = 1_000_000;

    /// Returns a wait of `micros` microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Returns true if there is nothing to wait for.
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Returns true if waiting does not help.
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }

    /// Returns true if no passing of time helps, but a release of permits does.
    pub const fn is_release(self) -> bool {
        self.0 == Self::RELEASE.0
    }

    /// Returns the wait in microseconds, or `None` for never. A second for a release.
    pub const fn as_micros(self) -> Option<u64> {
        match self {
            Self::NEVER => None,
            Self::RELEASE => Some(Self::RELEASE_US),
            Self(micros) => Some(micros),
        }
    }

    /// Returns the wait in whole milliseconds, rounded up, or `None` for never. A second for a release.
    pub const fn as_millis(self) -> Option<u64> {
        match self.as_micros() {
            None => None,
            Some(micros) => Some(micros.div_ceil(1_000)),
        }
    }

    /// Returns the wait as a duration, or `None` for never. A second for a release.
    pub const fn as_duration(self) -> Option<Duration> {
        match self.as_micros() {
            None => None,
            Some(micros) => Some(Duration::from_micros(micros)),
        }
    }
}

impl fmt::Debug for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_micros() {
            Some(_) if self.is_release() => f.write_str("Wait(release)"),
            Some(micros) => write!(f, "Wait({micros} µs)"),
            None => f.write_str("Wait(never)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Timestamp, Wait};
    use std::time::Duration;

    #[test]
    fn waits_are_ordered_with_never_as_the_longest() {
        let long = Wait::from_micros(u64::MAX - 2);
        assert!(Wait::NONE < Wait::from_micros(1) && Wait::from_micros(1) < long);
        assert!(long < Wait::RELEASE && Wait::RELEASE < Wait::NEVER);
        assert!(Wait::NONE.is_none() && !Wait::from_micros(1).is_none());
        assert!(Wait::NEVER.is_never() && !long.is_never());
    }

    #[test]
    fn a_wait_is_rounded_up_to_milliseconds() {
        for (micros, millis) in [(0, 0), (1, 1), (1_000, 1), (1_001, 2)] {
            assert_eq!(Wait::from_micros(micros).as_millis(), Some(millis));
        }
        let wait = Wait::from_micros(1_500);
        assert_eq!(wait.as_duration(), Some(Duration::from_micros(1_500)));
        assert_eq!(
            format!("{wait:?} {:?}", Wait::NEVER),
            "Wait(1500 µs) Wait(never)"
        );
        assert_eq!(Wait::NEVER.as_millis(), None);
        assert_eq!(Wait::NEVER.as_micros(), None);
        assert_eq!(Wait::NEVER.as_duration(), None);
        assert_eq!(Wait::RELEASE.as_millis(), Some(1_000));
        assert_eq!(format!("{:?}", Wait::RELEASE), "Wait(release)");
    }

    #[test]
    fn instants_saturate_at_both_ends() {
        let (early, late) = (Timestamp::from_millis(1), Timestamp::from_micros(u64::MAX));
        assert_eq!(early.as_micros(), 1_000);
        assert_eq!(late.plus(1), late);
        assert_eq!(early.since(late), 0);
        assert_eq!(late.since(early), u64::MAX - 1_000);
        assert_eq!(Timestamp::from_millis(u64::MAX), late);
    }
}
