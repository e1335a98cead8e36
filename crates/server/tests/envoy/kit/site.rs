//! A client, Envoy, Tidegate next to it, and an application behind it.

use super::application::Application;
use super::client::{Client, Reply};
use super::folder::Folder;
use super::programs::Program;
use super::tidegate::Tidegate;
use futures_util::future::join_all;
use parking_lot::Mutex;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;
use tidegate_testkit::redis::{Port, Process, until};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// The client's timeout: far longer than Envoy's timeout for Tidegate.
const PATIENCE: Duration = Duration::from_secs(30);

/// The options of a site.
pub(crate) struct SiteOptions {
    /// Number of instances that Envoy calls in turn.
    pub(crate) tidegates: usize,
    /// Configuration before the policies, such as the store and `respond`.
    pub(crate) settings: String,
    /// Configuration of envoyproxy/ratelimit to serve instead, and flags for it.
    pub(crate) envoy_config: Option<(&'static str, &'static [&'static str])>,
    /// Flags that select another configuration; empty for none.
    pub(crate) arguments: Vec<String>,
    /// Envoy's timeout for Tidegate, long enough for a busy machine.
    pub(crate) timeout: &'static str,
    /// True if Envoy refuses all requests without Tidegate.
    pub(crate) deny: bool,
    /// Envoy's health checks: a list.
    pub(crate) health: &'static str,
    /// Envoy's connection to Tidegate: a transport socket.
    pub(crate) transport: String,
    /// Metadata that Envoy sends with every call: a list.
    pub(crate) metadata: &'static str,
}

impl Default for SiteOptions {
    fn default() -> Self {
        Self {
            tidegates: 1,
            settings: String::new(),
            envoy_config: None,
            arguments: Vec::new(),
            timeout: "20s",
            deny: true,
            health: "[]",
            transport: "null".to_owned(),
            metadata: "[]",
        }
    }
}

/// Everything that runs for a test.
pub(crate) struct Site {
    pub(crate) tidegates: Vec<Tidegate>,
    pub(crate) application: Application,
    envoy: Process,
    proxy: Port,
    admin: Port,
    runtime: Runtime,
    folder: Folder,
}

impl Site {
    /// Starts everything, and waits until requests pass. Returns `None` if Envoy is not installed.
    pub(crate) fn open(wanted: &SiteOptions) -> Option<Self> {
        let program = Program::Envoy.find()?;
        let runtime = Runtime::new().unwrap();
        let application = runtime.block_on(Application::start());
        let folder = Folder::make();
        let arguments = arguments(wanted, &folder);
        let tidegates: Vec<Tidegate> = (0..wanted.tidegates)
            .map(|_| Tidegate::start(&arguments))
            .collect();
        let (proxy, admin) = (Port::lease(), Port::lease());
        let text = include_str!("envoy.yaml")
            .replace("<proxy>", &proxy.number().to_string())
            .replace("<admin>", &admin.number().to_string())
            .replace("<application>", &application.address.port().to_string())
            .replace("<tidegates>", &endpoints(&tidegates))
            .replace("<health>", wanted.health)
            .replace("<transport>", &wanted.transport)
            .replace("<metadata>", wanted.metadata)
            .replace("<timeout>", wanted.timeout)
            .replace("<deny>", &wanted.deny.to_string());
        folder.write("envoy.yaml", &text);
        let envoy = start_envoy(&program, folder.path());
        let mut site = Self {
            tidegates,
            application,
            envoy,
            proxy,
            admin,
            runtime,
            folder,
        };
        site.await_envoy();
        Some(site)
    }

    fn await_envoy(&mut self) {
        until("Envoy answers", || {
            assert!(!self.envoy.has_ended(), "Envoy ended: {}", self.log());
            let reply = self.try_send(self.proxy.number(), &head("GET /free", &[]));
            reply.is_some_and(|reply| reply.status == 200)
        });
        self.application.asked();
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap()
    }

    /// Sends `GET /path` or similar through Envoy. `lines` are additional header lines.
    pub(crate) fn ask(&self, what: &str, lines: &[&str]) -> Reply {
        let reply = self.try_send(self.proxy.number(), &head(what, lines));
        reply.unwrap_or_else(|| panic!("no answer to {what} {lines:?}; {}", self.log()))
    }

    /// Sends this many requests concurrently; returns the number of responses with 200 and with
    /// 429. There are no others.
    pub(crate) fn ask_at_once(&self, times: usize, lines: &[&str]) -> (usize, usize) {
        let bytes = head("GET /", lines);
        let all = (0..times).map(|_| exchange(at(self.proxy.number()), &bytes));
        let replies = self
            .runtime
            .block_on(async { timeout(PATIENCE, join_all(all)).await });
        let replies = replies.expect("answers in time").into_iter();
        let statuses: Vec<u16> = replies.map(|it| it.unwrap().unwrap().status).collect();
        let count = |status| statuses.iter().filter(|it| **it == status).count();
        let (passed, refused) = (count(200), count(429));
        assert_eq!(passed + refused, times, "{statuses:?}");
        (passed, refused)
    }

    /// Sends requests repeatedly, `at_a_time` concurrently, while `meanwhile` changes the
    /// instances; it receives the current number of responses. Returns the statuses of all
    /// responses; 0 means none.
    pub(crate) fn ask_while(
        &mut self,
        at_a_time: usize,
        lines: &[&str],
        meanwhile: impl FnOnce(&mut [Tidegate], &dyn Fn() -> usize),
    ) -> Vec<u16> {
        let (bytes, address) = (head("GET /", lines), at(self.proxy.number()));
        let (statuses, is_over) = (Mutex::new(Vec::new()), AtomicBool::new(false));
        let over_and_over = || async {
            while !is_over.load(Relaxed) {
                let reply = timeout(PATIENCE, exchange(address, &bytes)).await;
                let reply = reply.ok().and_then(Result::ok).flatten();
                statuses.lock().push(reply.map_or(0, |it| it.status));
            }
        };
        let (runtime, tidegates) = (&self.runtime, &mut self.tidegates);
        thread::scope(|scope| {
            let asking = join_all((0..at_a_time).map(|_| over_and_over()));
            scope.spawn(|| runtime.block_on(asking));
            // Ends the client tasks even if `meanwhile` fails.
            let _ends = Ends(&is_over);
            meanwhile(tidegates, &|| statuses.lock().len());
        });
        statuses.into_inner()
    }

    /// Returns a descriptor's remaining requests, as another frontend of Tidegate reports them.
    pub(crate) fn left(&self, key: &str, value: &str) -> u64 {
        let body = format!(
            r#"{{"domain":"edge","descriptors":[{{"entries":[{{"key":"{key}","value":"{value}"}}],"hitsAddend":0}}]}}"#
        );
        let length = body.len();
        let question =
            format!("POST /json HTTP/1.1\r\nhost: kit\r\ncontent-length: {length}\r\n\r\n{body}");
        let reply = self.try_send(self.tidegates.last().unwrap().http().port(), &question);
        let status = &reply.expect("an answer").json()["statuses"][0];
        assert!(status["currentLimit"].is_object(), "no limit in {status}");
        // JSON omits a number of 0.
        status["limitRemaining"].as_u64().unwrap_or(0)
    }

    /// Returns a statistic of Envoy's calls to Tidegate, by the last part of its name.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        self.statistic(&format!("cluster.application.ratelimit.{name}"))
    }

    /// Returns the number of instances that Envoy considers healthy.
    pub(crate) fn well(&self) -> u64 {
        self.statistic("cluster.tidegate.membership_healthy")
    }

    fn statistic(&self, name: &str) -> u64 {
        let path = format!("GET /stats?filter={name}");
        let asked = whole(at(self.admin.number()), head(&path, &["connection: close"]));
        let stats = self
            .runtime
            .block_on(async { timeout(PATIENCE, asked).await });
        let stats = stats.expect("an answer in time").unwrap();
        let wanted = format!("{name}: ");
        let mut lines = stats.lines();
        // Envoy omits counters of 0.
        lines
            .find_map(|line| line.strip_prefix(&wanted)?.parse().ok())
            .unwrap_or(0)
    }

    fn try_send(&self, port: u16, bytes: &str) -> Option<Reply> {
        let reply = exchange(at(port), bytes);
        let reply = self
            .runtime
            .block_on(async { timeout(PATIENCE, reply).await });
        reply.expect("an answer, or an end, in time").ok().flatten()
    }
}

/// Writes Tidegate's configuration; returns the arguments that select it.
fn arguments(wanted: &SiteOptions, folder: &Folder) -> Vec<String> {
    if !wanted.arguments.is_empty() {
        return wanted.arguments.clone();
    }
    let (flag, text, more) = match wanted.envoy_config {
        Some((text, more)) => ("--envoy-config", text.to_owned(), more),
        None => {
            let text = format!("{}\n{}", wanted.settings, include_str!("tidegate.yaml"));
            ("--config", text, &[][..])
        }
    };
    folder.write("tidegate.yaml", &text);
    let path = folder.path().join("tidegate.yaml");
    let path = path.to_str().unwrap();
    let all = [flag, path].into_iter().chain(more.iter().copied());
    all.map(str::to_owned).collect()
}

/// Sets the flag when dropped.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

fn start_envoy(program: &Path, folder: &Path) -> Process {
    let mut command = Command::new(program);
    command.current_dir(folder).env_clear();
    command.args(["-c", "envoy.yaml", "--concurrency", "1"]);
    command.args(["--disable-hot-restart", "--log-level", "warning"]);
    Process::spawn_with_log(&mut command, &folder.join("log"))
}

fn endpoints(tidegates: &[Tidegate]) -> String {
    let endpoint = |it: &Tidegate| {
        let port = it.grpc().port();
        format!(
            "{{ endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {port} }} }} }} }}"
        )
    };
    let all: Vec<String> = tidegates.iter().map(endpoint).collect();
    all.join(", ")
}

fn head(what: &str, lines: &[&str]) -> String {
    let mut head = format!("{what} HTTP/1.1\r\nhost: shop.example\r\ncontent-length: 0\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

async fn exchange(address: SocketAddr, bytes: &str) -> io::Result<Option<Reply>> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(bytes.as_bytes()).await?;
    Client::over(stream).try_reply().await
}

/// Sends bytes, and reads everything until the end.
async fn whole(address: SocketAddr, bytes: String) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(bytes.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}
