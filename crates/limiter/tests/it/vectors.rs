//! How: every vector is put to a limiter in memory, by a clock that its trace sets, and each
//! decision is compared with what an independent model decided.

use serde_json::{Value, json};
use tidegate::{Decision, Limiter, ManualClock, MemoryStore, Request, Timestamp};
use tidegate_testkit::vectors;

/// Names and values of an object; a list of values is several of them.
fn pairs(object: &Value) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    for (name, value) in object.as_object().into_iter().flatten() {
        match value {
            Value::Array(values) => {
                pairs.extend(
                    values
                        .iter()
                        .map(|value| (&**name, value.as_str().expect("a string"))),
                );
            }
            value => pairs.push((name, value.as_str().expect("a string"))),
        }
    }
    pairs
}

fn decide(limiter: &Limiter<MemoryStore<ManualClock>>, question: &Value) -> Decision {
    let (headers, attributes) = (pairs(&question["headers"]), pairs(&question["attributes"]));
    let request = Request {
        policy: question["policy"].as_str(),
        ip: question["ip"]
            .as_str()
            .map(|ip| ip.parse().expect("an address")),
        user: question["user"].as_str(),
        api_key: question["api_key"].as_str(),
        method: question["method"].as_str(),
        host: question["host"].as_str(),
        path: question["path"].as_str(),
        route: question["route"].as_str(),
        headers: &headers,
        attributes: &attributes,
        cost: question["cost"].as_u64().unwrap_or(1),
    };
    limiter.check_now(&request).expect("memory answers")
}

fn answer(decision: &Decision) -> Value {
    let Some(binding) = decision.binding() else {
        return json!({ "allowed": decision.is_allowed(), "limit": null });
    };
    let reset_us = u64::try_from(binding.reset_after().as_micros()).expect("it fits");
    json!({
        "allowed": decision.is_allowed(),
        "limit": binding.limit(),
        "band": binding.band(),
        "remaining": binding.remaining(),
        "retry_after_ms": binding.wait().as_millis(),
        "reset_ms": reset_us.div_ceil(1_000),
    })
}

#[test]
fn every_vector_comes_out_to_the_letter() {
    for vector in vectors::all() {
        let clock = ManualClock::default();
        let limiter = Limiter::builder().clock(clock.clone());
        let limiter = limiter.yaml(&vector.config).unwrap().build().unwrap();
        for (nth, (question, expected)) in vector.trace.iter().zip(&vector.expected).enumerate() {
            let question: Value = serde_json::from_str(question).unwrap();
            let expected: Value = serde_json::from_str(expected).unwrap();
            clock.set(Timestamp::from_millis(question["at_ms"].as_u64().unwrap()));
            let decided = answer(&decide(&limiter, &question));
            assert_eq!(
                decided,
                expected,
                "{}, line {}: {question}",
                vector.name,
                nth + 1
            );
        }
    }
}
