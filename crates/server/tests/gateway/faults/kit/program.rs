//! The gateway as a separate process.

use super::Page;
use super::folder::Folder;
use crate::kit::in_time;
use std::fs;
use std::net::SocketAddr;
use std::process::{ExitStatus, Stdio};
use tidegate_net::tasks::Tasks;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::oneshot;

/// A running `tidegate serve`, which ends when this is dropped.
pub(crate) struct Program {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    child: Child,
    /// Output after its listeners were open, once it has ended.
    said: oneshot::Receiver<Vec<String>>,
    _tasks: Tasks,
    _folder: Folder,
}

impl Program {
    pub(crate) async fn start(config: &str) -> Self {
        let folder = Folder::make();
        let file = folder.write("tidegate.yaml", config);
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "--config", &file])
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let (mut gateway, mut admin) = (None, None);
        while gateway.is_none() || admin.is_none() {
            let line = in_time("a line of the log", log.next_line()).await;
            let line = line.unwrap().expect("the listeners, not the end");
            let line: serde_json::Value = serde_json::from_str(&line).unwrap();
            if line["message"] != "listening" {
                continue;
            }
            let address = line["address"].as_str().and_then(|it| it.parse().ok());
            match line["listener"].as_str() {
                Some("gateway") => gateway = address,
                Some("admin") => admin = address,
                _ => {}
            }
        }
        let (tell, said) = oneshot::channel();
        let tasks = Tasks::new();
        // Its output has to be read: a pipe holds 64 KiB, and a full pipe blocks the writer.
        tasks.spawn(async move {
            let mut lines = Vec::new();
            while let Ok(Some(line)) = log.next_line().await {
                lines.push(line);
            }
            tell.send(lines).ok();
        });
        Self {
            address: gateway.unwrap(),
            admin: admin.unwrap(),
            child,
            said,
            _tasks: tasks,
            _folder: folder,
        }
    }

    pub(crate) async fn page(&self) -> Page {
        Page::read(self.admin).await
    }

    /// Sends SIGTERM.
    pub(crate) async fn terminate(&self) {
        let pid = self.pid().to_string();
        let sent = Command::new("kill")
            .args(["-s", "TERM", &pid])
            .status()
            .await;
        assert!(sent.unwrap().success());
    }

    /// Waits for its end; returns its exit status and its output.
    pub(crate) async fn ended(mut self) -> (ExitStatus, Vec<String>) {
        let ended = async {
            let said = self.said.await.unwrap();
            (self.child.wait().await.unwrap(), said)
        };
        in_time("the end of the program", ended).await
    }

    /// Returns the number of its open sockets, including listeners.
    pub(crate) fn sockets(&self) -> usize {
        let files = fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap();
        // A socket that was closed in between is not counted.
        let is_socket = |file: &fs::DirEntry| {
            let target = fs::read_link(file.path());
            target.is_ok_and(|it| it.to_string_lossy().starts_with("socket:"))
        };
        files.filter_map(Result::ok).filter(is_socket).count()
    }

    /// Returns its resident memory in bytes.
    pub(crate) fn memory(&self) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let size = line.and_then(|it| it.split_whitespace().next()).unwrap();
        size.parse::<usize>().unwrap() << 10
    }

    fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }
}
