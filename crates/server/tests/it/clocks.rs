//! Three processes over one Redis, whose clocks are hours apart, across the end of a calendar window.

use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::kit::{Client, in_time};
use futures_util::future::join_all;
use std::collections::BTreeSet;
use std::env;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tidegate::SystemClock;
use tidegate_testkit::redis::Server;

/// The units of each window.
const AMOUNT: u64 = 150;

/// The time from the start until the window ends: enough to use it up before, even on a busy machine.
const BEFORE_THE_END: Duration = Duration::from_secs(12);

/// The connections to each process.
const CLIENTS: usize = 4;

/// Answers of a window that ends in so many milliseconds at most are of the first one; the next one lasts an
/// hour.
const FIRST_MS: u64 = 60_000;

/// Returns the library that shifts the clock of a process. If it is not installed, reports that the test is
/// skipped; with `CI` set, panics instead.
#[expect(
    clippy::print_stderr,
    reason = "a skipped test is shown to the person who runs it"
)]
fn faketime() -> Option<PathBuf> {
    let multiarch = std::fs::read_dir("/usr/lib").ok()?;
    let mut libraries =
        multiarch.filter_map(|entry| Some(entry.ok()?.path().join("faketime/libfaketimeMT.so.1")));
    let found = libraries.find(|path| path.is_file());
    if found.is_none() {
        let missing = "libfaketime is not installed: ./scripts/test installs it";
        assert!(!in_ci(), "{missing}");
        eprintln!("skipped: {missing}");
    }
    found
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| !ci.is_empty() && ci != "false" && ci != "0")
}

/// The allowed requests of the first window and of the next one.
#[derive(Debug, Default, PartialEq, Eq)]
struct AllowedByWindow {
    first: u64,
    next: u64,
    /// True if a request was refused before the first window ended: then it was used up.
    is_first_full: bool,
}

/// Returns the hour that the log of a process began in.
fn logged_hour(process: &Process) -> String {
    let line: serde_json::Value = serde_json::from_str(&process.logged[0]).unwrap();
    line["timestamp"].as_str().unwrap()[..13].to_owned()
}

/// Asks without a pause until the second window is used up.
async fn ask_through_both(http: SocketAddr) -> AllowedByWindow {
    let mut client = Client::connect(http).await;
    let mut allowed = AllowedByWindow::default();
    loop {
        let reply = client.post(r#"{"user":"ann","cost":{"tokens":1}}"#).await;
        let decision = reply.json();
        assert_eq!(decision.get("decided_by"), None, "by the store: {decision}");
        let is_first = decision["reset_ms"].as_u64().unwrap() <= FIRST_MS;
        match (is_first, reply.is_allowed()) {
            (true, true) => allowed.first += 1,
            (true, false) => allowed.is_first_full = true,
            (false, true) => allowed.next += 1,
            (false, false) => return allowed,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_with_clocks_hours_apart_admit_exactly_the_amount_of_each_window() {
    let Some(library) = faketime() else {
        return;
    };
    let redis = Server::start();
    let folder = Folder::make();
    // An hour takes minute and second of its anchor.
    let now = Duration::from_micros(SystemClock::wall().as_micros());
    let end = (now + BEFORE_THE_END).as_secs();
    let anchor = format!("2026-01-01T00:{:02}:{:02}", end / 60 % 60, end % 60);
    let text = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{}', timeout: 10s }}
policies:
  - name: api
    limits:
      - {{ name: calls, key: user, rate: 1000000/h, algorithm: fixed-window }}
      - {{ name: budget, key: user, unit: tokens, rate: {AMOUNT}/h, align: calendar, anchor: '{anchor}' }}
",
        redis.url()
    );
    let file = folder.write("tidegate.yaml", text);
    let (mut processes, mut hours) = (Vec::new(), BTreeSet::new());
    for shift in ["-3h", "+0", "+1h"] {
        let mut command = tidegate(&["serve", "--config", &file]);
        command.env("LD_PRELOAD", &library);
        command
            .env("FAKETIME", shift)
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        let mut process = Process::start(command);
        let http = process.address("http").await;
        hours.insert(logged_hour(&process));
        processes.push((process, http));
    }
    assert_eq!(hours.len(), 3, "their clocks differ: {hours:?}");
    let clients = processes.iter().flat_map(|(_, http)| [*http; CLIENTS]);
    let asking = join_all(clients.map(ask_through_both));
    let counts = in_time("the end of the second window's units", asking).await;
    let sum = |of: fn(&AllowedByWindow) -> u64| counts.iter().map(of).sum::<u64>();
    assert!(
        counts.iter().any(|it| it.is_first_full),
        "the machine was too slow to use up the first window: {counts:?}"
    );
    assert_eq!((sum(|it| it.first), sum(|it| it.next)), (AMOUNT, AMOUNT));
}
