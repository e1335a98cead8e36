//! A program that a test can pause, stop and start again.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_testkit::redis::{Port, Process, until};

/// A `tidegate` that keeps its address across restarts.
pub(crate) struct Tidegate {
    config: PathBuf,
    port: Port,
    process: Option<Process>,
}

impl Tidegate {
    /// Creates it with a configuration file; [`resume`](Self::resume) starts it.
    pub(crate) fn new(config: &Path) -> Self {
        Self {
            config: config.to_owned(),
            port: Port::lease(),
            process: None,
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.port.number()).into()
    }

    /// Pauses it: it accepts connections and sends nothing.
    pub(crate) fn hang(&self) {
        let process = self.process.as_ref().unwrap();
        process.signal("STOP");
        process.await_stopped();
    }

    /// Continues it.
    pub(crate) fn go_on(&self) {
        self.process.as_ref().unwrap().signal("CONT");
    }

    /// Kills it.
    pub(crate) fn go(&mut self) {
        self.process = None;
    }

    /// Starts it, with empty buckets.
    pub(crate) fn resume(&mut self) {
        let address = self.address();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args([
            "serve",
            "--admin",
            "127.0.0.1:0",
            "--http",
            &address.to_string(),
        ]);
        command.arg("--config").arg(&self.config).env_clear();
        let process = self.process.insert(Process::spawn(&mut command));
        until("Tidegate listens", || {
            assert!(!process.has_ended(), "Tidegate does not start");
            TcpStream::connect(address).is_ok()
        });
    }
}
