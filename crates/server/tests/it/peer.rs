//! The environment of envoyproxy/ratelimit, under `serve --envoy-config`.

use crate::import::{ask, parent};
use crate::kit::folder::Folder;
use crate::kit::process::{Process, run, tidegate};
use serde_json::Value;
use std::fs;

/// One call per hour for each user.
const LIMITS: &str = "
domain: edge
descriptors:
  - key: user
    rate_limit: { unit: hour, requests_per_unit: 1 }
";

/// Listeners on free ports of this machine.
const ANYWHERE: [(&str, &str); 6] = [
    ("HOST", "127.0.0.1"),
    ("PORT", "0"),
    ("GRPC_HOST", "127.0.0.1"),
    ("GRPC_PORT", "0"),
    ("DEBUG_HOST", "127.0.0.1"),
    ("DEBUG_PORT", "0"),
];

/// Returns a line of the log read so far.
fn logged(process: &Process, message: &str) -> Option<Value> {
    let lines = process.logged.iter();
    let mut lines = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.find(|line| line["message"] == message)
}

#[tokio::test]
async fn the_environment_names_folder_and_listeners() {
    let folder = Folder::make();
    let root = parent(&folder.write("any", ""));
    let config = format!("{root}/ratelimit/config");
    fs::create_dir_all(&config).unwrap();
    fs::write(format!("{config}/edge.yaml"), LIMITS).unwrap();
    let mut command = tidegate(&["serve", "--envoy-config"]);
    command.envs(ANYWHERE);
    command.envs([
        ("RUNTIME_ROOT", root.as_str()),
        ("RUNTIME_SUBDIRECTORY", "ratelimit"),
        ("REDIS_POOL_SIZE", "20"),
        ("REDIS_AUTH", "hunter2"),
    ]);
    let mut process = Process::start(command);
    let http = process.address("http").await;
    for listener in ["grpc", "admin"] {
        let address = process.address(listener).await;
        assert!(address.ip().is_loopback(), "{listener}");
        assert!(![6070, 8081].contains(&address.port()), "{listener}");
    }
    assert!(ask(http, "ann").await);
    assert!(!ask(http, "ann").await);

    let took = logged(&process, "environment variables applied").unwrap();
    let took = took["variables"].as_str().unwrap();
    for (name, _) in ANYWHERE {
        assert!(took.split(", ").any(|it| it == name), "{name}: {took}");
    }
    let ignored = "environment variables of envoyproxy/ratelimit have no effect";
    let ignored = logged(&process, ignored).unwrap();
    let ignored = ignored["variables"].as_str().unwrap();
    assert!(
        ignored.contains("REDIS_POOL_SIZE (not needed: "),
        "{ignored}"
    );
    assert!(
        ignored.contains("REDIS_AUTH (it needs REDIS_URL)"),
        "{ignored}"
    );
    process.signal("TERM").await;
    let ended = process.ended().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

/// Regression: it was ignored, so limits in shadow mode refused requests.
#[tokio::test]
async fn shadow_mode_of_the_environment_enforced() {
    let (own, folder) = (Folder::make(), Folder::make());
    let directory = parent(&folder.write("edge.yaml", LIMITS));
    let start = |arguments: &[&str], value: &str| {
        let mut command = tidegate(&["serve", "--envoy-config", &directory]);
        command.args(arguments).envs(ANYWHERE);
        command.env("SHADOW_MODE", value);
        Process::start(command)
    };
    let file = own.write("tidegate.yaml", "mode: enforce\n");
    for (arguments, value, refuses) in [
        (&[][..], "true", false),
        (&[], "false", true),
        // The file takes precedence over the environment.
        (&["--config", &file], "true", true),
    ] {
        let mut process = start(arguments, value);
        let http = process.address("http").await;
        assert!(ask(http, "ann").await);
        assert_eq!(ask(http, "ann").await, !refuses, "{arguments:?} {value}");
    }
}

#[tokio::test]
async fn flags_and_the_file_override_the_environment() {
    let (own, folder) = (Folder::make(), Folder::make());
    let directory = parent(&folder.write("edge.yaml", LIMITS));
    let text = "
listen: { http: '127.0.0.1:0', grpc: '127.0.0.1:0' }
store: { url: memory }
";
    let file = own.write("tidegate.yaml", text);
    let arguments = ["serve", "--config", &file, "--envoy-config", &directory];
    let arguments = [&arguments[..], &["--admin", "127.0.0.1:0"]].concat();
    let mut command = tidegate(&arguments);
    // Addresses of other machines would make the program fail.
    let names = ["HOST", "GRPC_HOST", "DEBUG_HOST"];
    command.envs(names.map(|name| (name, "192.0.2.1")));
    command.env("REDIS_URL", "192.0.2.1:6379");
    command.env("GRPC_MAX_CONNECTION_AGE", "10m");
    let mut process = Process::start(command);
    let http = process.address("http").await;
    process.address("admin").await;
    assert!(ask(http, "ann").await);
    let took = logged(&process, "environment variables applied").unwrap();
    assert_eq!(took["variables"], "GRPC_MAX_CONNECTION_AGE");
    // Regression: they were dropped silently.
    let dropped = "environment variables have no effect; the config or a flag sets the value, or the listener is not open";
    let dropped = logged(&process, dropped).unwrap();
    assert_eq!(
        dropped["variables"],
        "DEBUG_HOST, GRPC_HOST, HOST, REDIS_URL"
    );
}

#[tokio::test]
async fn without_envoyproxy_ratelimit_files_its_environment_is_ignored() {
    let mut command = tidegate(&["serve", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0"]);
    command.envs([("BACKEND_TYPE", "memcache"), ("LOG_LEVEL", "loud")]);
    command.envs([("GRPC_PORT", "0"), ("PORT", "none")]);
    let mut process = Process::start(command);
    process.address("admin").await;
    assert_eq!(logged(&process, "environment variables applied"), None);
    assert_eq!(
        process
            .logged
            .iter()
            .filter(|it| it.contains("grpc\""))
            .count(),
        0
    );
}

#[tokio::test]
async fn a_bad_environment_is_an_error_that_names_all_of_it() {
    let folder = Folder::make();
    let directory = parent(&folder.write("edge.yaml", LIMITS));
    let mut command = tidegate(&["serve", "--envoy-config", &directory]);
    command.envs([("BACKEND_TYPE", "memcache"), ("QUOTA_MODE", "maybe")]);
    let ended = run(command).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    for name in ["BACKEND_TYPE", "QUOTA_MODE"] {
        let told = format!("environment variable {name}: ");
        assert!(ended.stderr.contains(&told), "{}", ended.stderr);
    }
    // Read by the same rules as the corresponding setting.
    let mut command = tidegate(&["serve", "--envoy-config", &directory]);
    command.env("GRPC_PORT", "tcp://10.0.0.1:8081");
    let ended = run(command).await;
    assert_eq!(ended.status.code(), Some(2), "{}", ended.stderr);
    let told = "environment variable GRPC_PORT: ";
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
}
