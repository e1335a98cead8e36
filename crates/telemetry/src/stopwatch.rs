//! Measured durations. Decisions never use this: they have the store's clock.

use std::time::{Duration, Instant};

/// A stopwatch, started once and read once.
#[derive(Clone, Copy, Debug)]
pub struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place of the program that reads real time, for latencies alone"
    )]
    /// Starts a stopwatch.
    pub fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the time since the start.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}
