//! A client, a proxy, Tidegate beside it, an application behind it.

use super::application::Application;
use super::client::{Client, Reply};
use super::folder::Folder;
use super::setup::{Addresses, Away, Setup};
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

/// How long a client waits: far longer than any proxy here waits for Tidegate.
const PATIENCE: Duration = Duration::from_secs(20);

/// The address from which the kit itself asks.
const KIT: u8 = 250;

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
    /// Starts it all, after a last change to the files: `tidegate.yaml`, and those of nginx and Traefik.
    /// Nothing if the proxy is not installed.
    pub(crate) fn start_with(
        setup: Setup,
        away: Away,
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
        tidegate.come_back();
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

    /// Starts it all, and waits until requests get through.
    pub(crate) fn open(setup: Setup, away: Away) -> Option<Self> {
        Self::open_with(setup, away, |_| {})
    }

    /// The same, after a last change to the files.
    pub(crate) fn open_with(
        setup: Setup,
        away: Away,
        change: impl FnOnce(&Folder),
    ) -> Option<Self> {
        let mut site = Self::start_with(setup, away, change)?;
        site.await_status(|status| status != 404);
        site.application.asked();
        Some(site)
    }

    /// Waits until the proxy answers, and with such a status.
    pub(crate) fn await_status(&mut self, is_expected: impl Fn(u16) -> bool) {
        until("the proxy answers", || {
            assert!(!self.proxy.has_ended(), "the proxy ended: {}", self.log());
            let reply = self.try_send(KIT, "GET / HTTP/1.1\r\nhost: kit\r\n\r\n");
            reply.is_some_and(|reply| is_expected(reply.status))
        });
    }

    /// Waits until the proxy has printed this.
    pub(crate) fn await_log(&self, text: &str) {
        until(text, || self.log().contains(text));
    }

    /// What the proxy has printed.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(log_in(&self.folder)).unwrap()
    }

    /// Gets a path through the proxy, from 127.0.0.`client`. `lines` are more lines of the head.
    pub(crate) fn get(&self, client: u8, path: &str, lines: &[&str]) -> Reply {
        self.ask(client, &format!("GET {path}"), lines)
    }

    /// Asks for `GET /path` and the like, with an empty body.
    pub(crate) fn ask(&self, client: u8, what: &str, lines: &[&str]) -> Reply {
        let reply = self.try_send(client, head(what, lines));
        reply.unwrap_or_else(|| panic!("no answer to {what} {lines:?}; {}", self.log()))
    }

    /// Sends bytes, and reads the reply if there is one.
    pub(crate) fn try_send(&self, client: u8, bytes: impl AsRef<[u8]>) -> Option<Reply> {
        let reply = exchange(self.address, client, bytes.as_ref());
        let reply = self
            .runtime
            .block_on(async { timeout(PATIENCE, reply).await });
        reply.expect("an answer, or an end, in time").ok().flatten()
    }

    /// Whether a request goes without an answer for a while; `meanwhile` then happens, and the answer
    /// is what comes of it.
    pub(crate) fn answer_after(&self, client: u8, meanwhile: impl FnOnce()) -> Reply {
        let bytes = head("GET /", &[]);
        let mut reply = Box::pin(exchange(self.address, client, bytes.as_bytes()));
        self.runtime.block_on(async {
            let early = timeout(Duration::from_millis(500), &mut reply).await;
            assert!(early.is_err(), "{early:?}");
            meanwhile();
            timeout(PATIENCE, reply).await.unwrap().unwrap().unwrap()
        })
    }

    /// Has a client ask until it has nothing left.
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

fn head(what: &str, lines: &[&str]) -> String {
    let mut head = format!("{what} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 0\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

async fn exchange(proxy: SocketAddr, client: u8, bytes: &[u8]) -> io::Result<Option<Reply>> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(([127, 0, 0, client], 0).into())?;
    let mut stream = socket.connect(proxy).await?;
    // A proxy that has read enough may answer before it has everything.
    stream.write_all(bytes).await.ok();
    Client::over(stream).try_reply().await
}
