//! Real time: the only place in the libraries that reads it.
//!
//! Decisions use [`SystemClock::now`](Clock::now), which never runs backwards.
//! [`SystemClock::wall`] is for instants that people or other programs read.

use tidegate_core::{Clock, Timestamp};

/// The machine's time: the wall clock at creation, plus the time passed since on a clock that never
/// runs backwards.
///
/// A step of the wall clock, forwards or back, therefore changes nothing for a running process. The
/// time passed is read from the processor's counter if that is reliable. That is three times
/// cheaper than the operating system's clock, and does not delay neighbouring loads.
///
/// # Example
///
/// ```
/// use tidegate_core::Clock;
/// use tidegate_memory::SystemClock;
///
/// let clock = SystemClock::default();
/// let first = clock.now();
/// assert!(clock.now() >= first);
/// ```
#[derive(Clone, Debug)]
pub struct SystemClock {
    /// Counter of the processor, or the operating system's clock if that is not reliable.
    counter: quanta::Clock,
    /// Reading of the counter at creation.
    start_raw: u64,
    /// Wall time at creation, in microseconds since the epoch.
    start_us: u64,
    /// Microseconds in one step of the counter, times 2^64: reading the time is a single
    /// multiplication.
    us_per_step: u64,
}

/// Steps of the counter over which the factor is computed: long enough to be precise to a part in a
/// hundred thousand million.
const STEPS: u64 = 1 << 40;

impl SystemClock {
    /// Creates a clock that starts at the present wall time.
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

    /// Reads the wall clock, which may have been set since a clock started. For instants that
    /// people or other programs read; never for decisions.
    ///
    /// ```
    /// use tidegate_memory::SystemClock;
    ///
    /// let now = SystemClock::wall();
    /// assert!(now.as_micros() > 1_700_000_000_000_000);
    /// ```
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
    fn time_passes_at_the_rate_of_the_system_clock() {
        let (clock, start) = (SystemClock::new(), std::time::Instant::now());
        let begun = clock.now();
        while start.elapsed().as_millis() < 50 {
            std::hint::spin_loop();
        }
        let (ours, theirs) = (clock.now().since(begun), start.elapsed().as_micros());
        let apart = u128::from(ours).abs_diff(theirs);
        // Both clocks are read at slightly different moments, and this thread may be suspended in
        // between.
        assert!(apart * 10 < theirs, "{ours} µs against {theirs} µs");
    }
}
