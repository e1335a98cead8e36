//! The program as a process.

use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

/// A running `tidegate`, which is ended when dropped.
pub(crate) struct Process {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    /// Lines of the log read so far.
    pub(crate) logged: Vec<String>,
}

/// How it ended.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// The program with these arguments, and no variables that it would heed.
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

/// The same with a soft and a hard limit on open files, as `prlimit` writes them.
#[cfg(target_os = "linux")]
pub(crate) fn limited(files: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new("prlimit");
    command
        .arg(format!("--nofile={files}"))
        .arg(env!("CARGO_BIN_EXE_tidegate"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs it to its end.
pub(crate) async fn run(mut command: Command) -> Ended {
    let output = command.output().await.unwrap();
    Ended {
        status: output.status,
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Process {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let log = BufReader::new(child.stderr.take().unwrap()).lines();
        Self {
            child,
            log,
            logged: Vec::new(),
        }
    }

    /// Waits for a line of the log that says `message` and has `field` as told.
    pub(crate) async fn logs(&mut self, message: &str, field: (&str, &str)) -> serde_json::Value {
        while let Some(line) = self.log.next_line().await.unwrap() {
            self.logged.push(line.clone());
            let line: serde_json::Value = serde_json::from_str(&line)
                .unwrap_or_else(|error| panic!("not a line of JSON: {error}: {line}"));
            if line["message"] == message && line[field.0] == field.1 {
                return line;
            }
        }
        panic!("never logged {message} {field:?}, but {:#?}", self.logged);
    }

    /// Waits until a door is open, and tells where.
    pub(crate) async fn address(&mut self, door: &str) -> SocketAddr {
        let line = self.logs("listening", ("door", door)).await;
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// Where a door is that was open before the last one that was waited for.
    pub(crate) fn opened(&self, door: &str) -> SocketAddr {
        let lines = self.logged.iter();
        let mut lines = lines.filter_map(|it| serde_json::from_str::<serde_json::Value>(it).ok());
        let line = lines.find(|it| it["message"] == "listening" && it["door"] == door);
        let line = line.unwrap_or_else(|| panic!("{door} is not among {:#?}", self.logged));
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// Sends a signal: `TERM`, `INT`.
    pub(crate) async fn signal(&self, name: &str) {
        let pid = self.child.id().expect("it runs").to_string();
        let sent = Command::new("kill")
            .args(["-s", name, &pid])
            .status()
            .await
            .unwrap();
        assert!(sent.success());
    }

    /// Lets it have so many files open, and no more.
    #[cfg(target_os = "linux")]
    pub(crate) async fn allow_files(&self, most: u32) {
        let pid = self.child.id().expect("it runs").to_string();
        let limit = format!("--nofile={most}:");
        let limited = Command::new("prlimit")
            .args(["--pid", &pid, &limit])
            .status()
            .await
            .unwrap();
        assert!(limited.success());
    }

    /// Waits for its end.
    pub(crate) async fn ended(mut self) -> Ended {
        let mut stdout = String::new();
        let mut pipe = self.child.stdout.take().unwrap();
        pipe.read_to_string(&mut stdout).await.unwrap();
        while let Some(line) = self.log.next_line().await.unwrap() {
            self.logged.push(line);
        }
        Ended {
            status: self.child.wait().await.unwrap(),
            stdout,
            stderr: self.logged.join("\n"),
        }
    }
}
