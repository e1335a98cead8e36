//! `tidegate check`.

use crate::kit::folder::Folder;
use crate::kit::process::{ProcessEnd, run, tidegate};
use crate::kit::{Server, TWO_A_MINUTE};
use serde_json::Value;

async fn check(url: &str, arguments: &[&str]) -> ProcessEnd {
    let mut all = vec!["check", "--url", url];
    all.extend(arguments);
    run(tidegate(&all)).await
}

fn url(server: &Server) -> String {
    format!("http://{}", server.http)
}

#[tokio::test]
async fn a_line_and_the_exit_code_show_allowed_or_refused() {
    let server = Server::start(TWO_A_MINUTE).await;
    let url = url(&server);
    let first = check(&url, &["--ip", "192.0.2.1"]).await;
    assert_eq!(first.status.code(), Some(0), "{}", first.stderr);
    assert!(
        first
            .stdout
            .starts_with("allowed: limit per-client, band 1/min burst 2, 1 left, full in "),
        "{}",
        first.stdout
    );
    // Only reads.
    let looked = check(&url, &["--ip", "192.0.2.1", "--cost", "0"]).await;
    assert!(looked.stdout.contains("1 left"), "{}", looked.stdout);
    let rest = check(&url, &["--ip", "192.0.2.1", "--count", "3"]).await;
    assert_eq!(rest.status.code(), Some(4), "{}", rest.stderr);
    assert_eq!(rest.stderr, "");
    let lines: Vec<&str> = rest.stdout.lines().collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(
        lines[2].starts_with("refused: limit per-client, "),
        "{lines:?}"
    );
    assert!(lines[2].contains(", 0 left, retry after "), "{lines:?}");
    assert_eq!(lines[3], "1 allowed, 2 refused");
    let json = check(&url, &["--ip", "192.0.2.1", "--count", "2", "--json"]).await;
    assert_eq!(json.status.code(), Some(4));
    for line in json.stdout.lines() {
        let decision: Value = serde_json::from_str(line).unwrap();
        assert_eq!(decision["allowed"], false);
    }
    assert_eq!(json.stdout.lines().count(), 2);
}

#[tokio::test]
async fn every_flag_reaches_the_server() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - { name: other, limits: [{ name: never, rate: 0/s }] }
  - name: api
    limits:
      - name: one
        match: { path: /a, method: POST, host: a.example, headers: { x-a: '1' }, attributes: { plan: gold } }
        key: [ip, user, api-key]
        missing: refuse
        rate: 5/h
",
    )
    .await;
    let folder = Folder::make();
    let key = folder.write("key", "hunter2\n");
    let headers = folder.write("headers", "X-A: 1\n");
    let flags = [
        "--policy=api",
        "--ip=192.0.2.1",
        "--user=ann",
        "--path=/a",
        "--method=POST",
        "--host=a.example",
        "--header-file",
        &headers,
        "--attribute=plan=gold",
        "--cost=2",
        "--api-key-file",
        &key,
    ];
    let ended = check(&url(&server), &flags).await;
    assert!(
        ended.stdout.contains("limit one, band 5/h, 3 left"),
        "{} {}",
        ended.stdout,
        ended.stderr
    );
    // The same bucket, by the same key from a variable.
    let mut command = tidegate(&["check", "--url", &url(&server)]);
    command
        .args(&flags[..10])
        .args(["--api-key-env", "KEY"])
        .env("KEY", "hunter2");
    let ended = run(command).await;
    assert!(
        ended.stdout.contains("1 left"),
        "{} {}",
        ended.stdout,
        ended.stderr
    );
}

#[tokio::test]
async fn a_listener_with_a_token_gets_it_from_a_file_and_nothing_prints_it() {
    let text = TWO_A_MINUTE.replace(
        "'127.0.0.1:0', admin",
        "{ address: '127.0.0.1:0', token: hunter2 }, admin",
    );
    let server = Server::start(&text).await;
    let url = url(&server);
    let refused = check(&url, &[]).await;
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        refused.stderr.contains("--token-env or --token-file"),
        "{}",
        refused.stderr
    );
    let folder = Folder::make();
    let token = folder.write("token", "hunter2\n");
    let ended = check(&url, &["--token-file", &token]).await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let broken = folder.write("broken", "hunter2\u{7}x");
    let ended = check(&url, &["--token-file", &broken]).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(!ended.stderr.contains("hunter"), "{}", ended.stderr);
}

#[tokio::test]
async fn wrong_arguments_exit_with_2_and_a_server_that_is_down_with_1() {
    let server = Server::start(TWO_A_MINUTE).await;
    let live = url(&server);
    for (url, arguments, expected) in [
        (live.as_str(), ["--policy", "none"], "unknown policy `none`"),
        (&live, ["--ip", "192.0.2"], "invalid value '192.0.2'"),
        (&live, ["--count", "0"], "0 is not in 1..=10000"),
        (&live, ["--timeout", "0"], "0 is not in 1..=3600"),
        (
            &live,
            ["--api-key-file", "/nowhere"],
            "cannot read /nowhere",
        ),
        ("localhost:8080", ["--user", "a"], "--url: it is not a URL"),
        (
            "http://a:hunter2@b/",
            ["--user", "a"],
            "--url: it contains a user or password",
        ),
    ] {
        let ended = check(url, &arguments).await;
        assert_eq!(
            ended.status.code(),
            Some(2),
            "{arguments:?} {}",
            ended.stderr
        );
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
        assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
    }
    let ended = check("http://127.0.0.1:1", &[]).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let expected = "the server at http://127.0.0.1:1 does not respond: ";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

#[tokio::test]
async fn a_server_that_never_replies_times_out() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let ended = check(&url, &["--timeout", "1"]).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("does not respond: timeout"),
        "{}",
        ended.stderr
    );
}
