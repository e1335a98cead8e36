//! An xDS server of Envoy's own library, and a Tidegate with limits from it.

use crate::kit::programs::Program;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tidegate_testkit::redis::{Process, until, until_some};

use crate::kit::Folder;

/// Bound of every wait for an answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// An xDS server, which ends when dropped.
pub(crate) struct ControlPlane {
    child: Child,
    commands: ChildStdin,
    /// The lines that it has printed.
    lines: Arc<Mutex<Vec<String>>>,
    pub(crate) address: SocketAddr,
}

impl ControlPlane {
    /// Starts a server on a free port; `None` if it is not installed.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        Self::start_at(([127, 0, 0, 1], 0).into(), arguments)
    }

    /// Starts a server at this address.
    pub(crate) fn start_at(address: SocketAddr, arguments: &[&str]) -> Option<Self> {
        let mut child = Command::new(Program::Xds.find()?)
            .args(["-listen", &address.to_string()])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let commands = child.stdin.take().unwrap();
        let printed = BufReader::new(child.stdout.take().unwrap()).lines();
        let lines = Arc::new(Mutex::new(Vec::<String>::new()));
        let seen = Arc::clone(&lines);
        thread::spawn(move || {
            for line in printed.map_while(Result::ok) {
                seen.lock().push(line);
            }
        });
        let first = until_some("the xDS server listens", || lines.lock().first().cloned());
        let address = first.strip_prefix("listening ").unwrap().parse().unwrap();
        Some(Self {
            child,
            commands,
            lines,
            address,
        })
    }

    /// Sets the resources for a node.
    pub(crate) fn set(&mut self, node: &str, version: &str, resources: &[Value]) {
        let command = json!({ "node": node, "version": version, "resources": resources });
        writeln!(self.commands, "{command}").unwrap();
    }

    /// Returns the requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        let lines = self.lines.lock();
        let requests = lines.iter().filter_map(|it| it.strip_prefix("request "));
        requests
            .map(|it| serde_json::from_str(it).unwrap())
            .collect()
    }

    /// True if a line was printed.
    pub(crate) fn has_logged(&self, line: &str) -> bool {
        self.lines.lock().iter().any(|it| it == line)
    }

    /// Waits for the response to a version: the request with its nonce. `is_accepted` selects
    /// acceptance or rejection.
    pub(crate) fn await_answer(&self, version: &str, is_accepted: bool) -> Value {
        let answer = || {
            let requests = self.requests();
            let mut answers = requests.into_iter().rev();
            answers.find(|it| {
                let error = it.get("errorDetail");
                it.get("responseNonce").is_some()
                    && error.is_none() == is_accepted
                    && (!is_accepted || it["versionInfo"] == version)
            })
        };
        until("the server has an answer", || answer().is_some());
        answer().unwrap()
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Returns a resource with a limit of this many calls per day for each user.
pub(crate) fn by_user(domain: &str, amount: u32) -> Value {
    let limit = json!({ "unit": "DAY", "requestsPerUnit": amount });
    let descriptors = json!([{ "key": "user", "rateLimit": limit }]);
    json!({ "name": domain, "domain": domain, "descriptors": descriptors })
}

/// The program, with its log.
pub(crate) struct LimitedServer {
    process: Process,
    folder: Folder,
}

impl LimitedServer {
    /// Starts it with these arguments and variables.
    pub(crate) fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_in(Folder::make(), arguments, variables)
    }

    /// Starts it with an existing folder.
    pub(crate) fn start_in(folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let anywhere = "127.0.0.1:0";
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.args([
            "serve", "--http", anywhere, "--grpc", anywhere, "--admin", anywhere,
        ]);
        command.args(arguments).env_clear();
        command.envs(variables.iter().copied());
        // Sends no statistics to a server of this machine.
        command.env("USE_STATSD", "false");
        let process = Process::spawn_with_log(&mut command, &folder.path().join("log"));
        Self { process, folder }
    }

    pub(crate) fn log(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.folder.path().join("log")).unwrap();
        // The last line may be incomplete.
        text.lines()
            .filter_map(|it| serde_json::from_str(it).ok())
            .collect()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// Returns the log lines with this event.
    pub(crate) fn events(&self, event: &str) -> Vec<Value> {
        let lines = self.log().into_iter();
        lines.filter(|it| it["event"] == event).collect()
    }

    pub(crate) fn await_event(&self, event: &str) -> Value {
        until(&format!("the log has {event}"), || {
            !self.events(event).is_empty()
        });
        self.events(event).remove(0)
    }

    /// Waits until a listener is open.
    pub(crate) fn address(&mut self, listener: &str) -> SocketAddr {
        let find = |log: Vec<Value>| {
            let mut lines = log.into_iter();
            lines.find(|it| it["event"] == "listening" && it["listener"] == listener)
        };
        until("Tidegate listens", || {
            assert!(!self.process.has_ended(), "it ended: {:#?}", self.log());
            find(self.log()).is_some()
        });
        let line = find(self.log()).unwrap();
        line["address"].as_str().unwrap().parse().unwrap()
    }

    /// Returns true if it runs without an open listener.
    pub(crate) fn waits(&mut self) -> bool {
        assert!(!self.process.has_ended(), "it ended: {:#?}", self.log());
        self.events("listening").is_empty()
    }

    pub(crate) fn get(&mut self, listener: &str, path: &str) -> String {
        let address = self.address(listener);
        exchange(
            address,
            &format!("GET {path} HTTP/1.1\r\nhost: kit\r\nconnection: close\r\n\r\n"),
        )
    }

    /// Sends a request of a user in a domain. Returns the code: `OK` or `OVER_LIMIT`.
    pub(crate) fn ask(&mut self, domain: &str, user: &str) -> String {
        let entries = json!([{ "key": "user", "value": user }]);
        let body = json!({ "domain": domain, "descriptors": [{ "entries": entries }] }).to_string();
        let (address, length) = (self.address("http"), body.len());
        let answer = exchange(
            address,
            &format!(
                "POST /json HTTP/1.1\r\nhost: kit\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
            ),
        );
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let body: Value = serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"));
        body["overallCode"].as_str().unwrap().to_owned()
    }

    /// Returns the number of a user's calls that pass before one is refused.
    pub(crate) fn passing(&mut self, domain: &str, user: &str) -> usize {
        (0..20)
            .take_while(|_| self.ask(domain, user) == "OK")
            .count()
    }

    /// Returns the limits in force, in order.
    pub(crate) fn limits(&mut self) -> Vec<String> {
        let answer = self.get("admin", "/rlconfig");
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let mut lines: Vec<String> = body.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// Waits until these limits are in force.
    pub(crate) fn await_limits(&mut self, expected: &[&str]) {
        let mut expected = expected.to_vec();
        expected.sort_unstable();
        until("the limits are in force", || self.limits() == expected);
    }

    /// Returns the value of a metric of the source.
    pub(crate) fn metric(&mut self, name: &str) -> Option<String> {
        let page = self.get("admin", "/metrics");
        let mut lines = page.lines();
        let line = lines.find(|it| it.starts_with(name) && it.contains(r#"source="xds""#))?;
        Some(line.rsplit_once(' ').unwrap().1.to_owned())
    }
}

fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    let read = stream.read_to_string(&mut answer);
    read.unwrap_or_else(|error| panic!("no whole answer to {request:?}: {error}"));
    answer
}
