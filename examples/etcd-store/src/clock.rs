use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate::SystemClock;
use tidegate_core::{Clock, Timestamp};

/// The machine's wall clock, which NTP keeps close to those of other machines. If it is set back, this clock
/// stops until it has caught up.
#[derive(Debug, Default)]
pub struct WallClock {
    latest_us: AtomicU64,
}

impl Clock for WallClock {
    fn now(&self) -> Timestamp {
        let now = SystemClock::wall();
        let latest = self.latest_us.fetch_max(now.as_micros(), Relaxed);
        now.max(Timestamp::from_micros(latest))
    }
}
