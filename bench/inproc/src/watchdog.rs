//! Ends the program if a candidate hangs.
//!
//! A decision that spins cannot be interrupted from within, and a benchmark that hangs does not
//! show which row it was.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::Duration;

/// Watches until it is dropped.
pub(crate) struct Watchdog {
    /// Dropping it tells the watching thread that the run succeeded.
    _alive: Sender<()>,
}

impl Watchdog {
    /// Ends the program with a message if this still exists after `limit`.
    pub(crate) fn over(what: &str, limit: Duration) -> Self {
        let (alive, dropped) = mpsc::channel();
        let what = what.to_owned();
        thread::spawn(move || {
            if dropped.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                eprintln!("{what}: no answer within {} s", limit.as_secs());
                process::exit(1);
            }
        });
        Self { _alive: alive }
    }
}
