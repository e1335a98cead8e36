//! The signals that end the program, and the one that reloads its configuration.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, which supervisors send, and SIGINT, which is Ctrl-C.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Starts handling the signals, which from here on no longer end the process automatically.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next signal, and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// SIGHUP, by which an operator requests a reload of the configuration.
#[derive(Debug)]
pub struct Reloads(Signal);

impl Reloads {
    /// Starts handling SIGHUP, which from here on no longer ends the process automatically.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits until a reload is requested. Requests between two calls are merged into one.
    pub async fn next(&mut self) {
        // Only a runtime that is gone has no more of them.
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
