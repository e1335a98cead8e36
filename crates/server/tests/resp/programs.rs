//! redis-cli, redis-benchmark, redis-py in typical versions.

use crate::kit::programs::Program;
use crate::kit::{CONFIG, Server, line};

#[tokio::test]
async fn redis_cli_in_both_protocols() {
    let server = Server::start(CONFIG).await;
    let port = server.resp.port().to_string();
    let cli = async |words: &[&str], input: &str| {
        Program::Cli
            .says(&[&["-p", &port], words].concat(), input)
            .await
    };
    let Some(said) = cli(&["CL.THROTTLE", "user123", "15", "30", "60"], "").await else {
        return;
    };
    assert_eq!(said, "0\n16\n15\n-1\n2\n");
    let said = cli(&["-3", "--json", "TG.CHECK", "api", "ip", "192.0.2.1"], "")
        .await
        .unwrap();
    let said: serde_json::Value = serde_json::from_str(&said).unwrap();
    let expected = serde_json::json!({
        "allowed": true, "limit": "per-client", "band": "1/min burst 2", "remaining": 1,
        "retry_after_ms": 0, "reset_ms": 60_000, "decided_by": "store",
    });
    assert_eq!(said, expected);
    let said = cli(&["-3", "ping"], "").await.unwrap();
    assert_eq!(said, "PONG\n");
    // As at a prompt: several lines, quotes, and an unknown command.
    let said = cli(&[], "echo \"a b\"\nnosuch x\nping\n").await.unwrap();
    assert!(
        said.starts_with("a b\nERR unknown command 'nosuch'"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("PONG"), "{said}");
    let said = cli(
        &["--pipe"],
        &String::from_utf8(line("ping").repeat(1_000)).unwrap(),
    )
    .await;
    assert!(said.unwrap().contains("errors: 0, replies: 1000"));
    let said = cli(&["help", "cl.throttle"], "").await.unwrap_or_default();
    assert!(!said.contains("Error"), "{said}");
}

#[tokio::test]
async fn redis_benchmark_runs_without_a_complaint() {
    let server = Server::start(CONFIG).await;
    let port = server.resp.port().to_string();
    for depth in ["1", "16"] {
        let words = [
            "-p",
            &port,
            "-n",
            "2000",
            "-c",
            "5",
            "-P",
            depth,
            "-r",
            "100",
            "--csv",
            "CL.THROTTLE",
            "key:__rand_int__",
            "1000000",
            "1000000",
            "1",
            "1",
        ];
        let Some(said) = Program::Benchmark.says(&words, "").await else {
            return;
        };
        assert!(said.to_lowercase().contains("throttle"), "{said}");
        for complaint in ["WARNING", "Error", "ERR"] {
            assert!(!said.contains(complaint), "{said}");
        }
    }
}

/// The results of a Python program; `scripts/test` installs the libraries.
#[tokio::test]
async fn redis_py_old_and_new_in_both_protocols() {
    let server = Server::start(CONFIG).await;
    let config = CONFIG.replace(
        "resp: '127.0.0.1:0'",
        "resp: { address: '127.0.0.1:0', token: hunter2 }",
    );
    let locked = Server::start(&config).await;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/resp/client.py");
    for version in ["redis-py-5", "redis-py-8"] {
        for protocol in ["2", "3"] {
            let (open, locked) = (
                server.resp.port().to_string(),
                locked.resp.port().to_string(),
            );
            let key = format!("{version}-{protocol}");
            let words = [script, &open, &locked, "hunter2", protocol, &key];
            let Some(said) = Program::Python(version).says(&words, "").await else {
                continue;
            };
            assert_eq!(said, "fine\n", "{version} {protocol}");
        }
    }
}
