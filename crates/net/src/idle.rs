//! Detection of idle connections.

use super::idle_clock::{Pulse, ResponseTurn};
use std::time::Duration;
use tokio::time::sleep;

/// The number of checks before a connection is given up.
pub(super) const LOOKS: u32 = 5;

/// Waits until nothing has happened for `time_max`, or up to a fifth longer: no request began, and no request
/// is in flight, or the client does not read its response.
///
/// It checks periodically, so that a request costs no timer and reads no clock.
pub(super) async fn idle(pulse: &Pulse, time_max: Duration) {
    let mut quiet = QuietTime::at(pulse);
    while !quiet.look(pulse) {
        sleep(time_max / LOOKS).await;
    }
}

/// The time for which a connection has been quiet, in checks.
#[derive(Debug)]
pub(super) struct QuietTime {
    seen: ActivitySnapshot,
    looks: Option<u32>,
}

/// A snapshot of a connection's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ActivitySnapshot {
    requests: u64,
    turns: u64,
    is_busy: bool,
}

impl QuietTime {
    pub(super) fn at(pulse: &Pulse) -> Self {
        Self {
            seen: ActivitySnapshot::at(pulse),
            looks: None,
        }
    }

    /// Checks once more. Returns true if the connection was quiet for enough checks. The first check is the
    /// baseline.
    pub(super) fn look(&mut self, pulse: &Pulse) -> bool {
        let now = ActivitySnapshot::at(pulse);
        let is_quiet = now == self.seen && !now.is_ours();
        let looks = match self.looks {
            Some(looks) if is_quiet => looks.saturating_add(1),
            Some(_) | None => 0,
        };
        self.seen = now;
        self.looks = Some(looks);
        looks >= LOOKS
    }
}

impl ActivitySnapshot {
    fn at(pulse: &Pulse) -> Self {
        Self {
            requests: pulse.requests(),
            turns: pulse.strand().turns(),
            is_busy: pulse.is_busy(),
        }
    }

    /// Returns true if the server is to continue, and not the client.
    fn is_ours(self) -> bool {
        self.is_busy && !ResponseTurn::is_clients(self.turns)
    }
}
