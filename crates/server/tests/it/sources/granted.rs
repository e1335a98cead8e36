//! The user of `tidegate doctor` can read, subscribe to and write everything in Redis.

use super::admin::{admin, administrate};
use super::kit::{Program, policy};
use crate::kit::process::ProcessEnd;
use crate::kit::redis::{RunningConfig, parsed};
use serde_json::{Value, json};
use tidegate_testkit::redis::{RespReply, Server as Redis, until};

/// Returns a config with everything that can be in the Redis of the store.
fn config(url: &str) -> String {
    let admin = admin().replace("] }", "], audit: { stream: 'our:audit' } }");
    format!(
        "
store: {{ url: '{url}', timeout: 10s }}
sources:
  - {{ name: documents, redis: {{ key: 'our:policies' }}, refresh: 1h, timeout: 1s }}
  - {{ name: sets, redis: {{ rulesets: flux }}, refresh: 1h, timeout: 1s }}
plans: [{{ name: consumers, redis: {{ key: 'our:plans' }} }}]
{admin}
policies:
  - name: planned
    limits: [{{ name: each, key: user, rate: {{ plan: consumers, subject: user, default: unlimited }} }}]
"
    )
}

/// Returns a Redis with data for all sources.
fn told() -> Redis {
    let redis = Redis::start();
    let document = policy("api", "5/s");
    for command in [
        ["HSET", "our:policies", "policy/api", &document],
        ["HSET", "flux:ruleset:a", "capacity", "5"],
        ["HSET", "flux:ruleset:a", "windowSeconds", "60"],
    ] {
        redis.command(&command).int();
    }
    redis.command(&["SADD", "flux:rulesets", "a"]).int();
    redis
}

async fn examined(text: String) -> (ProcessEnd, Value) {
    let ended = RunningConfig::by(text).run(&["doctor", "--json"]).await;
    let report = parsed(&ended);
    (ended, report)
}

fn failed(report: &Value) -> Vec<String> {
    let findings = report["findings"].as_array().unwrap().iter();
    let failed = findings.filter(|it| it["mark"] == "fail");
    failed
        .map(|it| format!("{}: {}", it["check"], it["text"]))
        .collect()
}

fn as_user(redis: &Redis) -> String {
    config(&format!("redis://tidegate:hunter2@{}", redis.address()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_printed_acl_user_can_use_all_redis_sources() {
    let redis = told();
    let (ended, report) = examined(config(&redis.url())).await;
    assert_eq!(failed(&report), [""; 0], "{}", ended.stdout);
    let line = report["acl"]["limiter"].as_str().unwrap();
    let line = line.replace("PASSWORD", "hunter2");
    redis.command(&line.split(' ').collect::<Vec<_>>()).done();

    let program = Program::start(&as_user(&redis)).await;
    assert_eq!(program.band("api").await, "5/s");
    until("both channels are listened to", || {
        redis.command(&["PUBSUB", "CHANNELS"]).list().len() == 2
    });
    let made = json!({ "name": "more", "limits": [{ "name": "all", "rate": "7/s" }] });
    let (status, said) = administrate(&program, "POST", "/policies?source=documents", &made).await;
    assert_eq!(status, 201, "{said}");
    assert_eq!(program.band("more").await, "7/s");
    let made = json!({ "id": "ann", "rate": "9/min" });
    let (status, said) = administrate(&program, "POST", "/plans/consumers/subjects", &made).await;
    assert_eq!(status, 201, "{said}");
    let asked = json!({ "policy": "planned", "limit": "each", "all": true });
    let (status, said) = administrate(&program, "POST", "/buckets/reset", &asked).await;
    assert_eq!(status, 200, "{said}");
    assert_eq!(redis.command(&["XLEN", "our:audit"]).int(), 3);

    let (ended, report) = examined(as_user(&redis)).await;
    assert_eq!(failed(&report), [""; 0], "{}", ended.stdout);
    let log = redis.command(&["ACL", "LOG"]);
    let denied: Vec<Vec<String>> = log.list().iter().map(RespReply::texts).collect();
    let asked_by_doctor = ["config|get", "acl|whoami"];
    let others = denied.iter().filter(|entry| {
        let mut words = entry.iter();
        !words.any(|word| asked_by_doctor.contains(&word.as_str()))
    });
    assert_eq!(others.count(), 0, "{denied:?}");
}

#[tokio::test]
async fn an_unreadable_source_is_reported_with_all_other_findings() {
    let redis = told();
    let rules = "ACL SETUSER tidegate reset on >hunter2 ~tg:* ~flux:* +@all -hgetall";
    redis.command(&rules.split(' ').collect::<Vec<_>>()).done();
    let (ended, report) = examined(as_user(&redis)).await;
    assert_eq!(ended.status.code(), Some(1), "{}", ended.stderr);
    let failed = failed(&report).join("\n");
    for words in [
        "config source `documents`",
        "may not run hgetall: sources and plans cannot be read",
        "has no access to `our:policies`, `our:plans`, `our:audit`",
    ] {
        assert!(failed.contains(words), "{words}: {failed}");
    }
    let line = report["acl"]["limiter"].as_str().unwrap();
    assert!(line.contains(" ~our:policies "), "{line}");
    assert!(!(ended.stdout + &ended.stderr).contains("hunter2"));
}
