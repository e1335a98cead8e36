//! The running program.

use super::folder::Folder;
use super::process::{Process, tidegate};
use serde_json::Value;
use std::net::SocketAddr;

/// A running program, with a listener for each API that the tests use.
pub(crate) struct Gate {
    pub(crate) http: SocketAddr,
    pub(crate) admin: SocketAddr,
    /// `None` without routes.
    pub(crate) gateway: Option<SocketAddr>,
    pub(crate) process: Process,
    _folder: Folder,
}

impl Gate {
    /// Returns the address of a listener that opened before the admin listener.
    pub(crate) fn listener(&self, name: &str) -> SocketAddr {
        let lines = self.process.logged.iter();
        let mut lines = lines.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let line = lines.find(|line| line["message"] == "listening" && line["listener"] == name);
        line.unwrap()["address"].as_str().unwrap().parse().unwrap()
    }

    /// Serves `config`, which has no `listen`.
    pub(crate) async fn start(config: &str) -> Self {
        Self::with(config, &[]).await
    }

    /// Serves it with more flags.
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
