//! Decisions that must match exactly: through the simulator's code, and through the program.

use crate::kit::process::{run, tidegate};
use crate::kit::simulation;
use serde_json::Value;
use tidegate_testkit::vectors::{self, Vector};

fn compare(vector: &Vector, decisions: &str) {
    assert_eq!(
        decisions.lines().count(),
        vector.expected.len(),
        "{}",
        vector.name
    );
    for (nth, (decision, expected)) in decisions.lines().zip(&vector.expected).enumerate() {
        let decision: Value = serde_json::from_str(decision).unwrap();
        let expected: Value = serde_json::from_str(expected).unwrap();
        assert_eq!(decision, expected, "{}, line {}", vector.name, nth + 1);
    }
}

#[test]
fn the_simulator_decides_every_vector() {
    for vector in vectors::decided() {
        let trace = vector.trace.join("\n");
        let simulated = simulation::run(&vector.config, trace.as_bytes());
        simulated.ended.unwrap();
        compare(&vector, &simulated.out);
    }
}

#[tokio::test]
async fn the_program_decides_every_vector() {
    for vector in vectors::decided() {
        let file = |name| vector.folder.join(name).to_str().unwrap().to_owned();
        let (config, trace) = (file("config.yaml"), file("trace.jsonl"));
        let ended = run(tidegate(&[
            "simulate", "--config", &config, "--trace", &trace,
        ]))
        .await;
        assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
        compare(&vector, &ended.stdout);
        assert!(
            ended
                .stderr
                .contains(&format!("{} requests: ", vector.trace.len()))
        );
    }
}
