//! The program with a source, and check requests under load.

use crate::admin::samples;
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::kit::{Client, get, in_time, post};
use parking_lot::Mutex;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;
use tidegate_net::tasks::Tasks;
use tokio::sync::watch;
use tokio::time::timeout;

pub(super) const SERVED: &str = "config source loaded";
pub(super) const REFUSED: &str = "config reload failed; keeping the previous config";
pub(super) const AWAY: &str = "config source unavailable; keeping its last version";
pub(super) const BACK: &str = "config source available again";

/// Listeners on free ports.
const LISTEN: &str = "listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }";

/// The number of source changes under load.
const CHANGES: u64 = 10;
/// The minimum number of responses between two changes.
const BETWEEN: u64 = 100;
/// The number of concurrent clients.
const CLIENTS: u64 = 4;
/// The time after which an event counts as missing.
pub(super) const PATIENCE: Duration = Duration::from_mins(1);

/// A policy with one limit, as text.
pub(super) fn policy(name: &str, rate: &str) -> String {
    format!(r#"{{"name": "{name}", "limits": [{{"name": "all", "rate": "{rate}"}}]}}"#)
}

/// A configuration with one policy, as text.
pub(super) fn policies(name: &str, rate: &str) -> String {
    format!("policies: [{}]", policy(name, rate))
}

/// The program.
pub(super) struct Program {
    pub(super) process: Process,
    pub(super) http: SocketAddr,
    pub(super) admin: SocketAddr,
    pub(super) folder: Folder,
}

impl Program {
    /// Serves `text` in a new file.
    pub(super) async fn start(text: &str) -> Self {
        Self::start_with(text, &[]).await
    }

    /// The same, with variables.
    pub(super) async fn start_with(text: &str, variables: &[(&str, &str)]) -> Self {
        let folder = Folder::make();
        let file = folder.write("tidegate.yaml", format!("{LISTEN}\n{text}"));
        let mut command = tidegate(&["serve", "--config", &file]);
        command.envs(variables.iter().copied());
        Self::opened(Process::start(command), folder).await
    }

    async fn opened(mut process: Process, folder: Folder) -> Self {
        let http = process.address("http").await;
        let admin = process.address("admin").await;
        Self {
            process,
            http,
            admin,
            folder,
        }
    }

    /// Replaces the text of the file.
    pub(super) fn write(&self, text: &str) {
        self.folder
            .write("tidegate.yaml", format!("{LISTEN}\n{text}"));
    }

    /// Waits until the log shows that a version of a source is served.
    pub(super) async fn serves(&mut self, source: &str, version: &str) {
        loop {
            let line = self.process.logs(SERVED, ("source", source)).await;
            if line["version"] == version {
                return;
            }
        }
    }

    /// Returns the rate of the limit that a request of a policy matches.
    pub(super) async fn band(&self, policy: &str) -> String {
        let reply = post(
            self.http,
            &format!(r#"{{"policy": "{policy}", "path": "/"}}"#),
        )
        .await;
        let json = reply.json();
        json["band"]
            .as_str()
            .unwrap_or_else(|| panic!("{json}"))
            .to_owned()
    }

    /// Returns a value from the metrics.
    pub(super) async fn sample(&self, name: &str) -> Option<f64> {
        let page = get(self.admin, "/metrics").await.body;
        samples(&page).get(name).copied()
    }

    /// Waits until a metric has this value.
    pub(super) async fn until(&self, name: &str, number: f64) {
        let is_there = async { while self.sample(name).await != Some(number) {} };
        let is_there = timeout(PATIENCE, is_there).await;
        is_there.unwrap_or_else(|_| panic!("{name} is not {number}"));
    }

    /// Returns the number of loads of a source with this `result`.
    pub(super) async fn loads(&self, source: &str, result: &str) -> u64 {
        let name =
            format!("tidegate_source_loads_total{{source=\"{source}\",outcome=\"{result}\"}}");
        let page = get(self.admin, "/metrics").await.body;
        let count = samples(&page).get(&name).map(ToString::to_string);
        count.unwrap_or_else(|| panic!("{name}")).parse().unwrap()
    }

    /// Returns true if the last load of a source failed.
    pub(super) async fn is_stale(&self, source: &str) -> bool {
        let name = format!("tidegate_source_stale{{source=\"{source}\"}}");
        self.sample(&name).await == Some(1.0)
    }
}

/// The state shared by clients and the changing task.
struct ChangeProgress {
    is_over: AtomicBool,
    /// The number of responses, and unexpected responses.
    answered: watch::Sender<(u64, Vec<String>)>,
    /// The rates of the responses.
    seen: Mutex<BTreeSet<u64>>,
}

impl ChangeProgress {
    async fn run(&self, http: SocketAddr, question: &str) {
        let mut client = Client::connect(http).await;
        while !self.is_over.load(SeqCst) {
            let reply = client.post(question).await;
            let json = if reply.status == 200 {
                reply.json()
            } else {
                Value::Null
            };
            let nth = (0..=CHANGES).find(|nth| json["band"] == nth_rate(*nth));
            let is_sound = json["allowed"] == true && nth.is_some();
            self.seen.lock().extend(nth);
            self.answered.send_modify(|(count, wrong)| {
                *count += 1;
                if !is_sound {
                    wrong.push(format!("{} {}", reply.status, reply.body));
                }
            });
        }
    }

    /// Waits until the minimum number of further responses has arrived, all as expected.
    async fn went_on(&self) {
        let mut answered = self.answered.subscribe();
        let target = answered.borrow_and_update().0 + BETWEEN;
        let now = answered.wait_for(|(count, _)| *count >= target);
        let now = timeout(PATIENCE, now)
            .await
            .expect("clients keep sending requests")
            .unwrap();
        assert_eq!(now.1, [] as [String; 0]);
    }
}

/// Returns the rate of the `nth` change as text.
pub(super) fn nth_rate(nth: u64) -> String {
    format!("{}/s", 1_000_000 + nth)
}

/// Sends check requests for a policy while `change` makes changes, one after the other, each to the
/// rate of [`nth_rate`]. One of them must decide every request.
pub(super) async fn under_load(
    program: &mut Program,
    policy: &str,
    mut change: impl AsyncFnMut(&mut Program, u64, String),
) {
    let course = Arc::new(ChangeProgress {
        is_over: AtomicBool::new(false),
        answered: watch::Sender::default(),
        seen: Mutex::default(),
    });
    let tasks = Tasks::new();
    for _ in 0..CLIENTS {
        let (course, http) = (Arc::clone(&course), program.http);
        let question = format!(r#"{{"policy": "{policy}", "path": "/"}}"#);
        tasks.spawn(async move { course.run(http, &question).await });
    }
    for nth in 1..=CHANGES {
        course.went_on().await;
        change(program, nth, nth_rate(nth)).await;
        // From here on this rate or a later one decides.
        assert_eq!(program.band(policy).await, nth_rate(nth));
    }
    course.went_on().await;
    course.is_over.store(true, SeqCst);
    in_time("the end of all clients", tasks.finished()).await;
    let seen = course.seen.lock().len();
    assert!(seen > 2, "no client saw a change");
}
