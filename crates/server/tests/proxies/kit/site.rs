//! A client, a proxy, Tidegate next to it, and an application behind it.

use super::application::Application;
use super::client::{Client, Reply};
use super::folder::Folder;
use super::setup::{Addresses, FailureMode, Setup};
use super::tidegate::Tidegate;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate_testkit::redis::{Port, Process, until};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// The client's timeout: far longer than any proxy's timeout for Tidegate.
const PATIENCE: Duration = Duration::from_secs(20);

/// The client address of the kit itself.
const KIT: u8 = 250;

/// The host in client requests.
const HOST: &str = "shop.example";

/// Everything that runs for a test.
pub(crate) struct Site {
    pub(crate) setup: Setup,
    pub(crate) tidegate: Tidegate,
    pub(crate) application: Application,
    proxy: Process,
    address: SocketAddr,
    runtime: Runtime,
    folder: Folder,
    _port: Port,
}

impl Site {
    /// Starts everything, after a last change to the files: `tidegate.yaml`, and those of nginx and
    /// Traefik. Returns `None` if the proxy is not installed.
    pub(crate) fn start_with(
        setup: Setup,
        away: FailureMode,
        change: impl FnOnce(&Folder),
    ) -> Option<Self> {
        let program = setup.program().find()?;
        let runtime = Runtime::new().unwrap();
        let application = runtime.block_on(Application::start());
        let folder = Folder::make();
        let mut tidegate = Tidegate::new(&setup.copy_tidegate(&folder));
        let port = Port::lease();
        let address = SocketAddr::from(([127, 0, 0, 1], port.number()));
        let addresses = Addresses {
            proxy: address,
            tidegate: tidegate.address(),
            application: application.address,
        };
        let mut command = setup.command(&program, &folder, addresses, away);
        change(&folder);
        tidegate.resume();
        let proxy = Process::spawn_with_log(&mut command, &log_in(&folder));
        Some(Self {
            setup,
            tidegate,
            application,
            proxy,
            address,
            runtime,
            folder,
            _port: port,
        })
    }

    /// Starts everything, and waits until requests pass.
    pub(crate) fn open(setup: Setup, away: FailureMode) -> Option<Self> {
        Self::open_with(setup, away, |_| {})
    }

    /// Starts the same, after a last change to the files.
    pub(crate) fn open_with(
        setup: Setup,
        away: FailureMode,
        change: impl FnOnce(&Folder),
    ) -> Option<Self> {
        let mut site = Self::start_with(setup, away, change)?;
        site.await_status(|status| status != 404);
        site.application.asked();
        Some(site)
    }

    /// Waits until the proxy replies with an expected status.
    pub(crate) fn await_status(&mut self, is_expected: impl Fn(u16) -> bool) {
        until("the proxy answers", || {
            assert!(!self.proxy.has_ended(), "the proxy ended: {}", self.log());
            let reply = self.try_send(KIT, "GET / HTTP/1.1\r\nhost: kit\r\n\r\n");
            reply.is_some_and(|reply| is_expected(reply.status))
        });
    }

    /// Waits until the proxy has logged this.
    pub(crate) fn await_log(&self, text: &str) {
        until(text, || self.log().contains(text));
    }

    /// Returns the output of the proxy.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(log_in(&self.folder)).unwrap()
    }

    /// Gets a path through the proxy, from 127.0.0.`client`. `lines` are additional header lines.
    pub(crate) fn get(&self, client: u8, path: &str, lines: &[&str]) -> Reply {
        self.ask(client, &format!("GET {path}"), lines)
    }

    /// Sends `GET /path` or similar, with an empty body.
    pub(crate) fn ask(&self, client: u8, what: &str, lines: &[&str]) -> Reply {
        let reply = self.try_send(client, head(what, HOST, lines));
        reply.unwrap_or_else(|| panic!("no answer to {what} {lines:?}; {}", self.log()))
    }

    /// Sends bytes, and reads the response if there is one.
    pub(crate) fn try_send(&self, client: u8, bytes: impl AsRef<[u8]>) -> Option<Reply> {
        let reply = exchange(self.address, client, bytes.as_ref());
        let reply = self
            .runtime
            .block_on(async { timeout(PATIENCE, reply).await });
        reply.expect("an answer, or an end, in time").ok().flatten()
    }

    /// Sends a request, expects no response for a while, runs `meanwhile`, and returns the
    /// response.
    pub(crate) fn answer_after(&self, client: u8, meanwhile: impl FnOnce()) -> Reply {
        let bytes = head("GET /", HOST, &[]);
        let mut reply = Box::pin(exchange(self.address, client, bytes.as_bytes()));
        self.runtime.block_on(async {
            let early = timeout(Duration::from_millis(500), &mut reply).await;
            assert!(early.is_err(), "{early:?}");
            meanwhile();
            timeout(PATIENCE, reply).await.unwrap().unwrap().unwrap()
        })
    }

    /// Sends requests of a client until it has no units left.
    pub(crate) fn use_up(&self, client: u8) {
        for _ in 0..3 {
            assert_eq!(self.get(client, "/", &[]).status, 200);
        }
        assert_eq!(self.get(client, "/", &[]).status, 429);
        self.application.asked();
    }
}

fn log_in(folder: &Folder) -> PathBuf {
    folder.path().join("log")
}

/// Returns the head of a request such as `GET /path`.
pub(crate) fn head(what: &str, host: &str, lines: &[&str]) -> String {
    let mut head = format!("{what} HTTP/1.1\r\nhost: {host}\r\ncontent-length: 0\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

/// Sends bytes from 127.0.0.`client`, and reads the response if there is one.
pub(crate) async fn exchange(
    proxy: SocketAddr,
    client: u8,
    bytes: &[u8],
) -> io::Result<Option<Reply>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, client], 0).into())?;
    let mut stream = socket.connect(proxy).await?;
    // A proxy may reply before it has received everything.
    stream.write_all(bytes).await.ok();
    Client::over(stream).try_reply().await
}
