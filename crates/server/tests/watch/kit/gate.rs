//! The program at work on a configuration.

use super::folder::Folder;
use super::process::{Process, tidegate};
use serde_json::Value;
use std::net::SocketAddr;

/// A running program, with a door for everything that the tests ask.
pub(crate) struct Gate {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// Where there are routes.
    pub(crate) gateway: Option<SocketAddr>,
    pub(crate) process: Process,
    _folder: Folder,
}

impl Gate {
    /// Where a door is that was opened before the one for operators.
    pub(crate) fn door(&self, name: &str) -> SocketAddr {
        let lines = self.process.logged.iter();
        let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line = lines.find(|line| line["message"] == "listening" && line["door"] == name);
        line.unwrap()["address"].as_str().unwrap().parse().unwrap()
    }

    /// Serves `config`, which says nothing of doors.
    pub(crate) async fn start(config: &str) -> Self {
        Self::with(config, &[]).await
    }

    /// The same with more flags.
    pub(crate) async fn with(config: &str, flags: &[&str]) -> Self {
        let has_routes = config.contains("routes:");
        let listen = if has_routes {
            "listen: { http: '127.0.0.1:0', gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }\n"
        } else {
            "listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }\n"
        };
        let folder = Folder::make();
        let file = folder.write("tidegate.yaml", format!("{listen}{config}"));
        let words = [&["serve", "--config", &file], flags].concat();
        let mut process = Process::start(tidegate(&words));
        let http = process.address("http").await;
        let gateway = if has_routes {
            Some(process.address("gateway").await)
        } else {
            None
        };
        let admin = process.address("admin").await;
        Self {
            http,
            admin,
            gateway,
            process,
            _folder: folder,
        }
    }
}
