//! Rates from plans in the layout of the documents: one hash, a field for each project.

use crate::runtime;
use tidegate::plan::PlanDocument;
use tidegate::{Config, Limiter, Request};
use tidegate_testkit::redis::{Cluster, Server};

fn config(server: &Server) -> Config {
    let text = format!(
        "
store: {{ url: '{}', layout: open, timeout: 10s, deny_cache: 0 }}
plans: [{{ name: events, from: {{ file: plans.yaml }} }}]
policies:
  - name: events
    limits:
      - name: per-project
        key: attr:project
        rate: {{ plan: events, subject: attr:project, default: unlimited }}
        algorithm: fixed-window
",
        server.url()
    );
    Config::from_yaml(&text).expect("it is right")
}

fn document(text: &str) -> PlanDocument {
    PlanDocument::read(text, false).expect("it is right")
}

#[test]
fn each_project_has_a_window_of_its_own_in_the_hash_that_all_share() {
    let server = Server::start();
    let mut redis = server.client();
    runtime().block_on(async {
        let builder = Limiter::builder().config(config(&server));
        let limiter = builder.connect().await.expect("the server is there");
        let plans = "
plans: { free: { N: 3, T: 3600 } }
workspaces: { acme: { plan: free } }
projects: { one: { workspaceId: acme }, two: { workspaceId: acme, N: 2 }, old: { N: 5, T: 10 } }
";
        limiter
            .replace_plans("events", document(plans))
            .expect("it is right");
        let passes = async |project: &str, times: usize| {
            let attributes = [("project", project)];
            let request = Request::new().attributes(&attributes);
            let mut passed = 0;
            for _ in 0..times {
                let decision = limiter.check(&request).await.expect("it is decided");
                passed += usize::from(decision.is_allowed());
            }
            passed
        };
        assert_eq!(passes("one", 9).await, 3);
        assert_eq!(passes("two", 9).await, 2);
        assert_eq!(passes("stranger", 9).await, 9);
        let value = |redis: &mut tidegate_testkit::redis::BlockingClient, field: &str| {
            let value = redis.command(&["HGET", "rate_limits", field]);
            let value = value.text();
            let (start, count) = value.split_once(':').expect("`timestamp:count`");
            let numbers: (u64, u64) = (
                start.parse().expect("seconds"),
                count.parse().expect("a count"),
            );
            numbers
        };
        let (start, count) = value(&mut redis, "one");
        assert_eq!(count, 3, "what was refused was not counted");
        assert_eq!(value(&mut redis, "two").1, 2);
        assert!(redis.command(&["HGET", "rate_limits", "stranger"]).is_nil());

        // Values that other programs wrote are read by the rules of the document.
        let now = start.to_string();
        let long_ago = (start - 11).to_string();
        redis
            .command(&["HSET", "rate_limits", "old", &format!("{long_ago}:5")])
            .done();
        assert_eq!(passes("old", 1).await, 1, "its ten seconds are over");
        assert_eq!(value(&mut redis, "old").1, 1);
        redis
            .command(&["HSET", "rate_limits", "two", &format!("{now}:1")])
            .done();
        assert_eq!(passes("two", 9).await, 1);

        // A new amount applies in the same window.
        limiter
            .replace_plans("events", document("projects: { one: { N: 5, T: 3600 } }"))
            .expect("it is right");
        assert_eq!(passes("one", 9).await, 2);
        assert_eq!(value(&mut redis, "one"), (start, 5));
    });
}

/// The layout of the documents, on one server and on a Cluster: the log is a sorted set, and the block is a
/// key next to it.
#[test]
fn every_token_is_blocked_for_as_long_as_its_line_says() {
    let (server, cluster) = (Server::start(), Cluster::start(3, 0));
    for url in [server.url(), cluster.url()] {
        let text = format!(
            "
store: {{ url: '{url}', layout: open, timeout: 10s }}
plans: [{{ name: tokens, from: {{ file: tokens.json }}, unset: refuse }}]
policies:
  - name: api
    limits:
      - name: per-token
        key: api-key
        rate: {{ plan: tokens, subject: api-key, default: skip }}
        algorithm: sliding-log
        block: 5m
        template: 'token:{{key}}'
"
        );
        let config = Config::from_yaml(&text).expect("it is right");
        runtime().block_on(async {
            let builder = Limiter::builder().config(config);
            let limiter = builder.connect().await.expect("the server is there");
            let tokens = r#"{"tokens": {
                "abc": {"limit": 1, "window_seconds": 1},
                "def": {"limit": 1, "window_seconds": 1, "block_duration_seconds": 600},
                "ghi": {"limit": 1, "window_seconds": 3600, "block_duration_seconds": 0}
            }}"#;
            let replaced = limiter.replace_plans("tokens", document(tokens));
            replaced.expect("it is right");
            for (token, least_s, most_s) in [("abc", 200, 300), ("def", 500, 600)] {
                let request = Request::new().api_key(token);
                // Two in one second, even on a slow machine.
                let refused = loop {
                    let decision = limiter.check(&request).await.expect("it is decided");
                    if !decision.is_allowed() {
                        break decision;
                    }
                };
                for decision in [refused, limiter.check(&request).await.expect("likewise")] {
                    let left = decision.blocked_for().expect("it is blocked").as_secs();
                    assert!((least_s..=most_s).contains(&left), "{token}: {left}");
                }
            }
            let request = Request::new().api_key("ghi");
            for is_allowed in [true, false, false] {
                let decision = limiter.check(&request).await.expect("it is decided");
                assert_eq!(decision.is_allowed(), is_allowed);
                assert!(!decision.is_blocked());
            }
        });
    }
}
