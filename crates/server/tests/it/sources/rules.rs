//! Rule sets of `FluxGate`, in hashes of a real Redis.

use super::kit::{AWAY, BACK, PATIENCE, Program, SERVED, nth_rate, under_load};
use crate::kit::{get, post};
use serde_json::json;
use tidegate_testkit::redis::Server as Redis;
use tokio::time::timeout;

pub(super) fn config(redis: &Redis, refresh: &str) -> String {
    let url = redis.url();
    format!("sources: [{{ redis: {{ url: '{url}', rulesets: fluxgate }}, refresh: {refresh} }}]")
}

/// Writes a rule set with one rule for all clients, with this capacity and period, and notifies
/// subscribers.
pub(super) fn save(redis: &Redis, id: &str, (capacity, seconds): (u64, u64)) {
    let bands = json!([{ "windowSeconds": seconds, "capacity": capacity }]);
    let rules = json!([{ "id": "all", "scope": "GLOBAL", "bands": bands }]).to_string();
    let key = format!("fluxgate:ruleset:{id}");
    let hash = ["HSET", key.as_str(), "ruleSetId", id, "rules", &rules];
    redis.command(&hash).int();
    redis.command(&["SADD", "fluxgate:rulesets", id]).int();
    redis
        .command(&["PUBLISH", "fluxgate:rule-reload", id])
        .int();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_question_is_answered_while_rule_sets_change() {
    let redis = Redis::start();
    let amount = |nth: u64| (1_000_000 + nth, 1);
    save(&redis, "api", amount(0));
    let mut program = Program::start(&config(&redis, "1s")).await;
    under_load(&mut program, "api", async |program, nth, rate| {
        save(&redis, "api", amount(nth));
        while program.band("api").await != rate {
            program.process.logs(SERVED, ("source", "redis")).await;
        }
    })
    .await;
    assert_eq!(program.band("api").await, nth_rate(10));
}

/// Writes a rule set with one rule per user.
fn save_per_user(redis: &Redis, id: &str) {
    let key = format!("fluxgate:ruleset:{id}");
    let hash = ["HSET", &key, "ruleSetId", id, "keyStrategyId", "userId"];
    redis.command(&hash).int();
    redis.command(&["SADD", "fluxgate:rulesets", id]).int();
}

#[tokio::test]
async fn a_rule_by_user_without_a_user_source_caused_no_warning() {
    let redis = Redis::start();
    save_per_user(&redis, "api");
    let program = Program::start(&config(&redis, "1s")).await;
    let log = program.process.logged.join("\n");
    let warning = "`client` has no source of the user";
    assert!(log.contains(warning), "{log}");
    assert!(!log.to_ascii_lowercase().contains("x-user-id"), "{log}");

    let ask = async |more: &str| {
        let question = format!(r#"{{"policy": "api", "ip": "192.0.2.1"{more}}}"#);
        post(program.http, &question).await.json()
    };
    let answer = ask("").await;
    assert_eq!(answer["allowed"], true);
    let notice = answer["notice"]
        .as_str()
        .unwrap_or_else(|| panic!("{answer}"));
    assert!(notice.contains("`api-rule` counts by user"), "{notice}");
    assert!(
        notice.contains("`client.user` is not configured"),
        "{notice}"
    );
    assert!(ask(r#", "user": "ann""#).await["notice"].is_null());
    // With a source, requests without a user share a bucket.
    let text = format!(
        "client: {{ user: {{ header: X-Me }} }}\n{}",
        config(&redis, "1s")
    );
    let program = Program::start(&text).await;
    let answer = post(program.http, r#"{"policy": "api", "ip": "192.0.2.1"}"#).await;
    assert!(answer.json()["notice"].is_null());
}

#[tokio::test]
async fn a_rule_set_named_like_a_policy_rejected_all_rule_sets() {
    let redis = Redis::start();
    save(&redis, "api", (5, 1));
    save(&redis, "web", (6, 1));
    let text = |rate: &str| {
        let own = format!("policies: [{{ name: api, limits: [{{ name: all, rate: {rate} }}] }}]");
        format!("{}\n{own}", config(&redis, "200ms"))
    };
    let mut program = Program::start(&text("9/s")).await;
    assert_eq!(program.band("api").await, "9/s");
    assert_eq!(program.band("web").await, "6/s");
    let why = "policy `api` is skipped: a policy has the same name";
    let named = program
        .process
        .logged
        .iter()
        .filter(|line| line.contains(why));
    assert_eq!(named.count(), 1, "{:#?}", program.process.logged);
    let status = get(program.admin, "/status").await.body;
    assert!(status.contains(why), "{status}");
    let refused = "tidegate_source_rejected{source=\"redis\"}";
    assert_eq!(program.sample(refused).await, Some(1.0));

    save(&redis, "web", (7, 1));
    program.process.logs(SERVED, ("source", "redis")).await;
    assert_eq!(program.band("web").await, "7/s");
    let named = program
        .process
        .logged
        .iter()
        .filter(|line| line.contains(why));
    assert_eq!(named.count(), 1, "{:#?}", program.process.logged);
    // Once the name is free, it is served.
    program.write(&config(&redis, "200ms"));
    program.until(refused, 0.0).await;
    assert_eq!(program.band("api").await, "5/s");
}

#[tokio::test]
async fn a_recovered_source_was_retried_only_after_its_pause() {
    let redis = Redis::start();
    save(&redis, "api", (5, 1));
    let mut program = Program::start(&config(&redis, "1h")).await;
    // Another type under the key of the ids: Redis replies, but it cannot be read.
    redis
        .command(&["RENAME", "fluxgate:rulesets", "aside"])
        .done();
    redis
        .command(&["PUBLISH", "fluxgate:rule-reload", "*"])
        .int();
    program.process.logs(AWAY, ("source", "redis")).await;
    // The pause doubles with every failure: twelve of them would take far longer than this.
    let failed = "tidegate_source_loads_total{source=\"redis\",outcome=\"failed\"}";
    let woken = async {
        while program.sample(failed).await < Some(12.0) {
            redis
                .command(&["PUBLISH", "fluxgate:rule-reload", "*"])
                .int();
        }
    };
    let woken = timeout(PATIENCE, woken).await;
    woken.expect("messages end the pause");
    redis
        .command(&["RENAME", "aside", "fluxgate:rulesets"])
        .done();
    save(&redis, "api", (8, 1));
    program.process.logs(BACK, ("source", "redis")).await;
    assert_eq!(program.band("api").await, "8/s");
}

#[tokio::test]
async fn a_live_rule_by_api_key_named_its_buckets_by_a_hash() {
    let redis = Redis::start();
    let key = "fluxgate:ruleset:api";
    let hash = ["HSET", key, "ruleSetId", "api", "keyStrategyId", "apiKey"];
    redis.command(&hash).int();
    redis.command(&["SADD", "fluxgate:rulesets", "api"]).int();
    let store = format!(
        "store: {{ url: '{}', timeout: 10s, redis: {{ layout: open, template: 'fluxgate:{{policy}}:{{limit}}:{{key}}:{{band}}' }} }}",
        redis.url()
    );
    let program = Program::start(&format!("{store}\n{}", config(&redis, "1s"))).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("`store.redis.key_names: hashed`"), "{log}");
    let question = r#"{"policy": "api", "api_key": "k-123"}"#;
    assert!(post(program.http, question).await.is_allowed());
    let keys = redis.command(&["KEYS", "fluxgate:api:*"]).texts();
    assert_eq!(keys, ["fluxgate:api:api-rule:k-123:default"]);
}
