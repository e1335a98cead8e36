//! Access logs of real programs: one sample each in `tests/logs`.

use crate::kit::simulation;
use serde_json::Value;
use std::fs;

/// Decides a sample; returns for each decision the limit, the remaining units and the reset, with
/// `!` if it is refused.
fn decide(sample: &str) -> (Vec<String>, String) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/logs");
    let config = fs::read_to_string(format!("{folder}/config.yaml")).unwrap();
    let log = fs::File::open(format!("{folder}/{sample}")).unwrap();
    let simulated = simulation::run(&config, log);
    simulated.ended.unwrap();
    let decisions = simulated.out.lines().map(|line| {
        let decision: Value = serde_json::from_str(line).unwrap();
        let refused = if decision["allowed"] == true { "" } else { "!" };
        let limit = decision["limit"].as_str().unwrap();
        format!(
            "{refused}{limit} {} {}",
            decision["remaining"], decision["reset_ms"]
        )
    });
    (decisions.collect(), simulated.err)
}

#[test]
fn combined_of_nginx() {
    let (decisions, told) = decide("combined.log");
    let expected = [
        "per-client 1 60000",
        "per-client 0 60000",
        "!per-client 0 59000",
        "uploads 0 60000",
        "!uploads 0 59000",
        "per-client 1 60000",
    ];
    assert_eq!(decisions, expected);
    assert!(told.starts_with("reading input as an access log in the common or combined format\n"));
    assert!(told.contains("from 2023-11-14T22:13:20.000Z to 2023-11-14T22:13:24.000Z: 4.000 s"));
    assert!(!told.contains("skipped"), "{told}");
}

#[test]
fn common_of_apache_with_virtual_hosts() {
    let (decisions, _) = decide("common.log");
    let expected = [
        "per-client 1 60000",
        "per-client 0 59000",
        "!per-client 0 1000",
        "per-client 1 60000",
    ];
    assert_eq!(decisions, expected);
}

#[test]
fn json_of_traefik() {
    let (decisions, told) = decide("traefik.jsonl");
    // The window opens at 22:13:20.123456, and times are rounded up.
    let expected = [
        "per-client 1 60000",
        "per-client 0 59624",
        "!per-client 0 59374",
    ];
    assert_eq!(decisions, expected);
    assert!(told.starts_with("reading input as an access log in JSON\n"));
    assert!(told.contains("4 lines in "), "{told}");
    assert!(told.contains("; 1 invalid line was skipped"), "{told}");
}

#[test]
fn json_of_envoy() {
    let (decisions, _) = decide("envoy.jsonl");
    // The second request comes through trusted proxies, from the client of the first and third.
    let expected = [
        "per-client 1 60000",
        "per-client 0 59750",
        "!per-client 0 59500",
        "per-client 1 60000",
    ];
    assert_eq!(decisions, expected);
}

#[test]
fn json_of_caddy() {
    let (decisions, told) = decide("caddy.jsonl");
    let expected = [
        "per-client 1 60000",
        "per-client 0 59624",
        "!uploads 0 59750",
    ];
    assert_eq!(decisions, expected);
    assert!(told.contains("user:ann"), "{told}");
}

#[test]
fn lines_that_are_no_requests_are_counted_and_skipped() {
    let (decisions, told) = decide("odd.log");
    assert_eq!(decisions, ["per-client 1 60000", "per-client 0 58000"]);
    let expected = [
        "reading input as an access log in the common or combined format",
        "input:2:92: the client sent no request line; skipped",
        "input:3:49: the client sent no request line; skipped",
        "input:5:1: `2023/11/14` is not the address of a client; skipped",
    ];
    assert_eq!(told.lines().take(4).collect::<Vec<_>>(), expected);
    assert!(told.contains("7 lines in "), "{told}");
    assert!(told.contains("; 4 invalid lines were skipped"), "{told}");
}
