//! The model must reproduce the vectors exactly.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use tidegate_testkit::model::{ModelAlgorithm, ModelBucket, ModelQuota, ModelRequest, decide_all};
use tidegate_testkit::vectors;

const SECOND: u64 = 1_000_000;

/// Replays a vector against one bucket per address and band. `bands` are those of its
/// configuration, as written and as meant.
#[track_caller]
fn replay(name: &str, bands: &[(&str, ModelQuota)]) {
    let vector = vectors::all()
        .into_iter()
        .find(|vector| vector.name == name)
        .expect("the vector is there");
    for (written, _) in bands {
        assert!(
            vector.config.contains(written),
            "{written} is not a band of {name}"
        );
    }
    let mut clients: BTreeMap<String, Vec<ModelBucket>> = BTreeMap::new();
    let mut now_us = 0;
    for (line, (request, expected)) in vector.trace.iter().zip(&vector.expected).enumerate() {
        let request: Value = serde_json::from_str(request).unwrap();
        let mut expected: Value = serde_json::from_str(expected).unwrap();
        // A store has one clock: an instant seen by another client is not undone for this one.
        now_us = now_us.max(request["at_ms"].as_u64().unwrap() * 1_000);
        let buckets = clients
            .entry(request["ip"].as_str().unwrap().to_owned())
            .or_insert_with(|| {
                bands
                    .iter()
                    .map(|(_, quota)| ModelBucket::new(*quota))
                    .collect()
            });
        let cost = request.get("cost").map_or(1, |cost| cost.as_u64().unwrap());

        let mut buckets: Vec<_> = buckets.iter_mut().collect();
        let (allowed, answers) = decide_all(&mut buckets, now_us, cost);
        let binding = ModelRequest::binding(&answers).unwrap();
        let decision = json!({
            "allowed": allowed,
            "band": bands[binding].0,
            "remaining": answers[binding].remaining,
            "retry_after_ms": answers[binding].wait_us.map(|us| us.div_ceil(1_000)),
            "reset_ms": answers[binding].reset_us.div_ceil(1_000),
        });

        // The limit of a band is known to the policy only.
        expected.as_object_mut().unwrap().remove("limit");
        assert_eq!(decision, expected, "{name}, line {}: {request}", line + 1);
    }
}

#[test]
fn token_bucket_burst_then_rate() {
    replay(
        "token-bucket-burst-then-rate",
        &[("7/s burst 15", ModelQuota::token_bucket(7, SECOND, 15))],
    );
}

#[test]
fn token_bucket_costs() {
    replay(
        "token-bucket-costs",
        &[("10/s burst 20", ModelQuota::token_bucket(10, SECOND, 20))],
    );
}

#[test]
fn token_bucket_slow() {
    replay(
        "token-bucket-slow",
        &[(
            "3/h burst 5",
            ModelQuota::token_bucket(3, 3_600 * SECOND, 5),
        )],
    );
}

#[test]
fn clock_goes_back() {
    replay(
        "clock-goes-back",
        &[("10/s burst 10", ModelQuota::token_bucket(10, SECOND, 10))],
    );
}

#[test]
fn bands_all_or_nothing() {
    replay(
        "bands-all-or-nothing",
        &[
            ("10/s", ModelQuota::token_bucket(10, SECOND, 10)),
            ("40/10s", ModelQuota::token_bucket(40, 10 * SECOND, 40)),
            ("90/min", ModelQuota::token_bucket(90, 60 * SECOND, 90)),
        ],
    );
}

#[test]
fn fixed_window() {
    replay(
        "fixed-window",
        &[(
            "5/10s",
            ModelQuota::new(ModelAlgorithm::FixedWindow, 5, 10 * SECOND),
        )],
    );
}

#[test]
fn sliding_window() {
    replay(
        "sliding-window",
        &[(
            "10/s",
            ModelQuota::new(ModelAlgorithm::SlidingWindow, 10, SECOND),
        )],
    );
}

#[test]
fn sliding_log() {
    replay(
        "sliding-log",
        &[(
            "6/2s",
            ModelQuota::new(ModelAlgorithm::SlidingLog, 6, 2 * SECOND),
        )],
    );
}
