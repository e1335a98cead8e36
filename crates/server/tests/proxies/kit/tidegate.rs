//! The program, which can be made to hang, to go and to come back.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_testkit::redis::{Port, Process, until};

/// A `tidegate` that keeps its address.
pub(crate) struct Tidegate {
    config: PathBuf,
    port: Port,
    process: Option<Process>,
}

impl Tidegate {
    /// One with a configuration file, that has yet to [come](Self::come_back).
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

    /// From now on it takes connections and says nothing.
    pub(crate) fn hang(&self) {
        let process = self.process.as_ref().unwrap();
        process.signal("STOP");
        process.await_stopped();
    }

    /// It goes on where it stood.
    pub(crate) fn go_on(&self) {
        self.process.as_ref().unwrap().signal("CONT");
    }

    /// It is gone at once, without a word.
    pub(crate) fn go(&mut self) {
        self.process = None;
    }

    /// It starts, and has forgotten everything.
    pub(crate) fn come_back(&mut self) {
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
