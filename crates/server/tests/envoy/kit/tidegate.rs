//! A program that a test can pause, stop and start again.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use tidegate_testkit::redis::{Port, Process, until};

/// A `tidegate` that keeps its addresses.
pub(crate) struct Tidegate {
    /// Arguments that select its configuration.
    arguments: Vec<String>,
    http: Port,
    grpc: Port,
    process: Option<Process>,
}

impl Tidegate {
    /// Starts an instance with these arguments, which select its configuration.
    pub(crate) fn start(arguments: &[String]) -> Self {
        let mut tidegate = Self {
            arguments: arguments.to_owned(),
            http: Port::lease(),
            grpc: Port::lease(),
            process: None,
        };
        tidegate.resume();
        tidegate
    }

    /// Returns the address of the HTTP API.
    pub(crate) fn http(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.http.number()).into()
    }

    /// Returns the address for Envoy.
    pub(crate) fn grpc(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.grpc.number()).into()
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

    /// Sends SIGTERM; it finishes pending requests.
    pub(crate) fn take_leave(&self) {
        self.process.as_ref().unwrap().signal("TERM");
    }

    /// Returns true if it has ended.
    pub(crate) fn has_gone(&mut self) -> bool {
        self.process.as_mut().is_none_or(Process::has_ended)
    }

    /// Kills it.
    pub(crate) fn go(&mut self) {
        self.process = None;
    }

    /// Starts it again, with empty buckets in memory.
    pub(crate) fn resume(&mut self) {
        let (http, grpc) = (self.http(), self.grpc());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        // Long enough for an Envoy with ten health checks a second.
        command.args(["serve", "--admin", "127.0.0.1:0", "--shutdown-delay", "2"]);
        command.args(["--http", &http.to_string()]);
        command.args(["--grpc", &grpc.to_string()]);
        command.args(&self.arguments).env_clear();
        let process = self.process.insert(Process::spawn(&mut command));
        until("Tidegate listens", || {
            assert!(!process.has_ended(), "Tidegate does not start");
            TcpStream::connect(http).is_ok() && TcpStream::connect(grpc).is_ok()
        });
    }
}
