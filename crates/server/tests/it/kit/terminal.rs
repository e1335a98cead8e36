//! A terminal, for output that differs on one.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Bound of a run.
const PATIENCE: Duration = Duration::from_mins(1);

/// The output of a program on a terminal, and how it ended.
pub(crate) struct TerminalOutput {
    pub(crate) status: ExitStatus,
    pub(crate) text: String,
}

/// Runs the program with a terminal as its input, output and error stream, and types `typed`.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)], typed: &str) -> TerminalOutput {
    let (mut screen, terminal) = open();
    let side = || Stdio::from(terminal.try_clone().unwrap());
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .env_clear()
        .env("TERM", "xterm")
        .envs(variables.iter().copied())
        .stdin(side())
        .stdout(side())
        .stderr(side())
        .spawn()
        .unwrap();
    drop(terminal);
    screen.write_all(typed.as_bytes()).unwrap();
    let (sender, read) = mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Reading fails once the terminal is closed.
        screen.read_to_end(&mut bytes).ok();
        sender.send(bytes).ok();
    });
    let Ok(bytes) = read.recv_timeout(PATIENCE) else {
        child.kill().ok();
        panic!("has not ended within {PATIENCE:?}: tidegate {arguments:?}");
    };
    TerminalOutput {
        status: child.wait().unwrap(),
        text: String::from_utf8(bytes).unwrap().replace("\r\n", "\n"),
    }
}

fn open() -> (File, OwnedFd) {
    use rustix::fs::{Mode, OFlags, open};
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let screen = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&screen).unwrap();
    unlockpt(&screen).unwrap();
    let name = ptsname(&screen, Vec::new()).unwrap();
    let flags = OFlags::RDWR | OFlags::NOCTTY;
    let terminal = open(name.as_c_str(), flags, Mode::empty()).unwrap();
    (File::from(screen), terminal)
}
