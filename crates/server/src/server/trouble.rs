//! What an acceptor tells the log.

use super::reception::Threshold;
use std::io;
use tracing::warn;

/// What has been complained about already, so that trouble that lasts is told once.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    is_full: bool,
    is_failing: bool,
}

impl Trouble {
    pub(super) fn note_room(&mut self, threshold: &Threshold, left: usize) {
        let connections = threshold.bounds.connections;
        if left == 0 && !self.is_full {
            self.is_full = true;
            warn!(
                door = threshold.name,
                connections, "the door is full; further connections wait until one ends"
            );
        }
        // Only once there is room to speak of, or a door that is just full would tell it each time.
        if left > connections / 10 {
            self.is_full = false;
        }
    }

    pub(super) fn note_success(&mut self) {
        self.is_failing = false;
    }

    /// Most often the process has no more file descriptors, and will have some again.
    pub(super) fn note_failure(&mut self, threshold: &Threshold, error: &io::Error) {
        if !self.is_failing {
            self.is_failing = true;
            warn!(door = threshold.name, %error, "cannot accept connections; trying on");
        }
    }
}
