//! `tidegate budget` on a Redis, and alerts at shares of a band.

use crate::addresses::alerts::{Hook, own};
use crate::kit::folder::Folder;
use crate::kit::process::{Process, tidegate};
use crate::kit::redis::{RunningConfig, config, parsed, take};
use crate::kit::{Client, in_time, post};
use std::time::Duration;
use tidegate::Request;
use tidegate_testkit::redis::Server;

#[tokio::test]
async fn all_limits_of_a_subject_are_read_from_redis() {
    let server = Server::start();
    let operated = RunningConfig::by(config(&format!("url: '{}'", server.url())));
    let limiter = operated.limiter().await;
    let ann = Request::new().ip("192.0.2.1".parse().unwrap()).user("ann");
    take(&limiter, ann.cost(4)).await;
    let words = ["budget", "--key", "user=ann", "ip=192.0.2.1", "--json"];
    let ended = operated.run(&words).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(ended.stderr, "");
    let seen = parsed(&ended);
    let used: Vec<String> = seen["limits"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|limit| {
            let bands = limit["bands"].as_array().unwrap().iter();
            bands.map(move |band| {
                format!("{} {} {}", limit["bucket"], band["capacity"], band["used"])
            })
        })
        .collect();
    assert_eq!(
        used,
        [
            "\"api/per-client/ip:192.0.2.1\" 50 4",
            "\"api/per-user/user:ann\" 10 4",
            "\"api/per-user/user:ann\" 100 4",
        ]
    );
    assert_eq!(seen["skipped"][0]["missing"][0], "api-key");

    let nobody = operated.run(&["budget", "--key", "user=eve"]).await;
    assert_eq!(nobody.status.code(), Some(3), "{}", nobody.stderr);
    assert!(nobody.stdout.contains("0 of 100"), "{}", nobody.stdout);
    let wrong = operated.run(&["budget", "--key", "usr=hunter2"]).await;
    assert_eq!(wrong.status.code(), Some(2), "{}", wrong.stderr);
    assert!(!wrong.stderr.contains("hunter2"), "{}", wrong.stderr);
    drop(server);
    let gone = operated.run(&["budget", "--key", "user=ann"]).await;
    assert_eq!(gone.status.code(), Some(1), "{}", gone.stderr);
}

/// Uses up a window over a restart of the server, and compares the alerts.
async fn alerts_over_a_restart(store: &str) {
    let patience = Duration::from_secs(30);
    let mut hook = Hook::listen().await;
    let folder = Folder::make();
    let text = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ {} }}
{}
policies:
  - name: api
    limits:
      - name: tokens
        key: user
        unit: tokens
        rate: 10/d
        algorithm: fixed-window
        warn: [50%, 80%, 100%]
",
        store.replace("FILE", &folder.write("buckets", "")),
        hook.config(),
    );
    std::fs::remove_file(folder.write("buckets", "")).unwrap();
    let file = folder.write("tidegate.yaml", text);
    let start = async || {
        let mut process = Process::start(tidegate(&["serve", "--config", &file]));
        let http = process.address("http").await;
        (process, http)
    };
    let stop = async |process: Process| {
        process.signal("TERM").await;
        let ended = process.ended().await;
        assert!(ended.status.success(), "{}", ended.stderr);
    };
    let take = async |http, user: &str, cost: u64| {
        let body = format!(r#"{{"user":"{user}","cost":{{"tokens":{cost}}}}}"#);
        let reply = post(http, &body).await;
        assert!(reply.is_allowed(), "{}", reply.body);
    };
    // With the key as logs show it: both users look the same.
    let expected = |user: &str, share: u8| {
        let subject = format!("api/tokens 10/d at {share}%: user:{user}");
        own("threshold", &subject)
    };
    let (process, http) = start().await;
    take(http, "ann", 8).await;
    // Of several shares the highest.
    assert_eq!(hook.next_within(patience).await, expected("a…", 80));
    stop(process).await;
    let (process, http) = start().await;
    take(http, "ann", 1).await;
    take(http, "ann", 1).await;
    take(http, "abe", 10).await;
    // Alerts come in order: none for 80% came again.
    assert_eq!(hook.next_within(patience).await, expected("a…", 100));
    assert_eq!(hook.next_within(patience).await, expected("a…", 100));
    stop(process).await;
}

#[tokio::test]
async fn a_share_alerts_once_over_a_restart_with_a_snapshot() {
    alerts_over_a_restart("url: memory, snapshot: { file: 'FILE', every: 1h }").await;
}

#[tokio::test]
async fn a_share_alerts_once_over_a_restart_with_redis() {
    let server = Server::start();
    alerts_over_a_restart(&format!("url: '{}', timeout: 10s", server.url())).await;
}

/// A commit beyond its estimate raised no alert, and `repeat` swallowed that of the next, shorter window.
#[tokio::test]
async fn a_commit_beyond_its_estimate_raised_no_alert() {
    let patience = Duration::from_secs(30);
    let mut hook = Hook::listen().await;
    let folder = Folder::make();
    let text = format!(
        "
listen: {{ http: '127.0.0.1:0', admin: '127.0.0.1:0' }}
{}
policies:
  - name: llm
    reserve: 60s
    limits:
      - {{ name: tokens, key: user, unit: tokens, rate: 100/h, algorithm: fixed-window, warn: [50%, 80%] }}
  - name: short
    limits:
      - {{ name: burst, key: user, rate: 2/s, algorithm: fixed-window, warn: 100% }}
",
        hook.config()
    );
    let file = folder.write("tidegate.yaml", text);
    let mut process = Process::start(tidegate(&["serve", "--config", &file]));
    let http = process.address("http").await;
    let mut client = Client::connect(http).await;
    let reserve = r#"{"user":"ann","cost":{"tokens":40}}"#;
    let reserved = client.ask(&posting("/v1/reserve", reserve)).await.json();
    let id = &reserved["reservation"];
    let commit = format!(r#"{{"reservation":{id},"actual":{{"tokens":85}}}}"#);
    for state in ["settled", "already"] {
        let settled = client.ask(&posting("/v1/commit", &commit)).await.json();
        assert_eq!(settled["state"], state);
    }
    let expected = own("threshold", "llm/tokens 100/h at 80%: user:a…");
    assert_eq!(hook.next_within(patience).await, expected);

    // Each window of a second alerts once.
    let short = r#"{"policy":"short","user":"ann"}"#;
    for _ in 0..3 {
        let window = async {
            while client.post(short).await.is_allowed() {}
            while !client.post(short).await.is_allowed() {}
        };
        in_time("a window", window).await;
        let expected = own("threshold", "short/burst 2/s at 100%: user:a…");
        assert_eq!(hook.next_within(patience).await, expected);
    }
}

fn posting(path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}
