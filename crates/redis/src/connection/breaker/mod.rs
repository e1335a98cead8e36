//! Leaves a node alone that fails, and comes back to it gently.
//!
//! A state machine without clock or I/O: whoever asks brings the time.
//!
//! ```text
//! closed ──5 in a row, or over half of ≥ 20 in a second──▶ open ──100 ms · 2^k──▶ half-open
//!    ▲                                                       ▲                      │ one probe
//!    └──────100 %── ramp 1, 2, 4 … % every 200 ms ◀──────────┼──────── passes ──────┤
//!                         └───────────── a failure ──────────┴──────── fails ───────┘
//! ```

use std::time::Duration;
use tokio::time::Instant;

/// So many failures in a row open it.
const IN_A_ROW: u32 = 5;
/// Over half of at least so many calls in one window open it.
const WINDOW_CALLS_MIN: u32 = 20;
const WINDOW: Duration = Duration::from_secs(1);
/// The first time open; doubled each time it opens again.
const OPEN_FIRST: Duration = Duration::from_millis(100);
const OPEN_MAX: Duration = Duration::from_secs(5);
/// How long each step of the ramp takes.
const RAMP_STEP: Duration = Duration::from_millis(200);
/// The last step of the ramp below everything: 1 % · 2^6 = 64 %.
const RAMP_LAST: u32 = 6;

/// The state of one node's breaker.
#[derive(Debug)]
pub(crate) struct Breaker {
    state: State,
    /// How often it opened since it was last closed.
    openings: u32,
    /// Counts changes of state: what was admitted before the last one has no say any more.
    era: u64,
}

#[derive(Debug)]
enum State {
    Closed {
        in_a_row: u32,
        window_from: Option<Instant>,
        calls: u32,
        failures: u32,
    },
    Open {
        until: Instant,
    },
    /// The probe is under way.
    Probing,
    Ramp {
        since: Instant,
        /// Hundredths of a call that are due.
        credit: u32,
    },
}

const CLOSED: State = State::Closed {
    in_a_row: 0,
    window_from: None,
    calls: 0,
    failures: 0,
};

/// Leave to call, to be brought back with the result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Leave {
    era: u64,
}

/// How a call went, as far as the node is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It answered.
    Good,
    /// It failed.
    Bad,
    /// It was never asked, or nobody waited for the answer.
    Unknown,
}

impl Breaker {
    pub(crate) fn new() -> Self {
        Self {
            state: CLOSED,
            openings: 0,
            era: 0,
        }
    }

    /// Leave to call the node now, or `None`.
    pub(crate) fn ask(&mut self, now: Instant) -> Option<Leave> {
        match &mut self.state {
            State::Closed { .. } => {}
            State::Probing => return None,
            State::Open { until } => {
                if now < *until {
                    return None;
                }
                self.enter(State::Probing);
            }
            State::Ramp { since, credit } => match share(*since, now) {
                None => {
                    self.openings = 0;
                    self.enter(CLOSED);
                }
                Some(share) => {
                    *credit += share;
                    // Where it is not due yet, what was gained stays.
                    *credit = credit.checked_sub(100)?;
                }
            },
        }
        Some(Leave { era: self.era })
    }

    /// Takes in how a call went. `random` is any number: it spreads instances apart. Tells whether
    /// this opened the breaker.
    pub(crate) fn report(
        &mut self,
        leave: Leave,
        verdict: Verdict,
        now: Instant,
        random: impl FnOnce() -> u64,
    ) -> bool {
        if leave.era != self.era {
            return false;
        }
        let is_too_much = match (&self.state, verdict) {
            (State::Closed { .. }, Verdict::Good | Verdict::Bad) => self.count(verdict, now),
            (State::Probing | State::Ramp { .. }, Verdict::Bad) => true,
            (State::Probing, Verdict::Good) => {
                self.ramp(now);
                false
            }
            (State::Probing, Verdict::Unknown) => {
                // The next one who asks is the probe.
                self.enter(State::Open { until: now });
                false
            }
            _ => false,
        };
        if is_too_much {
            self.open(now, random());
        }
        is_too_much
    }

    /// A new connection stands, which is as good as a probe.
    pub(crate) fn connected(&mut self, now: Instant) {
        if matches!(self.state, State::Open { .. } | State::Probing) {
            self.ramp(now);
        }
    }

    /// Whether nothing is held back.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed { .. })
    }

    /// Counts in the closed state; tells whether it is too much.
    fn count(&mut self, verdict: Verdict, now: Instant) -> bool {
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
        if verdict == Verdict::Good {
            *in_a_row = 0;
            return false;
        }
        *in_a_row = in_a_row.saturating_add(1);
        *failures = failures.saturating_add(1);
        let is_half = *calls >= WINDOW_CALLS_MIN && *failures > *calls / 2;
        *in_a_row >= IN_A_ROW || is_half
    }

    fn open(&mut self, now: Instant, random: u64) {
        let doubled = OPEN_FIRST.saturating_mul(1 << self.openings.min(16));
        self.openings = self.openings.saturating_add(1);
        // 50 % to 150 %.
        let percent = 50 + u32::try_from(random % 101).unwrap_or(0);
        let pause = doubled.min(OPEN_MAX) * percent / 100;
        self.enter(State::Open {
            until: now + pause.min(OPEN_MAX),
        });
    }

    fn ramp(&mut self, now: Instant) {
        self.enter(State::Ramp {
            since: now,
            // The first who asks goes.
            credit: 99,
        });
    }

    fn enter(&mut self, state: State) {
        self.state = state;
        self.era += 1;
    }
}

/// Which percentage of calls the ramp admits; `None` at its end.
fn share(since: Instant, now: Instant) -> Option<u32> {
    let steps = now.saturating_duration_since(since).as_millis() / RAMP_STEP.as_millis();
    let steps = u32::try_from(steps).unwrap_or(u32::MAX);
    (steps <= RAMP_LAST).then(|| 1 << steps)
}

#[cfg(test)]
mod tests;
