//! The program as a process: what it prints, how it exits.

use crate::kit::certificates::Certificates;
use crate::kit::process::{Process, run, tidegate};
use crate::kit::redis::{Operated, config};
use crate::kit::{Client, PLENTY, get, post};
use std::fs;
use tidegate_policy::Config;
use tidegate_server::server;
use tidegate_testkit::redis::{Server as RedisServer, until};

const ANYWHERE: [&str; 5] = ["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

#[tokio::test]
async fn without_a_file_it_serves_and_says_what_to_try() {
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
async fn interrupting_ends_it_as_well() {
    let mut process = Process::start(tidegate(&ANYWHERE));
    process.address("admin").await;
    process.signal("INT").await;
    assert_eq!(process.ended().await.status.code(), Some(0));
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let mut process = Process::start(tidegate(&ANYWHERE));
    let http = process.address("http").await;
    let mut stuck = Client::connect(http).await;
    stuck.send("POST /v1/check HTTP/1.1\r\n").await;
    process.signal("TERM").await;
    process.logs("told to stop", ("signal", "SIGTERM")).await;
    process.signal("INT").await;
    let ended = process.ended().await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .ends_with("stopped at once by a second signal, SIGINT")
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
    // Every address, of IPv4 too.
    let local = std::net::SocketAddr::from(([127, 0, 0, 1], http.port()));
    assert!(post(local, r#"{"ip": "192.0.2.1"}"#).await.is_allowed());

    let ended = run(tidegate(&["serve", &file, "--config", &file])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(ended.stderr.contains("given twice"), "{}", ended.stderr);
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
    let expected = format!("the http door cannot listen on {address}");
    assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("TIDEGATE_LISTEN_HTTP"),
        "{}",
        ended.stderr
    );
}

/// Neither has chosen the default port, so it does not matter which of them, or who else, has it.
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
async fn only_a_default_admin_address_gives_way() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap();
    let mut listen = Config::from_yaml(PLENTY).unwrap().listen;
    assert!(!listen.admin_may_move, "it is configured");
    listen.admin.address = taken.into();
    let error = server::bind(&listen).await.unwrap_err().to_string();
    let expected = format!("the admin door cannot listen on {taken}");
    assert!(error.contains(&expected), "{error}");
    let written = PLENTY.replace(", admin: '127.0.0.1:0'", "");
    let mut listen = Config::from_yaml(&written).unwrap().listen;
    listen.admin.address = taken.into();
    let listeners = server::bind(&listen).await.unwrap();
    assert_eq!(listeners.admin.tcp().unwrap().ip(), taken.ip());
    assert_ne!(listeners.admin.tcp().unwrap().port(), taken.port());
}

#[tokio::test]
async fn a_store_that_has_to_be_there_and_is_not_is_named_and_exits_with_1() {
    // Taken by one who does not listen, so that nobody does.
    let nobody = tokio::net::TcpSocket::new_v4().unwrap();
    nobody.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = nobody.local_addr().unwrap();
    let store = format!("url: 'redis://:hunter2@{address}', required_at_start: true");
    let ended = Operated::by(config(&store)).run(&["serve"]).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let expected = format!("the store cannot be reached: cannot reach Redis at {address}: ");
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
  http: { address: '127.0.0.1:1', token: '${DOOR_TOKEN}' }
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
        .env("DOOR_TOKEN", "hunter2");
    let mut process = Process::start(command);
    let expected = "DOOR_TOKEN, FOLDER, TIDEGATE_LISTEN_ADMIN, TIDEGATE_LISTEN_HTTP";
    process
        .logs("environment variables took effect", ("variables", expected))
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
    let line = process.logs("refused", ("limit", "per-client")).await;
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
