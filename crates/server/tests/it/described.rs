//! Descriptors, at `POST /v1/check` and in a trace.

use crate::kit::{Server, post, simulation};
use serde_json::{Value, json};

const POLICY: &str = "
listen: { http: 127.0.0.1:0, admin: 127.0.0.1:0 }
policies:
  - name: edge
    limits:
      - { name: user, match: { descriptor: [user] }, key: 'descriptor:user', rate: 2/h, algorithm: fixed-window }
      - { name: tenant, match: { descriptor: [tenant] }, key: 'descriptor:tenant', rate: 1/h, algorithm: fixed-window }
      - { name: staff, match: { descriptor: [user: root] }, rate: unlimited }
";

fn entry(key: &str, value: &str) -> Value {
    json!({ "entries": [{ "key": key, "value": value }] })
}

/// Returns the status of each descriptor: allowed or not, its limit, and the remaining units.
fn results(answer: &Value) -> Vec<Value> {
    let each = answer["descriptors"].as_array().unwrap().iter();
    each.map(|it| json!([it["allowed"], it["limit"], it["remaining"]]))
        .collect()
}

#[tokio::test]
async fn each_descriptor_has_its_own_result_and_all_are_atomic() {
    let server = Server::start(POLICY).await;
    let question = json!({ "descriptors": [
        entry("user", "ann"), entry("tenant", "acme"), entry("user", "root"), entry("un", "known"),
    ]})
    .to_string();
    let first = post(server.http, &question).await.json();
    assert_eq!(first["allowed"], true);
    let nothing = json!([true, null, null]);
    assert_eq!(
        results(&first),
        [
            json!([true, "user", 1]),
            json!([true, "tenant", 0]),
            nothing.clone(),
            nothing.clone()
        ]
    );
    assert_eq!(first["descriptors"][2]["unlimited"], true);
    assert_eq!(first["descriptors"][3].get("unlimited"), None);
    let refused = post(server.http, &question).await.json();
    assert_eq!(
        (&refused["allowed"], &refused["limit"]),
        (&json!(false), &json!("tenant"))
    );
    assert_eq!(
        results(&refused),
        [
            json!([true, "user", 1]),
            json!([false, "tenant", 0]),
            nothing.clone(),
            nothing
        ]
    );
}

#[tokio::test]
async fn hits_and_limits_of_the_request_apply() {
    let server = Server::start(POLICY).await;
    let ask = async |more: Value| {
        let mut descriptor = entry("user", "ann");
        let more = more.as_object().unwrap().clone();
        descriptor.as_object_mut().unwrap().extend(more);
        let question = json!({ "descriptors": [descriptor] }).to_string();
        let answer = post(server.http, &question).await.json();
        results(&answer)[0].clone()
    };
    assert_eq!(ask(json!({ "hits": 2 })).await, json!([true, "user", 0]));
    assert_eq!(ask(json!({ "hits": 0 })).await, json!([false, "user", 0]));
    assert_eq!(ask(json!({ "hits": -1 })).await, json!([true, "user", 1]));
    assert_eq!(ask(json!({ "hits": 0 })).await, json!([true, "user", 1]));
    let limit = json!({ "limit": { "amount": 7, "period_ms": 3_600_000 } });
    assert_eq!(ask(limit).await, json!([true, "override", 6]));
}

#[tokio::test]
async fn an_invalid_limit_fails_its_list_before_any_decision() {
    let server = Server::start(POLICY).await;
    let good = json!({ "descriptors": [entry("user", "ann")] });
    let mut bad = entry("user", "bob");
    bad["limit"] = json!({ "amount": u64::MAX, "period_ms": 1 });
    let list = json!([good, { "descriptors": [bad] }]).to_string();
    let reply = post(server.http, &list).await;
    assert_eq!(reply.status, 400, "{}", reply.body);
    assert!(reply.body.contains("[1].descriptors"), "{}", reply.body);
    let answer = post(server.http, &good.to_string()).await.json();
    assert_eq!(results(&answer), [json!([true, "user", 1])]);
}

#[test]
fn a_trace_with_descriptors_is_decided_and_counted_by_limit() {
    let line = |at_ms: u64, user: &str| {
        let descriptors = [entry("user", user), entry("user", "bob")];
        json!({ "at_ms": at_ms, "descriptors": descriptors }).to_string()
    };
    let trace = [line(1, "ann"), line(2, "ann"), line(3, "ann")].join("\n");
    let simulated = simulation::run(POLICY, trace.as_bytes());
    simulated.ended.unwrap();
    let answers = simulated.out.lines().map(|line| {
        let answer: Value = serde_json::from_str(line).unwrap();
        results(&answer)
    });
    let both = |allowed: bool, left: u64| vec![json!([allowed, "user", left]); 2];
    assert_eq!(
        answers.collect::<Vec<_>>(),
        [both(true, 1), both(true, 0), both(false, 0)]
    );
    // Two buckets of one limit, with three requests each.
    let err = &simulated.err;
    assert!(err.contains("descriptor.user:ann"), "{err}");
    assert!(err.contains("descriptor.user:bob"), "{err}");
}
