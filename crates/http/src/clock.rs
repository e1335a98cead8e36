//! The time, for what no store is asked about.

use std::sync::LazyLock;
use tidegate::{Clock, SystemClock};

/// Decisions do not ask it: they have the store's clock.
static CLOCK: LazyLock<SystemClock> = LazyLock::new(SystemClock::new);

/// Seconds since the Unix epoch.
pub fn unix_seconds() -> u64 {
    CLOCK.now().as_micros() / 1_000_000
}
