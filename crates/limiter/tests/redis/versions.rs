//! Two versions of a configuration on one Redis, as during a rollout.

use crate::runtime;
use tidegate::{Config, Limiter, Request};
use tidegate_testkit::redis::Server;

/// Returns a limiter with its own connection, and a policy with one limit.
async fn version(server: &Server, layout: &str, limit: &str) -> Limiter<impl tidegate::Store> {
    let text = format!(
        "
store: {{ url: '{}', timeout: 10s, redis: {{ layout: {layout} }} }}
policies: [{{ name: api, limits: [{{ name: x, key: user, {limit} }}] }}]
",
        server.url()
    );
    let config = Config::from_yaml(&text).expect("a valid config");
    let limiter = Limiter::builder().config(config).connect().await;
    limiter.expect("the server is up")
}

/// Sends requests to both in turn, and returns the number that passed at each.
async fn in_turns(server: &Server, layout: &str, versions: [&str; 2]) -> [u64; 2] {
    let one = version(server, layout, versions[0]).await;
    let other = version(server, layout, versions[1]).await;
    let user = format!("{layout}-{}", versions[0].len() * 1_000 + versions[1].len());
    let request = Request::new().user(&user);
    let mut passed = [0; 2];
    for turn in 0..300 {
        let decision = match turn % 2 {
            0 => one.check(&request).await,
            _ => other.check(&request).await,
        };
        let is_allowed = decision.expect("a decision").is_allowed();
        passed[turn % 2] += u64::from(is_allowed);
    }
    passed
}

/// The layout, and the other settings of the two versions of a limit.
const LIMITS: [(&str, [&str; 2]); 11] = [
    ("packed", ["", ""]),
    ("packed", [", on_change: scale"; 2]),
    ("packed", ["", ", refundable: true"]),
    ("packed", [", algorithm: fixed-window"; 2]),
    ("packed", [", algorithm: fixed-window, on_change: scale"; 2]),
    ("packed", [", algorithm: sliding-window"; 2]),
    ("packed", [", algorithm: bucketed-window"; 2]),
    ("open", ["", ""]),
    ("open", [", algorithm: fixed-window"; 2]),
    ("open", [", algorithm: sliding-log"; 2]),
    ("open", [", algorithm: bucketed-window"; 2]),
];

#[test]
fn two_config_versions_never_allow_more_than_the_larger_limit() {
    let server = Server::start();
    runtime().block_on(async {
        for (layout, [one, other]) in LIMITS {
            server.client().command(&["FLUSHALL"]);
            let versions = [format!("rate: 40/d{one}"), format!("rate: 60/d{other}")];
            let versions = versions.each_ref().map(String::as_str);
            let passed = in_turns(&server, layout, versions).await;
            let sum: u64 = passed.iter().sum();
            assert!(
                (20..=60).contains(&sum),
                "{layout} {versions:?}: {passed:?}"
            );
        }
    });
}

/// Each counts in its own buckets, and finds them again.
#[test]
fn two_config_versions_that_reset_count_separately() {
    let server = Server::start();
    runtime().block_on(async {
        for layout in ["packed", "open"] {
            for algorithm in [
                "token-bucket",
                "fixed-window",
                "sliding-log",
                "bucketed-window",
            ] {
                server.client().command(&["FLUSHALL"]);
                let versions = [40, 60].map(|amount| {
                    format!("rate: {amount}/d, algorithm: {algorithm}, on_change: reset")
                });
                let versions = versions.each_ref().map(String::as_str);
                let passed = in_turns(&server, layout, versions).await;
                assert_eq!(passed, [40, 60], "{layout} {algorithm}");
                let again = in_turns(&server, layout, versions).await;
                assert_eq!(again, [0, 0], "{layout} {algorithm}");
            }
        }
    });
}

/// Names are as documented, except for limits whose buckets are distinguished by their numbers.
#[test]
fn key_names_end_with_a_quota_hash_only_if_changes_reset() {
    let server = Server::start();
    runtime().block_on(async {
        let mut redis = server.client();
        let mut keys = async |limit: &str| {
            redis.command(&["FLUSHALL"]);
            let limiter = version(&server, "open", limit).await;
            let request = Request::new().user("ann");
            limiter.check(&request).await.expect("a decision");
            redis.command(&["KEYS", "*"]).texts()
        };
        assert_eq!(keys("rate: 40/d").await, ["ratelimit:x:ann"]);
        for (limit, name) in [
            ("rate: 40/d, on_change: reset", "ratelimit:x:ann~"),
            (
                "rate: 40/d, on_change: reset, algorithm: fixed-window",
                "rate_limits~",
            ),
        ] {
            let keys = keys(limit).await;
            let numbers = keys[0].strip_prefix(name);
            assert_eq!(
                (keys.len(), numbers.map(str::len)),
                (1, Some(8)),
                "{keys:?}"
            );
        }
    });
}
