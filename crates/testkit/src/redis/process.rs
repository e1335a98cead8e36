//! A child process: started, stopped, killed, always by its own number.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::reaper::UNDERTAKER;
use super::wait::until;

/// Bound of a program that tests run to its end.
const RUN_MAX: Duration = Duration::from_mins(1);

/// Runs a program to its end, and returns what it printed.
///
/// # Panics
///
/// If it does not start, or has not ended within a minute. It is killed then.
pub fn output(command: &mut Command) -> Output {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
    let id = child.id();
    UNDERTAKER.watch(id);
    let (sender, ended) = mpsc::sync_channel(1);
    thread::spawn(move || sender.send(child.wait_with_output()));
    let ended = ended.recv_timeout(RUN_MAX);
    if ended.is_err() {
        signal(id, "KILL");
    }
    UNDERTAKER.forget(id);
    let output = ended.unwrap_or_else(|_| panic!("not ended within {RUN_MAX:?}: {command:?}"));
    output.expect("its output can be read")
}

/// Sends a signal by name to a process.
fn signal(id: u32, name: &str) {
    let sent = Command::new("sh")
        .args(["-c", "kill -s \"$0\" \"$1\"", name, &id.to_string()])
        .status();
    assert!(
        sent.is_ok_and(|status| status.success()),
        "process {id} got no signal {name}"
    );
}

/// A process, of any program. It is killed when dropped, and also if the test process is killed.
#[derive(Debug)]
pub struct Process(Child);

impl Process {
    /// Starts it; what it prints is dropped.
    pub fn spawn(command: &mut Command) -> Self {
        Self::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    }

    /// Starts it; what it prints is written to a file.
    pub fn spawn_with_log(command: &mut Command, log: &Path) -> Self {
        let log = File::create(log).expect("the log can be written");
        let same = log.try_clone().expect("a file can be written by two");
        Self::start(command.stdout(log).stderr(same))
    }

    fn start(command: &mut Command) -> Self {
        let child = command
            .stdin(Stdio::null())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?} does not start: {error}"));
        UNDERTAKER.watch(child.id());
        Self(child)
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Returns true if it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Sends it a signal by name: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Waits until it is stopped, as it is after `STOP`.
    pub fn await_stopped(&self) {
        // Without /proc, rely on the signal alone.
        until("the process stands still", || {
            self.state().is_none_or(|state| state == 'T')
        });
    }

    /// Returns the letter that the kernel gives its state.
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        // After the name, which is in parentheses and may hold anything.
        stat.rsplit_once(')')?.1.trim_start().chars().next()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        UNDERTAKER.forget(self.id());
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
