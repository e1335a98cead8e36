//! Stops calls to a node that fails.
//!
//! A state machine without clock or I/O: callers bring the time.
//!
//! ```text
//! closed ──5 failures in a row, or over half of ≥ 20 calls in a second──▶ open
//!    ▲                                                                     │
//!    └─────────────────────── a probe succeeds ◀───────────────────────────┘
//! ```
//!
//! An open breaker admits no call at all. `probe` sends the probes and closes it.

use std::time::Duration;
use tokio::time::Instant;

/// The number of consecutive failures that opens it.
const IN_A_ROW: u32 = 5;
/// The minimum number of calls in a window; it opens if over half of them fail.
const WINDOW_CALLS_MIN: u32 = 20;
/// The length of a window in which calls and failures are counted.
const WINDOW: Duration = Duration::from_secs(1);

/// The state of one node's breaker.
#[derive(Debug)]
pub(crate) struct Breaker {
    state: State,
    /// Number of state changes. Calls that were admitted before the last one are not counted.
    era: u64,
}

/// The two states of a breaker. There is no half-open state: a probe closes it for all calls together.
#[derive(Debug)]
enum State {
    Closed {
        in_a_row: u32,
        window_from: Option<Instant>,
        calls: u32,
        failures: u32,
    },
    Open,
}

/// A closed breaker that has counted nothing.
const CLOSED: State = State::Closed {
    in_a_row: 0,
    window_from: None,
    calls: 0,
    failures: 0,
};

/// Leave to call, to be brought back with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BreakerPass {
    era: u64,
}

/// The result of a call, as a sign of the node's health.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallHealth {
    /// It answered.
    Good,
    /// It failed.
    Bad,
    /// The node was not called, or the caller gave up before the reply.
    Unknown,
}

impl Breaker {
    /// Returns a closed breaker.
    pub(crate) fn new() -> Self {
        Self {
            state: CLOSED,
            era: 0,
        }
    }

    /// Returns leave to call the node, or `None` while the breaker is open.
    pub(crate) fn ask(&self) -> Option<BreakerPass> {
        self.is_closed().then_some(BreakerPass { era: self.era })
    }

    /// Counts the result of a call. Returns true if this opened the breaker.
    pub(crate) fn report(&mut self, leave: BreakerPass, verdict: CallHealth, now: Instant) -> bool {
        if leave.era != self.era || verdict == CallHealth::Unknown {
            return false;
        }
        let is_too_much = self.count(verdict, now);
        if is_too_much {
            self.enter(State::Open);
        }
        is_too_much
    }

    /// Admits all calls again.
    pub(crate) fn close(&mut self) {
        if !self.is_closed() {
            self.enter(CLOSED);
        }
    }

    /// Returns true if calls are admitted.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Counts in the closed state. Returns true if there were too many failures.
    fn count(&mut self, verdict: CallHealth, now: Instant) -> bool {
        let State::Closed {
            in_a_row,
            window_from,
            calls,
            failures,
        } = &mut self.state
        else {
            return false;
        };
        let is_same_window = window_from.is_some_and(|from| now < from + WINDOW);
        if !is_same_window {
            *window_from = Some(now);
            *calls = 0;
            *failures = 0;
        }
        *calls = calls.saturating_add(1);
        if verdict == CallHealth::Good {
            *in_a_row = 0;
            return false;
        }
        *in_a_row = in_a_row.saturating_add(1);
        *failures = failures.saturating_add(1);
        let is_half = *calls >= WINDOW_CALLS_MIN && *failures > *calls / 2;
        *in_a_row >= IN_A_ROW || is_half
    }

    /// Changes the state. Results of calls from before are ignored from now on.
    fn enter(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }
}

#[cfg(test)]
mod tests;
