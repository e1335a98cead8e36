//! The signals that end the program, and the one that has it read its configuration again.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// SIGTERM, which supervisors send, and SIGINT, which is Ctrl-C.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// From here on signals are heard, and no longer end the process by themselves.
    pub fn listen() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for the next one, and tells its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}

/// SIGHUP, by which an operator asks for the configuration to be read again.
#[derive(Debug)]
pub struct Reloads(Signal);

impl Reloads {
    /// From here on SIGHUP is heard, and no longer ends the process by itself.
    pub fn listen() -> io::Result<Self> {
        signal(SignalKind::hangup()).map(Self)
    }

    /// Waits until a reload is asked for. Those that come while nobody waits are one.
    pub async fn next(&mut self) {
        // Only a runtime that is gone has no more of them.
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}
