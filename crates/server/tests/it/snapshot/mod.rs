//! Snapshots: the program is stopped, killed and started again, and its buckets go on.

mod files;
mod kills;

use crate::kit::folder::Folder;
use crate::kit::process::{Process, ProcessEnd, tidegate};
use crate::kit::{Reply, get, post};
use std::net::SocketAddr;
use tokio::process::Command;

/// A policy with limits of all algorithms, each of a day, so that nothing refills meanwhile.
const POLICIES: &str = "
policies:
  - name: api
    limits:
      - { name: tokens, key: user, rate: 1000/d }
      - { name: fixed, key: user, rate: 1000/d, algorithm: fixed-window }
      - { name: log, key: user, rate: 1000/d, algorithm: sliding-log }
      - { name: parts, key: user, rate: 1000/d, algorithm: bucketed-window }
  - name: login
    limits:
      - { name: tries, key: ip, rate: 2/min, block: 1h }
  - name: llm
    reserve: { default_ttl: 10min, max_ttl: 10min }
    limits:
      - { name: tokens, key: user, rate: 1000/d }
      - { name: fixed, key: user, rate: 1000/d, algorithm: fixed-window }
  - name: plain
    limits:
      - { name: fixed, key: user, rate: 1000000/d, algorithm: fixed-window }
  - name: budget
    limits:
      - { name: year, key: user, unit: tokens, rate: 1000000/year, time_zone: Asia/Kolkata, anchor: '2026-07-01T09:30' }
  - name: history
    limits:
      - { name: log, key: user, rate: 1000000/d, algorithm: bucketed-window }
";

/// A folder with a configuration, and the processes that use it one after the other.
pub(super) struct Home {
    folder: Folder,
    config: String,
    /// The file of the snapshot.
    file: String,
}

impl Home {
    fn new(policies: &str, every: &str) -> Self {
        let folder = Folder::make();
        // The text names a file in the folder, whose path is known once a file is written.
        let snapshot = folder.write("buckets", "");
        std::fs::remove_file(&snapshot).unwrap();
        let text = format!(
            "listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}\n\
             store: {{ url: memory, max_keys: 10000, snapshot: {{ file: '{snapshot}', every: {every} }} }}\n\
             {policies}"
        );
        let config = folder.write("tidegate.yaml", text);
        Self {
            folder,
            config,
            file: snapshot,
        }
    }

    async fn start(&self) -> RunningProgram {
        self.start_as(tidegate).await
    }

    /// Starts the program by the command that `program` makes of its arguments.
    async fn start_as(&self, program: impl FnOnce(&[&str]) -> Command) -> RunningProgram {
        let mut process = Process::start(program(&["serve", "--config", &self.config]));
        let admin = process.address("admin").await;
        let http = process.opened("http");
        RunningProgram {
            process,
            http,
            admin,
        }
    }
}

/// A process that serves.
pub(super) struct RunningProgram {
    process: Process,
    http: SocketAddr,
    admin: SocketAddr,
}

impl RunningProgram {
    async fn check(&self, body: &str) -> Reply {
        post(self.http, body).await
    }

    async fn remaining(&self, body: &str) -> u64 {
        let reply = self.check(body).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["remaining"].as_u64().unwrap()
    }

    async fn status(&self) -> serde_json::Value {
        get(self.admin, "/status").await.json()["store"]["snapshot"].clone()
    }

    async fn metric(&self, name: &str) -> f64 {
        let page = get(self.admin, "/metrics").await.body;
        let line = page.lines().find(|line| line.starts_with(name));
        let value = line.and_then(|line| line.rsplit(' ').next());
        value
            .unwrap_or_else(|| panic!("{name} is not in {page}"))
            .parse()
            .unwrap()
    }

    async fn stop(self) -> ProcessEnd {
        self.process.signal("TERM").await;
        let ended = self.process.ended().await;
        assert!(ended.status.success(), "{}", ended.stderr);
        ended
    }

    async fn kill(self) {
        self.process.signal("KILL").await;
        self.process.ended().await;
    }
}

