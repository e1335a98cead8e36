//! Instances that start and stop while policies change, and buckets that persist.

use super::kit::Program;
use super::redis::{config, connect, set};
use crate::kit::post;
use std::time::Duration;
use tidegate_testkit::redis::Server as Redis;
use tokio::time::timeout;

/// The number of concurrent instances.
const INSTANCES: usize = 3;
/// The number of policy changes.
const CHANGES: u64 = 24;
/// The time within which all instances must serve the last change.
const PATIENCE: Duration = Duration::from_mins(1);

/// Pseudo-random numbers, the same in every run, so that failures are reproducible.
struct DrawnNumbers(u64);

impl DrawnNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(end).unwrap()).unwrap()
    }
}

#[tokio::test]
async fn restarted_instances_converge_on_the_last_policy() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", "1/s").await;
    let text = config(&redis, "200ms");
    let mut alive = Vec::new();
    for _ in 0..INSTANCES {
        alive.push(Program::start(&text).await);
    }
    let mut drawn = DrawnNumbers(0x9E37_79B9_7F4A_7C15);
    for nth in 2..=CHANGES {
        set(&connection, "api", &format!("{nth}/s")).await;
        match drawn.below(4) {
            0 => {
                // One is killed, and another starts.
                drop(alive.swap_remove(drawn.below(INSTANCES)));
                alive.push(Program::start(&text).await);
            }
            1 => alive[drawn.below(INSTANCES)].process.signal("HUP").await,
            _ => {}
        }
    }
    let last = format!("{CHANGES}/s");
    for program in &alive {
        let serves_it = async { while program.band("api").await != last {} };
        let serves_it = timeout(PATIENCE, serves_it).await;
        assert!(
            serves_it.is_ok(),
            "one serves {}",
            program.band("api").await
        );
    }
}

#[tokio::test]
async fn an_exhausted_client_gets_no_fresh_burst_by_a_raised_rate() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", "2/h burst 5").await;
    let mut program = Program::start(&config(&redis, "200ms")).await;
    let ask = async |program: &Program| {
        let question = r#"{"policy": "api", "path": "/"}"#;
        let reply = post(program.http, question).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.json()["allowed"] == true
    };
    for _ in 0..5 {
        assert!(ask(&program).await);
    }
    assert!(!ask(&program).await);
    for rate in ["3/h burst 5", "5/h burst 5", "8/h burst 5"] {
        let version = set(&connection, "api", rate).await;
        program.serves("redis", &version).await;
        assert_eq!(program.band("api").await, rate);
        assert!(!ask(&program).await, "{rate}");
    }
}
