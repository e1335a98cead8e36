//! The program as a process: its output and its exit status.

use crate::kit::certificates::Certificates;
use crate::kit::process::{Process, run, tidegate};
use crate::kit::redis::{RunningConfig, config};
use crate::kit::{Client, PLENTY, get, in_time, post};
use std::fs;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_testkit::redis::{Server as RedisServer, until};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::time::timeout;

const ANYWHERE: [&str; 5] = ["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

#[tokio::test]
async fn without_a_file_the_server_starts_and_prints_a_hint() {
    let mut process = Process::start(tidegate(&ANYWHERE[1..]));
    let http = process.address("http").await;
    let admin = process.address("admin").await;
    assert!(post(http, r#"{"ip": "192.0.2.1"}"#).await.is_allowed());
    assert_eq!(get(admin, "/readyz").await.status, 200);
    process.signal("TERM").await;
    let ended = process.ended().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    let curl = format!("curl -s http://{http}/v1/check -d '{{\"ip\": \"192.0.2.1\"}}'");
    assert!(ended.stdout.contains(&curl), "{}", ended.stdout);
}

#[tokio::test]
async fn an_unread_log_blocked_the_program() {
    let mut command = tidegate(&ANYWHERE);
    command.env("TIDEGATE_LOG", "trace");
    let mut child = command.spawn().unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut listeners = Vec::new();
    while listeners.len() < 2 {
        let line = in_time("a line of the log", log.next_line()).await;
        let line = line.unwrap().expect("both listeners");
        let line: serde_json::Value = serde_json::from_str(&line).unwrap();
        if line["message"] == "listening" {
            listeners.push(line);
        }
    }
    let address = |name: &str| -> SocketAddr {
        let line = listeners.iter().find(|it| it["listener"] == name);
        line.unwrap()["address"].as_str().unwrap().parse().unwrap()
    };
    // From here on the log is not read. Each refusal is a line of some 200 bytes, and the pipe
    // holds 64 KiB: it is full long before the lines fill the queue as well.
    let mut client = Client::connect(address("http")).await;
    let metrics = timeout(Duration::from_mins(1), async {
        loop {
            for _ in 0..1_000 {
                client.post(r#"{"ip": "192.0.2.1"}"#).await;
            }
            let page = get(address("admin"), "/metrics").await.body;
            if !page.contains("tidegate_log_lines_dropped_total 0") {
                return page;
            }
        }
    });
    let page = metrics.await.expect("requests wait for the log");
    assert!(page.contains("tidegate_log_lines_dropped_total"), "{page}");
}

#[tokio::test]
async fn sigint_ends_the_server_as_well() {
    let mut process = Process::start(tidegate(&ANYWHERE));
    process.address("admin").await;
    process.signal("INT").await;
    assert_eq!(process.ended().await.status.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_the_server_at_once() {
    let mut process = Process::start(tidegate(&ANYWHERE));
    let http = process.address("http").await;
    let mut stuck = Client::connect(http).await;
    stuck.send("POST /v1/check HTTP/1.1\r\n").await;
    process.signal("TERM").await;
    process.logs("shutting down", ("signal", "SIGTERM")).await;
    process.signal("INT").await;
    let ended = process.ended().await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .ends_with("stopped immediately by a second signal, SIGINT")
    );
}

#[tokio::test]
async fn a_bad_configuration_prints_every_error_and_exits_with_2() {
    let folder = Certificates::make();
    let file = folder.path("bad.yaml");
    fs::write(&file, "policies:\n  - name: api\n    limits:\n      - { name: a, rate: 10/x }\n      - { nme: b }\n").unwrap();
    let ended = run(tidegate(&["serve", "--config", &file])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains(&format!("{file}:4:")),
        "{}",
        ended.stderr
    );
    assert!(ended.stderr.contains("`nme`"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[tokio::test]
async fn the_file_may_follow_serve_and_addresses_may_be_short() {
    let folder = Certificates::make();
    let file = folder.path("short.yaml");
    fs::write(&file, PLENTY).unwrap();
    let mut command = tidegate(&["serve", &file, "--http", ":0", "--admin", "localhost:0"]);
    command.env("TIDEGATE_CONFIG", "/nowhere/tidegate.yaml");
    let mut process = Process::start(command);
    let http = process.address("http").await;
    assert!(http.ip().is_unspecified(), "{http}");
    let admin = process.address("admin").await;
    assert!(admin.ip().is_loopback(), "{admin}");
    // All addresses, including IPv4.
    let local = SocketAddr::from(([127, 0, 0, 1], http.port()));
    assert!(post(local, r#"{"ip": "192.0.2.1"}"#).await.is_allowed());

    let ended = run(tidegate(&["serve", &file, "--config", &file])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("set twice"), "{}", ended.stderr);
    let ended = run(tidegate(&["serve", "--http", "8080"])).await;
    assert_eq!(ended.status.code(), Some(2));
    let expected = "write localhost:8080 for this machine only, or :8080 for every address";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}

#[tokio::test]
async fn a_missing_file_exits_with_2_and_a_taken_port_with_1() {
    let ended = run(tidegate(&["--config", "/nowhere/tidegate.yaml"])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains("cannot read /nowhere/tidegate.yaml"),
        "{}",
        ended.stderr
    );

    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(tidegate(&[
        "serve",
        "--http",
        &address,
        "--admin",
        "127.0.0.1:0",
    ]))
    .await;
    assert_eq!(ended.status.code(), Some(1));
    let expected = format!("the http listener cannot listen on {address}");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("TIDEGATE_LISTEN_HTTP"),
        "{}",
        ended.stderr
    );
}

/// Neither chose the default port, so it does not matter which process has it.
#[tokio::test]
async fn a_second_instance_on_one_machine_starts() {
    let mut first = Process::start(tidegate(&["serve", "--http", "127.0.0.1:0"]));
    let mut second = Process::start(tidegate(&["serve", "--http", "127.0.0.1:0"]));
    let mut ports = Vec::new();
    for process in [&mut first, &mut second] {
        let admin = process.address("admin").await;
        assert_eq!(get(admin, "/livez").await.status, 200);
        let lines = process.logged.iter();
        let moved = lines.filter(|line| line.contains("the default address is taken"));
        assert_eq!(moved.count() == 1, admin.port() != 8090, "{admin}");
        ports.push(admin.port());
    }
    assert_ne!(ports[0], ports[1]);
}

#[tokio::test]
async fn only_a_default_admin_address_moves_if_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let mut listen = Config::from_yaml(PLENTY).unwrap().listen;
    assert!(!listen.admin_may_move, "it is set in the config");
    listen.admin.address = taken.into();
    let error = tidegate_net::bind(&listen).await.unwrap_err().to_string();
    let expected = format!("the admin listener cannot listen on {taken}");
    assert!(error.contains(&expected), "{error}");
    let written = PLENTY.replace(", admin: '127.0.0.1:0'", "");
    let mut listen = Config::from_yaml(&written).unwrap().listen;
    listen.admin.address = taken.into();
    let listeners = tidegate_net::bind(&listen).await.unwrap();
    assert_eq!(listeners.admin.tcp().unwrap().ip(), taken.ip());
    assert_ne!(listeners.admin.tcp().unwrap().port(), taken.port());
}

#[tokio::test]
async fn an_unreachable_required_store_is_named_and_exits_with_1() {
    // A bound port without a listener.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = nobody.local_addr().unwrap();
    let store = format!("url: 'redis://:hunter2@{address}', redis: {{ required: true }}");
    let ended = RunningConfig::by(config(&store)).run(&["serve"]).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let expected = format!("the store is unreachable: cannot reach Redis at {address}: ");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("onnection refused"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_instance_that_stops_is_not_counted_any_longer() {
    let redis = RedisServer::start();
    let store = format!("url: '{}', local_share: auto", redis.url());
    let folder = Certificates::make();
    let file = folder.path("shared.yaml");
    fs::write(&file, config(&store)).unwrap();
    let arguments = [&ANYWHERE[..], &["--config", &file]].concat();
    let counted = || redis.command(&["ZCARD", "tg:instances"]).int();
    let mut staying = Process::start(tidegate(&arguments));
    let mut going = Process::start(tidegate(&arguments));
    staying.address("admin").await;
    going.address("admin").await;
    until("both are counted", || counted() == 2);
    going.signal("TERM").await;
    let ended = going.ended().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(counted(), 1);
}

#[tokio::test]
async fn variables_take_effect_and_are_reported_without_their_values() {
    let folder = Certificates::make();
    let file = folder.path("guarded.yaml");
    let config = "
listen:
  http: { address: '127.0.0.1:1', token: '${HTTP_TOKEN}' }
  admin: { address: '127.0.0.1:1', token_file: '${FOLDER}/token' }
policies:
  - name: api
    limits:
      - { name: a, rate: 10/s }
";
    fs::write(&file, config).unwrap();
    fs::write(folder.path("token"), "hunter3\n").unwrap();
    let mut command = tidegate(&[]);
    command
        .env("TIDEGATE_CONFIG", &file)
        .env("TIDEGATE_LISTEN_HTTP", "127.0.0.1:0")
        .env("TIDEGATE_LISTEN_ADMIN", "127.0.0.1:0")
        .env("TIDEGATE_LOG", "trace")
        .env("FOLDER", folder.path(""))
        .env("HTTP_TOKEN", "hunter2");
    let mut process = Process::start(command);
    let expected = "FOLDER, HTTP_TOKEN, TIDEGATE_LISTEN_ADMIN, TIDEGATE_LISTEN_HTTP";
    process
        .logs("environment variables applied", ("variables", expected))
        .await;
    let http = process.address("http").await;
    assert_eq!(post(http, "{}").await.status, 401);
    let admin = process.address("admin").await;
    for (token, status) in [("hunter2", 401), ("hunter3", 200)] {
        let request =
            format!("GET /metrics HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
        let reply = Client::connect(admin).await.ask(&request).await;
        assert_eq!(reply.status, status, "{token}");
    }
    process.signal("TERM").await;
    let ended = process.ended().await;
    assert!(!ended.stderr.contains("hunter"), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

#[tokio::test]
async fn refusals_are_logged_at_debug_with_the_key_masked() {
    let mut command = tidegate(&ANYWHERE);
    command.args(["--log", "debug"]);
    let mut process = Process::start(command);
    let http = process.address("http").await;
    let six = format!("[{}]", [r#"{"ip": "192.0.2.1"}"#; 6].join(","));
    post(http, &six).await;
    let line = process
        .logs("request refused", ("limit", "per-client"))
        .await;
    assert_eq!(
        (&line["band"], &line["key"]),
        (&"1/s burst 5".into(), &"ip:192.…".into())
    );
    assert!(
        process
            .logged
            .iter()
            .all(|line| !line.contains("192.0.2.1"))
    );
}

#[tokio::test]
async fn help_and_version_are_there() {
    let help = run(tidegate(&["--help"])).await;
    assert_eq!(help.status.code(), Some(0));
    for word in [
        "serve",
        "validate",
        "simulate",
        "schema",
        "inspect",
        "reset",
        "doctor",
        "TIDEGATE_CONFIG",
        "Examples:",
    ] {
        assert!(help.stdout.contains(word), "{word}");
    }
    let import = run(tidegate(&["import", "--help"])).await.stdout;
    let listed = import.split("Commands:").nth(1).unwrap_or_default();
    let listed = listed.split("Options:").next().unwrap_or_default();
    let names = listed.lines().filter_map(|line| line.strip_prefix("  "));
    let importers = names.filter_map(|line| line.split(' ').next());
    let importers: Vec<&str> = importers
        .filter(|name| !matches!(*name, "" | "help"))
        .collect();
    assert!(importers.len() >= 6, "{import}");
    let words: Vec<&str> = help.stdout.split_whitespace().collect();
    let all = importers.join(", ");
    assert!(words.join(" ").contains(&all), "{all}: {}", help.stdout);
    let version = run(tidegate(&["--version"])).await;
    assert_eq!(
        version.stdout,
        format!("tidegate {}\n", env!("CARGO_PKG_VERSION"))
    );
    assert_eq!(
        run(tidegate(&["--frobnicate"])).await.status.code(),
        Some(2)
    );
}
