//! Calls through the connection to real servers.

mod cluster;
mod faults;
mod sentinel;
mod standalone;

use super::*;
use crate::error::{CallEffect, CallErrorKind};
use redis::{Cmd, Value};
use std::time::Duration;
use tidegate_testkit::redis::Server;
use tokio::time::{sleep, timeout};

/// Long enough for a busy machine.
const AGES: Duration = Duration::from_secs(30);

fn address(server: &Server) -> Address {
    Address::new("127.0.0.1", server.port())
}

fn settings(server: &Server) -> ConnectionSettings {
    ConnectionSettings::new(RedisTopology::Standalone, vec![address(server)]).connect_timeout(AGES)
}

fn counter() -> Script {
    let text = "return redis.call('INCR', KEYS[1])";
    Script::new("counter", text.to_owned())
}

fn count(script: &Script, key: &str) -> Cmd {
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.sha()).arg(1).arg(key);
    command
}

/// Runs a call with a long timeout.
async fn run(connection: &Connection, key: &str, repeat: RepeatEffect) -> Result<Value, CallError> {
    run_within(connection, key, repeat, AGES).await
}

async fn run_within(
    connection: &Connection,
    key: &str,
    repeat: RepeatEffect,
    time: Duration,
) -> Result<Value, CallError> {
    let script = counter();
    let command = count(&script, key);
    let slot = crate::slot::slot(key.as_bytes());
    connection
        .run(slot, &script, &command, repeat, Instant::now() + time)
        .await
}

/// Repeats a call until it succeeds; earlier errors are ignored.
async fn run_until_it_works(connection: &Connection, key: &str) -> i64 {
    let trying = async {
        loop {
            let time = Duration::from_millis(200);
            if let Ok(Value::Int(n)) =
                run_within(connection, key, RepeatEffect::Consume, time).await
            {
                return n;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(AGES, trying).await.expect("it works in the end")
}

/// Waits until a condition is true.
async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let trying = async {
        while !condition() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(AGES, trying).await.expect(what);
}
