//! The two programs, side by side.

use super::answer::Answer;
use super::counted::CountingStatsd;
use super::folder::Folder;
use super::programs::Program;
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tidegate_testkit::redis::{Port, Process, Server, until};

/// The logs of the two.
const LOGS: [&str; 2] = ["theirs.log", "ours.log"];

/// A call: its domain, the entries of each descriptor, and the hits that each states.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) domain: String,
    pub(crate) descriptors: Vec<Vec<(String, String)>>,
    pub(crate) hits: Option<u64>,
}

/// The store of Tidegate's buckets; envoyproxy/ratelimit has its counters in Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Buckets {
    InMemory,
    /// In the same Redis, under other names.
    InRedis,
}

/// envoyproxy/ratelimit and Tidegate, each with separate counters.
pub(crate) struct Pair {
    theirs: Port,
    ours: Port,
    folder: Folder,
    processes: [Process; 2],
    _ports: [Port; 2],
}

impl Pair {
    /// Starts both with these files. Returns `None` if envoyproxy/ratelimit is not installed.
    pub(crate) fn start(
        (redis, buckets): (&Server, Buckets),
        files: &[(String, String)],
    ) -> Option<Self> {
        Self::start_sending((redis, buckets), files, None)
    }

    /// Starts the same with buckets in memory and statistics: theirs, ours.
    pub(crate) fn start_counted(
        redis: &Server,
        files: &[(String, String)],
        counted: [&CountingStatsd; 2],
    ) -> Option<Self> {
        Self::start_sending((redis, Buckets::InMemory), files, Some(counted))
    }

    fn start_sending(
        (redis, buckets): (&Server, Buckets),
        files: &[(String, String)],
        counted: Option<[&CountingStatsd; 2]>,
    ) -> Option<Self> {
        let program = Program::Ratelimit.find()?;
        let folder = Folder::make();
        let config = folder.path().join("ratelimit/config");
        fs::create_dir_all(&config).unwrap();
        for (name, text) in files {
            fs::write(config.join(format!("{name}.yaml")), text).unwrap();
        }
        let (theirs, ours) = (Port::lease(), Port::lease());
        let ports = [Port::lease(), Port::lease()];
        let mut command = Command::new(program);
        command.env_clear();
        command.envs([
            ("RUNTIME_ROOT", folder.path().to_str().unwrap()),
            ("RUNTIME_SUBDIRECTORY", "ratelimit"),
            ("RUNTIME_WATCH_ROOT", "false"),
            ("USE_STATSD", "false"),
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", &redis.address()),
            ("BACKEND_TYPE", "redis"),
            ("LOG_LEVEL", "warn"),
        ]);
        let numbered = [
            ("PORT", &theirs),
            ("GRPC_PORT", &ports[0]),
            ("DEBUG_PORT", &ports[1]),
        ];
        command.envs(numbered.map(|(name, port)| (name, port.number().to_string())));
        // Its other two listeners are on this machine only as well.
        let hosts = ["HOST", "GRPC_HOST", "DEBUG_HOST"];
        command.envs(hosts.map(|name| (name, "127.0.0.1")));
        let mut statsd = "statsd: { enabled: false }\n".to_owned();
        if let Some([theirs, ours]) = counted {
            command.envs([
                ("USE_STATSD", "true"),
                ("STATSD_HOST", "127.0.0.1"),
                ("STATSD_PORT", &theirs.port().to_string()),
                ("STATS_FLUSH_INTERVAL", "1s"),
            ]);
            statsd = format!(
                "statsd: {{ address: '127.0.0.1:{}', protocol: tcp, interval: 1s, \
                 prefix: ratelimit.service.rate_limit }}\n",
                ours.port()
            );
        }
        folder.write("tidegate.yaml", &statsd);
        let mut ours_command = tidegate(&config, &ours);
        ours_command.arg("--config");
        ours_command.arg(folder.path().join("tidegate.yaml"));
        if buckets == Buckets::InRedis {
            // A long timeout, so that a busy machine does not change decisions.
            let url = redis.url();
            let store = [
                ("TIDEGATE_STORE_URL", url.as_str()),
                ("TIDEGATE_STORE_TIMEOUT", "10s"),
            ];
            ours_command.envs(store);
        }
        let log = |name: &str| folder.path().join(name);
        let processes = [
            Process::spawn_with_log(&mut command, &log(LOGS[0])),
            Process::spawn_with_log(&mut ours_command, &log(LOGS[1])),
        ];
        let mut pair = Self {
            theirs,
            ours,
            folder,
            processes,
            _ports: ports,
        };
        pair.await_both();
        Some(pair)
    }

    fn await_both(&mut self) {
        let healthy = "GET /healthcheck HTTP/1.1\r\nhost: kit\r\nconnection: close\r\n\r\n";
        let ports = [self.theirs.number(), self.ours.number()];
        for ((process, port), log) in self.processes.iter_mut().zip(ports).zip(LOGS) {
            until("both answer", || {
                let says = || fs::read_to_string(self.folder.path().join(log)).unwrap();
                assert!(!process.has_ended(), "{log}: {}", says());
                exchange(port, healthy).is_some_and(|(status, _)| status == 200)
            });
            // One of them starts without a configuration that it cannot parse.
            let says = fs::read_to_string(self.folder.path().join(log)).unwrap();
            assert!(!says.contains("level=error"), "{log}: {says}");
        }
    }

    /// Returns both responses to a call: theirs, ours.
    pub(crate) fn ask(&self, call: &Call) -> [Answer; 2] {
        let descriptor = |entries: &Vec<(String, String)>| {
            let entry = |(key, value): &(String, String)| json!({ "key": key, "value": value });
            let mut descriptor =
                json!({ "entries": entries.iter().map(entry).collect::<Vec<_>>() });
            if let Some(hits) = call.hits {
                descriptor["hitsAddend"] = json!(hits);
            }
            descriptor
        };
        let descriptors: Vec<_> = call.descriptors.iter().map(descriptor).collect();
        let body = json!({ "domain": call.domain, "descriptors": descriptors }).to_string();
        let request = format!(
            "POST /json HTTP/1.1\r\nhost: kit\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        [&self.theirs, &self.ours].map(|port| {
            let (status, text) = exchange(port.number(), &request).expect("an answer");
            Answer::read(status, &text)
        })
    }
}

/// Decides each limit separately, as the other program does.
fn tidegate(config: &Path, http: &Port) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.env_clear().args(["serve", "--evaluate", "each"]);
    command.args(["--admin", "127.0.0.1:0", "--grpc", "127.0.0.1:0"]);
    command.args(["--http", &format!("127.0.0.1:{}", http.number())]);
    command.arg("--envoy-config").arg(config);
    command
}

/// Returns status and body of a response.
fn exchange(port: u16, request: &str) -> Option<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let patience = Some(Duration::from_secs(30));
    stream.set_read_timeout(patience).unwrap();
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Compares within one hour of the clock, so that no window ends: repeats if `compare` began in
/// another hour than it ended. Each run gets a new Redis.
pub(crate) fn within_an_hour(compare: impl Fn(&Server) -> Vec<String>) {
    loop {
        let redis = Server::start();
        let hour = || {
            let time = redis.command(&["TIME"]);
            time.texts()[0].parse::<u64>().unwrap() / 3600
        };
        let before = hour();
        let differences = compare(&redis);
        if hour() == before {
            let (count, first) = (differences.len(), differences.iter().take(5));
            let first: Vec<&str> = first.map(String::as_str).collect();
            assert!(
                count == 0,
                "{count} differences, such as\n{}",
                first.join("\n")
            );
            return;
        }
    }
}
