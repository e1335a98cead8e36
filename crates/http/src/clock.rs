//! The wall clock, for expiry times and other instants that are not decisions.

use tidegate::SystemClock;

/// Returns seconds since the Unix epoch. Follows steps of the wall clock.
pub fn unix_seconds() -> u64 {
    SystemClock::wall().as_micros() / 1_000_000
}
