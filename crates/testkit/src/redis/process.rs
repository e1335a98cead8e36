//! A process of ours: started, stopped, killed, always by its own number.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::undertaker::UNDERTAKER;
use super::wait::until;

/// A process, whatever program it runs. It is killed when dropped, and if the test process dies
/// without a word, with that.
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

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }

    /// Sends it a signal by name: `STOP`, `CONT`.
    pub fn signal(&self, name: &str) {
        let sent = Command::new("sh")
            .args(["-c", "kill -s \"$0\" \"$1\"", name, &self.id().to_string()])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "process {} got no signal {name}",
            self.id()
        );
    }

    /// Waits until it stands still, as it does after `STOP`.
    pub fn await_stopped(&self) {
        // Where there is no /proc to look into, the signal has to do.
        until("the process stands still", || {
            self.state().is_none_or(|state| state == 'T')
        });
    }

    /// The letter that the kernel gives its state.
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