#[tokio::test]
async fn a_clean_stop_loses_nothing() {
    let home = Home::new(POLICIES, "1h");
    let mut expected = 1_000;
    for round in 0..4 {
        let running = home.start().await;
        for cost in [1, 2, 3] {
            expected -= cost;
            let body = format!(r#"{{"user":"ann","cost":{cost}}}"#);
            assert_eq!(running.remaining(&body).await, expected, "round {round}");
        }
        // Of each limit.
        let reply = running.check(r#"{"user":"ann","cost":0}"#).await;
        assert_eq!(reply.json()["remaining"], expected);
        let ended = running.stop().await;
        assert!(
            ended.stderr.contains("snapshot_finished"),
            "{}",
            ended.stderr
        );
    }
}

#[tokio::test]
async fn blocks_and_other_policies_survive() {
    let home = Home::new(POLICIES, "1h");
    let ask = r#"{"policy":"login","ip":"192.0.2.1"}"#;
    let first = home.start().await;
    for allowed in [true, true, false] {
        assert_eq!(first.check(ask).await.is_allowed(), allowed);
    }
    first.stop().await;
    let second = home.start().await;
    let refused = second.check(ask).await.json();
    assert_eq!(refused["allowed"], false);
    assert_eq!(refused["reason"], "limit-blocked");
    let wait = refused["retry_after_ms"].as_u64().unwrap();
    assert!((3_000_000..=3_600_000).contains(&wait), "{wait}");
    second.stop().await;
}

/// A reservation is settled by the process after the one that made it, and only once.
#[tokio::test]
async fn a_reservation_outlives_the_process() {
    let home = Home::new(POLICIES, "1h");
    let look = r#"{"policy":"llm","user":"ann","cost":0}"#;
    let first = home.start().await;
    let estimate = r#"{"policy":"llm","user":"ann","cost":800}"#;
    let reserved = post_to(&first, "/v1/reserve", estimate).await;
    let id = reserved["reservation"].as_str().unwrap().to_owned();
    first.stop().await;

    let second = home.start().await;
    assert_eq!(second.remaining(look).await, 200);
    let commit = format!(r#"{{"reservation":"{id}","actual":150}}"#);
    assert_eq!(
        post_to(&second, "/v1/commit", &commit).await["state"],
        "settled"
    );
    assert_eq!(second.remaining(look).await, 850);
    second.stop().await;

    let third = home.start().await;
    assert_eq!(
        post_to(&third, "/v1/commit", &commit).await["state"],
        "already"
    );
    assert_eq!(third.remaining(look).await, 850);
    third.stop().await;
}

async fn post_to(running: &RunningProgram, path: &str, body: &str) -> serde_json::Value {
    let request = crate::kit::client::question(body).replace("/v1/check", path);
    let mut client = crate::kit::Client::connect(running.http).await;
    client.ask(&request).await.json()
}

#[tokio::test]
async fn a_limit_that_changed_meanwhile_keeps_what_was_used() {
    let limit = |amount, change| {
        format!(
            "policies: [{{ name: api, limits: [{{ name: all, key: user, rate: {amount}/d, \
             algorithm: fixed-window, on_change: {change} }}] }}]"
        )
    };
    for (change, expected) in [("keep", 140), ("scale", 80), ("reset", 200)] {
        let home = Home::new(&limit(100, change), "1h");
        let first = home.start().await;
        assert_eq!(first.remaining(r#"{"user":"ann","cost":60}"#).await, 40);
        first.stop().await;
        let text = std::fs::read_to_string(&home.config).unwrap();
        home.folder
            .write("tidegate.yaml", text.replace("100/d", "200/d"));
        let second = home.start().await;
        let left = second.remaining(r#"{"user":"ann","cost":0}"#).await;
        assert_eq!(left, expected, "{change}");
        second.stop().await;
    }
}

#[tokio::test]
async fn the_status_and_the_metrics_show_the_snapshot() {
    let home = Home::new(POLICIES, "100ms");
    let first = home.start().await;
    first.check(r#"{"user":"ann"}"#).await;
    let written = async {
        while first.status().await["buckets"] != 4 {
            tokio::task::yield_now().await;
        }
    };
    crate::kit::in_time("a write", written).await;
    assert_eq!(first.status().await["status"], "UP");
    assert_eq!(first.status().await["error"], serde_json::Value::Null);
    let buckets = first.metric("tidegate_snapshot_buckets ").await;
    assert_eq!(buckets.to_string(), "4");
    let bytes = std::fs::metadata(&home.file).unwrap().len();
    let reported = first.metric("tidegate_snapshot_bytes ").await;
    assert_eq!(reported.to_string(), bytes.to_string());
    assert!(first.metric("tidegate_snapshot_age_seconds ").await < 30.0);
    assert!(
        first
            .metric("tidegate_snapshot_writes_total{outcome=\"written\"}")
            .await
            >= 1.0
    );
    // An idle server writes nothing.
    let idle = async {
        while first
            .metric("tidegate_snapshot_writes_total{outcome=\"unchanged\"}")
            .await
            < 2.0
        {
            tokio::task::yield_now().await;
        }
    };
    crate::kit::in_time("two intervals", idle).await;
    first.stop().await;
    let second = home.start().await;
    assert_eq!(second.status().await["restored"], 4);
    second.stop().await;
}
