//! A client, Envoy, Tidegate beside it, an application behind it.

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

/// How long a client waits: far longer than Envoy here waits for Tidegate.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a test wants to be otherwise.
pub(crate) struct Wanted {
    /// How many instances Envoy asks in turn.
    pub(crate) tidegates: usize,
    /// What stands before the policies in the configuration: the store, the way of answering.
    pub(crate) settings: String,
    /// Configuration of envoyproxy/ratelimit that is served instead, and flags for it.
    pub(crate) envoy_config: Option<(&'static str, &'static [&'static str])>,
    /// How long Envoy waits for Tidegate: no test should fail because the machine is busy.
    pub(crate) timeout: &'static str,
    /// Whether nothing passes without Tidegate.
    pub(crate) deny: bool,
    /// How Envoy finds out who is well: a list.
    pub(crate) health: &'static str,
    /// How Envoy speaks to Tidegate: a transport socket.
    pub(crate) transport: String,
    /// What Envoy sends with every call: a list.
    pub(crate) metadata: &'static str,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            tidegates: 1,
            settings: String::new(),
            envoy_config: None,
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
    /// Starts it all, and waits until requests get through. Nothing if Envoy is not installed.
    pub(crate) fn open(wanted: &Wanted) -> Option<Self> {
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

    /// Asks through Envoy for `GET /path` and the like. `lines` are more lines of the head.
    pub(crate) fn ask(&self, what: &str, lines: &[&str]) -> Reply {
        let reply = self.try_send(self.proxy.number(), &head(what, lines));
        reply.unwrap_or_else(|| panic!("no answer to {what} {lines:?}; {}", self.log()))
    }

    /// Asks as often as told, all at the same time, and counts the answers with 200 and with 429:
    /// there are no others.
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

    /// Asks over and over, `at_a_time` at the same time, while something happens to the instances:
    /// `meanwhile` is told how many answers there are by now. The statuses of all answers; 0 is none.
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
            // Should it fail, those who ask must end all the same.
            let _ends = Ends(&is_over);
            meanwhile(tidegates, &|| statuses.lock().len());
        });
        statuses.into_inner()
    }

    /// How much is left for a descriptor, as Tidegate says it by another door.
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
        // A number of 0 is left out.
        status["limitRemaining"].as_u64().unwrap_or(0)
    }

    /// What Envoy has counted of its calls to Tidegate, by the last part of the name.
    pub(crate) fn counted(&self, name: &str) -> u64 {
        self.statistic(&format!("cluster.application.ratelimit.{name}"))
    }

    /// How many instances Envoy takes for well.
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
        // What never happened is not there.
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

/// Writes the configuration of Tidegate; what it is started with to find it.
fn arguments(wanted: &Wanted, folder: &Folder) -> Vec<String> {
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

/// Says that it is over when it goes.
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

/// Everything that comes until the end.
async fn whole(address: SocketAddr, bytes: String) -> io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(bytes.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
}
