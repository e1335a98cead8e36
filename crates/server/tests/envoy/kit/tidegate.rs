//! The program, which can be made to hang, to go and to come back.

use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use tidegate_testkit::redis::{Port, Process, until};

/// A `tidegate` that keeps its addresses.
pub(crate) struct Tidegate {
    /// What tells it where its configuration is.
    arguments: Vec<String>,
    http: Port,
    grpc: Port,
    process: Option<Process>,
}

impl Tidegate {
    /// One that is started with these arguments, which name its configuration.
    pub(crate) fn start(arguments: &[String]) -> Self {
        let mut tidegate = Self {
            arguments: arguments.to_owned(),
            http: Port::lease(),
            grpc: Port::lease(),
            process: None,
        };
        tidegate.come_back();
        tidegate
    }

    /// Where it is asked for decisions by HTTP.
    pub(crate) fn http(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.http.number()).into()
    }

    /// Where Envoy asks.
    pub(crate) fn grpc(&self) -> SocketAddr {
        ([127, 0, 0, 1], self.grpc.number()).into()
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

    /// It is told to go, and finishes what it has begun.
    pub(crate) fn take_leave(&self) {
        self.process.as_ref().unwrap().signal("TERM");
    }

    /// Whether it has gone.
    pub(crate) fn has_gone(&mut self) -> bool {
        self.process.as_mut().is_none_or(Process::has_ended)
    }

    /// It is gone at once, without a word.
    pub(crate) fn go(&mut self) {
        self.process = None;
    }

    /// It starts, and what was in its memory it has forgotten.
    pub(crate) fn come_back(&mut self) {
        let (http, grpc) = (self.http(), self.grpc());
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        // Long enough for an Envoy that asks after its health ten times a second.
        command.args(["serve", "--admin", "127.0.0.1:0", "--notice", "2"]);
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
