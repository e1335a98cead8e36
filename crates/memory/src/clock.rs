//! Real time: the one place of the libraries that reads it.

use tidegate_core::{Clock, Timestamp};

/// The machine's time: the wall clock when it was made, plus what has passed since on a clock that
/// never runs backwards.
///
/// A step of the wall clock, forwards or back, therefore changes nothing for a running process.
/// What has passed is read from the processor's counter where that is reliable (three times
/// cheaper than the operating system's clock, and it does not hold up neighbouring loads).
#[derive(Clone, Debug)]
pub struct SystemClock {
    counter: quanta::Clock,
    start_raw: u64,
    start_us: u64,
    /// Microseconds in one step of the counter, times 2^64: a single multiplication tells the time.
    us_per_step: u64,
}

/// Over this many steps of the counter the factor is worked out: long enough to be precise to a
/// part in a hundred thousand million.
const STEPS: u64 = 1 << 40;

impl SystemClock {
    /// A clock that starts at the present wall time.
    pub fn new() -> Self {
        let counter = quanta::Clock::new();
        let nanos = u128::from(counter.delta_as_nanos(0, STEPS));
        let factor = (nanos << 64) / (u128::from(STEPS) * 1_000);
        Self {
            start_raw: counter.raw(),
            start_us: Self::wall().as_micros(),
            us_per_step: u64::try_from(factor).unwrap_or(u64::MAX),
            counter,
        }
    }

    /// Reads the wall clock, which may have been set since a clock started. For instants that people or
    /// other programs read; never for decisions.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the machine's clock"
    )]
    pub fn wall() -> Timestamp {
        let wall = std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap_or_default();
        Timestamp::from_micros(u64::try_from(wall.as_micros()).unwrap_or(u64::MAX))
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Timestamp {
        let steps = self.counter.raw().saturating_sub(self.start_raw);
        let passed = (u128::from(steps) * u128::from(self.us_per_step)) >> 64;
        // The high half of a product of two 64-bit numbers has 64 bits.
        let passed = u64::try_from(passed).unwrap_or(u64::MAX);
        Timestamp::from_micros(self.start_us.saturating_add(passed))
    }

    fn is_machine(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_never_runs_backwards() {
        let clock = SystemClock::new();
        let mut last = clock.now();
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    #[expect(
        clippy::disallowed_methods,
        reason = "compared with the machine's clock"
    )]
    fn time_passes_as_fast_as_the_machine_says() {
        let (clock, start) = (SystemClock::new(), std::time::Instant::now());
        let begun = clock.now();
        while start.elapsed().as_millis() < 50 {
            std::hint::spin_loop();
        }
        let (ours, theirs) = (clock.now().since(begun), start.elapsed().as_micros());
        let apart = u128::from(ours).abs_diff(theirs);
        // Both are read at slightly different moments, and this thread may be put to sleep between.
        assert!(apart * 10 < theirs, "{ours} µs against {theirs} µs");
    }
}
