//! Rule sets of `FluxGate`, in hashes of a real Redis.

use super::kit::{Program, SERVED, nth_rate, under_load};
use serde_json::json;
use tidegate_testkit::redis::Server as Redis;

pub(super) fn config(redis: &Redis, refresh: &str) -> String {
    let url = redis.url();
    format!("sources: [{{ redis: {{ url: '{url}', rulesets: fluxgate, refresh: {refresh} }} }}]")
}

/// Writes a rule set of one rule for everybody, so much in so many seconds, and tells whoever listens.
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
