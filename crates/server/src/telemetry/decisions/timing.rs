//! How long decisions take.
//!
//! Reading the clock twice takes about as long as a tenth of a decision in this process, so that of
//! those one of [`EVERY`] is timed. A decision in a store elsewhere takes so long that each one is.

use crate::telemetry::chance::is_turn;
use crate::telemetry::stopwatch::Stopwatch;
use std::time::Duration;
use tidegate::Decision;

/// One of so many decisions in this process is timed.
const EVERY: u32 = 64;

/// A decision that is timed, or is not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing(Option<Stopwatch>);

impl Timing {
    /// Of a decision that waits for a store elsewhere, or does not.
    #[inline]
    pub(crate) fn start(waits: bool) -> Self {
        Self((waits || is_turn(EVERY)).then(Stopwatch::start))
    }

    /// How long it took to decide; without the time for which the request was held back, which is not
    /// spent on deciding.
    pub(super) fn took(self, decision: &Decision) -> Option<Duration> {
        let took = self.0?.elapsed();
        Some(took.saturating_sub(decision.waited()))
    }

    #[cfg(test)]
    pub(super) fn is_timed(self) -> bool {
        self.0.is_some()
    }
}
