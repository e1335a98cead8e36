//! The log of problems with accepting.

use super::connection_handler::ListenerConfig;
use super::room::Origin;
use std::io;
use std::time::Duration;
use tokio::time::Instant;
use tracing::warn;

/// The problems that are already logged, so that a lasting one is logged once.
#[derive(Debug, Default)]
pub(super) struct AcceptLog {
    is_full: bool,
    is_failing: bool,
    /// The time at which a refused address may be logged again.
    refused_until: Option<Instant>,
}

/// The interval at which one of the refused addresses is logged.
const REFUSED_EVERY: Duration = Duration::from_mins(1);

impl AcceptLog {
    pub(super) fn note_room(&mut self, threshold: &ListenerConfig, left: usize) {
        let connections = threshold.bounds.connections;
        if left == 0 && !self.is_full {
            self.is_full = true;
            warn!(
                event = "listener_full",
                listener = threshold.name,
                connections,
                "listener full; closing its longest idle connections"
            );
        }
        // Reset only with ample room, or a listener that is just full would log each time.
        if left > connections / 10 {
            self.is_full = false;
        }
    }

    /// Logs an address that has all the connections that it may have.
    pub(super) fn note_refused(&mut self, threshold: &ListenerConfig, origin: Origin) {
        let now = Instant::now();
        if self.refused_until.is_none_or(|until| until <= now) {
            self.refused_until = Some(now + REFUSED_EVERY);
            warn!(
                event = "address_connections_full",
                listener = threshold.name,
                address = %origin.network,
                is_proxy = origin.is_proxy,
                "too many connections from one address; refusing new ones"
            );
        }
    }

    pub(super) fn note_success(&mut self) {
        self.is_failing = false;
    }

    /// Logs a failure to accept. Most often the process has no more file descriptors, and will have some
    /// again.
    pub(super) fn note_failure(&mut self, threshold: &ListenerConfig, error: &io::Error) {
        if !self.is_failing {
            self.is_failing = true;
            warn!(event = "accept_failed", listener = threshold.name, %error, "accept failed; retrying");
        }
    }
}
