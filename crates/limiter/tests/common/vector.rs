//! Vectors: converts a line of a trace into a request, and a decision into the expected line.

use serde_json::{Value, json};
use tidegate::{Cost, CostMap, Decision, Limiter, ManualClock, Request, Store, Timestamp};
use tidegate_testkit::vectors::Vector;

/// Sends a whole trace to `limiter`, whose clock is `clock`, and compares each decision with the expected
/// one. Runs `settle` after each.
pub(crate) async fn replay<S: Store>(
    vector: &Vector,
    limiter: &Limiter<S>,
    clock: &ManualClock,
    settle: impl Fn(),
) {
    for (nth, (question, expected)) in vector.trace.iter().zip(&vector.expected).enumerate() {
        let question: Value = serde_json::from_str(question).expect("JSON");
        let expected: Value = serde_json::from_str(expected).expect("JSON");
        let at_ms = question["at_ms"].as_u64().expect("an instant");
        clock.set(Timestamp::from_millis(at_ms));
        let decided = answer(&decide(limiter, &question).await);
        let (name, line) = (&vector.name, nth + 1);
        assert_eq!(decided, expected, "{name}, line {line}: {question}");
        settle();
    }
}

/// Returns the names and values of an object; a list of values gives several pairs.
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

/// Returns a cost: a number, a map of units, or nothing.
fn cost(value: &Value) -> CostMap<'_> {
    match value {
        Value::Number(number) => CostMap::Number(number.as_u64().expect("a whole number")),
        value => {
            let units = value.as_object().into_iter().flatten();
            units
                .map(|(unit, amount)| (unit.as_str(), amount.as_u64().expect("a whole number")))
                .collect()
        }
    }
}

/// Sends a request of a trace to a limiter.
pub(crate) async fn decide<S: Store>(limiter: &Limiter<S>, question: &Value) -> Decision {
    let (headers, attributes) = (pairs(&question["headers"]), pairs(&question["attributes"]));
    let cost = cost(&question["cost"]);
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
        cost: Cost::from(&cost),
        ..Request::new()
    };
    limiter.check(&request).await.expect("the store answers")
}

/// Returns a decision in the form of the vectors.
pub(crate) fn answer(decision: &Decision) -> Value {
    let Some(binding) = decision.binding() else {
        return json!({ "allowed": decision.is_allowed(), "limit": null });
    };
    let reset_us = u64::try_from(binding.reset_after().as_micros()).expect("it fits");
    let mut line = json!({
        "allowed": decision.is_allowed(),
        "limit": binding.limit(),
        "band": binding.band(),
        "remaining": binding.remaining(),
        "retry_after_ms": binding.wait().as_millis(),
        "reset_ms": reset_us.div_ceil(1_000),
    });
    if let Some(unit) = binding.unit() {
        line["unit"] = unit.into();
    }
    line
}
