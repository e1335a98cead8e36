//! The program as a process.

use super::client::{PATIENCE, in_time};
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStderr, Command};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// A running `tidegate`, which ends when this is dropped.
pub(crate) struct Process {
    child: Child,
    log: mpsc::UnboundedReceiver<String>,
    _reader: Tasks,
    /// Lines of the log read so far.
    pub(crate) logged: Vec<String>,
}

/// The result of a process.
pub(crate) struct ProcessEnd {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Returns the program with these arguments, and without variables that affect it.
pub(crate) fn tidegate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Returns the same with a soft and a hard limit on open files, as `prlimit` writes them.
#[cfg(target_os = "linux")]
pub(crate) fn limited(files: &str, arguments: &[&str]) -> Command {
    within(&["prlimit", &format!("--nofile={files}")], arguments)
}

/// Returns the same with a disk of this many KiB mounted at `folder`, which only this process sees.
#[cfg(target_os = "linux")]
pub(crate) fn with_disk(folder: &str, kib: u32, arguments: &[&str]) -> Command {
    let mount = format!(r#"mount -t tmpfs -o size={kib}k tmpfs "$0" && exec "$@""#);
    let unshare = ["unshare", "--user", "--map-root-user", "--mount"];
    within(
        &[&unshare[..], &["sh", "-c", &mount, folder]].concat(),
        arguments,
    )
}

/// Returns the program, started by another one with these arguments.
#[cfg(target_os = "linux")]
fn within(other: &[&str], arguments: &[&str]) -> Command {
    let mut command = Command::new(other[0]);
    command
        .args(&other[1..])
        .arg(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Reads the log as it is written, even if the test does not. Regression: a pipe holds 64 KiB, so a
/// program that logged more stopped in the middle of a request, and the test hung.
#[expect(
    clippy::disallowed_methods,
    reason = "the length of the test bounds the log"
)]
fn read_lines(log: ChildStderr, tasks: &Tasks) -> mpsc::UnboundedReceiver<String> {
    let (sender, receiver) = mpsc::unbounded_channel();
    tasks.spawn(async move {
        let mut lines = BufReader::new(log).lines();
        while let Some(line) = lines.next_line().await.unwrap() {
            // The test may have dropped the process already.
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Runs it to its end.
pub(crate) async fn run(mut command: Command) -> ProcessEnd {
    let what = format!("the end of {:?}", command.as_std());
    let output = in_time(&what, command.output()).await.unwrap();
    ProcessEnd {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let reader = Tasks::new();
        let log = read_lines(child.stderr.take().unwrap(), &reader);
        Self {
            child,
            log,
            _reader: reader,
            logged: Vec::new(),
        }
    }

    /// Waits for a log line with this `message` and this `field`.
    pub(crate) async fn logs(&mut self, message: &str, field: (&str, &str)) -> serde_json::Value {
        let logging = async {
            while let Some(line) = self.log.recv().await {
                self.logged.push(line.clone());
                let line: serde_json::Value = serde_json::from_str(&line)
                    .unwrap_or_else(|error| panic!("not a line of JSON: {error}: {line}"));
                if line["message"] == message && line[field.0] == field.1 {
                    return Some(line);
                }
            }
            None
        };
        let line = timeout(PATIENCE, logging).await.ok().flatten();
        line.unwrap_or_else(|| {
            panic!(
                "not logged within {PATIENCE:?}: {message} {field:?}, but {:#?}",
                self.logged
            )
        })
    }

    /// Waits until a listener is open, and returns its address.
    pub(crate) async fn address(&mut self, listener: &str) -> SocketAddr {
        let line = self.logs("listening", ("listener", listener)).await;
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// Returns the address of a listener that opened before the last one waited for.
    pub(crate) fn opened(&self, listener: &str) -> SocketAddr {
        let lines = self.logged.iter();
        let mut lines = lines.filter_map(|it| serde_json::from_str::<serde_json::Value>(it).ok());
        let line = lines.find(|it| it["message"] == "listening" && it["listener"] == listener);
        let line = line.unwrap_or_else(|| panic!("{listener} is not among {:#?}", self.logged));
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// Returns its number.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Sends a signal: `TERM`, `INT`.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.id().to_string();
        let sent = Command::new("kill").args(["-s", name, &pid]).status();
        assert!(in_time("the end of kill", sent).await.unwrap().success());
    }

    /// Sets its limit on open files.
    #[cfg(target_os = "linux")]
    pub(crate) async fn allow_files(&self, most: u32) {
        let pid = self.child.id().expect("it runs").to_string();
        let limit = format!("--nofile={most}:");
        let set = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .status();
        assert!(in_time("the end of prlimit", set).await.unwrap().success());
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> ProcessEnd {
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().unwrap();
        let ending = async {
            pipe.read_to_string(&mut stdout).await.unwrap();
            while let Some(line) = self.log.recv().await {
                self.logged.push(line);
            }
            self.child.wait().await.unwrap()
        };
        let status = in_time("the end of the program", ending).await;
        ProcessEnd {
            status,
            stdout,
            stderr: self.logged.join("\n"),
        }
    }
}
