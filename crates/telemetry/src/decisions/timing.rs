//! Durations of decisions.
//!
//! Reading the clock twice takes about a tenth of the time of a decision in memory, so only one of [`EVERY`]
//! of those is timed. A decision in a remote store takes so much longer that each one is timed.

use crate::stopwatch::Stopwatch;
use std::time::Duration;
use tidegate::Decision;
use tidegate_net::random::is_turn;

/// One of this many decisions in memory is timed.
const EVERY: u32 = 64;

/// A stopwatch for a decision, if that decision is timed.
#[derive(Clone, Copy, Debug)]
pub struct Timing(Option<Stopwatch>);

impl Timing {
    /// Starts timing a decision. One that waits for a remote store is always timed.
    #[inline]
    pub fn start(waits: bool) -> Self {
        Self((waits || is_turn(EVERY)).then(Stopwatch::start))
    }

    /// Returns the time spent on deciding, without the time for which the request was queued.
    pub fn took(self, decision: &Decision) -> Option<Duration> {
        let took = self.0?.elapsed();
        Some(took.saturating_sub(decision.waited()))
    }

    #[cfg(test)]
    pub(super) fn is_timed(self) -> bool {
        self.0.is_some()
    }
}
