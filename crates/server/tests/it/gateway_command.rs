//! `tidegate gateway`: a gateway without a config file.

use crate::kit::certificates::Certificates;
use crate::kit::get;
use crate::kit::process::{Process, run, tidegate};
use std::fs;

const ANYWHERE: [&str; 4] = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"];

#[tokio::test]
async fn the_gateway_command_forwards_within_the_limit_and_prints_a_hint() {
    // Any server works as upstream, such as the admin listener of another Tidegate.
    let mut upstream = Process::start(tidegate(&[
        "serve",
        "--http",
        "127.0.0.1:0",
        "--admin",
        "127.0.0.1:0",
    ]));
    let url = format!("http://{}", upstream.address("admin").await);
    let flags = ["gateway", "--upstream", &url, "--limit", "2/h"];
    let mut process = Process::start(tidegate(&[&flags[..], &ANYWHERE].concat()));
    let gateway = process.address("gateway").await;
    let admin = process.address("admin").await;
    assert_eq!(get(gateway, "/livez").await.status, 200);
    assert_eq!(get(gateway, "/nowhere").await.status, 404);
    assert_eq!(get(gateway, "/livez").await.status, 429);
    assert_eq!(get(admin, "/readyz").await.status, 200);
    process.signal("TERM").await;
    let ended = process.ended().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    for told in [
        url.clone(),
        format!("curl -i http://{gateway}/"),
        format!("'http://{gateway}/?[1-4]'"),
        format!("http://{admin}/metrics"),
    ] {
        assert!(ended.stdout.contains(&told), "{told}: {}", ended.stdout);
    }
}

#[tokio::test]
async fn the_gateway_command_prints_a_usable_config() {
    let flags = [
        "gateway",
        "--print",
        "--upstream=http://127.0.0.1:9001",
        "--upstream=h2c://[::1]:9002",
        "--limit=10/s burst 50",
        "--listen=[::1]:8001",
        "--admin=127.0.0.1:8091",
    ];
    let printed = run(tidegate(&flags)).await;
    assert_eq!(printed.status.code(), Some(0), "{}", printed.stderr);
    let folder = Certificates::make();
    let file = folder.path("printed.yaml");
    fs::write(&file, &printed.stdout).unwrap();
    let explained = run(tidegate(&["validate", "--explain", &file])).await;
    assert_eq!(explained.status.code(), Some(0), "{}", explained.stderr);
    let valid = format!("{file} is valid: 1 policy, 1 limit\n");
    assert!(explained.stdout.starts_with(&valid), "{}", explained.stdout);
    assert!(
        explained.stdout.contains("up to 50 at once"),
        "{}",
        explained.stdout
    );
}

#[tokio::test]
async fn flag_errors_name_the_flag() {
    let ended = run(tidegate(&["gateway"])).await;
    assert_eq!(ended.status.code(), Some(2));
    assert!(
        ended.stderr.contains("--upstream <URL>"),
        "{}",
        ended.stderr
    );

    let wrong = ["gateway", "--upstream", "localhost:9001", "--limit", "10/x"];
    let ended = run(tidegate(&wrong)).await;
    assert_eq!(ended.status.code(), Some(2));
    for flag in ["--upstream:", "--limit:"] {
        assert!(ended.stderr.contains(flag), "{}", ended.stderr);
    }
    assert!(
        ended.stderr.contains("http://127.0.0.1:9001"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stdout, "");
}
