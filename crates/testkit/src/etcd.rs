//! A real etcd for tests.
#![expect(
    clippy::missing_panics_doc,
    reason = "what cannot be started fails the test"
)]

use crate::redis::flavour::{in_ci, in_path};
use crate::redis::reaper::{UNDERTAKER, remove};
use crate::redis::wait::PATIENCE;
use crate::redis::{Port, Process, until};
use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;

/// An etcd of one member. It ends with this value, and with the test process at the latest.
#[derive(Debug)]
pub struct EtcdServer {
    program: PathBuf,
    client: Port,
    peer: Port,
    folder: PathBuf,
    more_urls: Vec<String>,
    more: Vec<String>,
    process: Option<Process>,
}

impl EtcdServer {
    /// Starts one. Returns `None`, and reports it, if etcd is not installed; with `CI` set, panics
    /// instead.
    pub fn start() -> Option<Self> {
        Self::start_with(&[], &[])
    }

    /// Starts one that listens at `urls` as well, with `more` arguments.
    #[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
    pub fn start_with(urls: &[String], more: &[String]) -> Option<Self> {
        let named = std::env::var_os("TIDEGATE_TEST_ETCD").map(PathBuf::from);
        let Some(program) = named.or_else(|| in_path(OsStr::new("etcd"))) else {
            let missing = "etcd is not installed: ./scripts/test installs it, or set TIDEGATE_TEST_ETCD to its path";
            assert!(!in_ci(), "{missing}");
            eprintln!("skipped: {missing}");
            return None;
        };
        let mut etcd = Self {
            program,
            client: Port::lease(),
            peer: Port::lease(),
            folder: UNDERTAKER.folder(),
            more_urls: urls.to_vec(),
            more: more.to_vec(),
            process: None,
        };
        etcd.restart();
        Some(etcd)
    }

    /// Returns the address for clients, without TLS.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.client.number()))
    }

    /// Kills it. Its data stays.
    pub fn kill(&mut self) {
        self.process = None;
    }

    /// Starts it with the data that it has, and waits until it answers.
    pub fn restart(&mut self) {
        self.kill();
        let mut clients = vec![format!("http://{}", self.address())];
        clients.extend_from_slice(&self.more_urls);
        let (clients, peer) = (
            clients.join(","),
            format!("http://127.0.0.1:{}", self.peer.number()),
        );
        let mut command = Command::new(&self.program);
        command
            .args(["--name", "one", "--log-level", "error", "--data-dir"])
            .arg(self.folder.join("data"))
            .args([
                "--listen-client-urls",
                &clients,
                "--advertise-client-urls",
                &clients,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &format!("one={peer}")])
            .args(&self.more);
        self.process = Some(Process::spawn(&mut command));
        // It elects itself before it answers.
        until("etcd answers", || {
            self.call("kv/range", r#"{"key":"AA=="}"#).is_some()
        });
    }

    /// Calls a method of its JSON gateway, such as `kv/range`. Returns the body of the response, or `None`
    /// if there was none or it was an error.
    pub fn call(&self, method: &str, body: &str) -> Option<String> {
        let length = body.len();
        let mut stream = TcpStream::connect(self.address()).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        write!(
            stream,
            "POST /v3/{method} HTTP/1.0\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .ok()?;
        let mut response = String::new();
        stream.read_to_string(&mut response).ok()?;
        let (head, body) = response.split_once("\r\n\r\n")?;
        head.contains(" 200 OK").then(|| body.to_owned())
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
        remove(&self.folder);
    }
}
