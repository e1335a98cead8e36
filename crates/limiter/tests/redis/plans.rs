//! Rates from plans in the layout of the documents: one hash, a field for each project.

use crate::runtime;
use tidegate::plan::PlanDocument;
use tidegate::{Config, Limiter, Request};
use tidegate_testkit::redis::{Cluster, Server};

fn config(server: &Server) -> Config {
    let text = format!(
        "
store: {{ url: '{}', timeout: 10s, redis: {{ layout: open, deny_cache: 0 }} }}
plans: [{{ name: events, file: plans.yaml }}]
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
    Config::from_yaml(&text).expect("a valid config")
}

fn document(text: &str) -> PlanDocument {
    tidegate::plans_from_text(text, false).expect("a valid config")
}

#[test]
fn each_project_has_its_own_window_in_the_shared_hash() {
    let server = Server::start();
    let mut redis = server.client();
    runtime().block_on(async {
        let builder = Limiter::builder().config(config(&server));
        let limiter = builder.connect().await.expect("the server is up");
        let plans = "
plans: { free: { amount: 3, period: 3600 } }
groups: { acme: { plan: free } }
subjects: { one: { group: acme }, two: { group: acme, amount: 2 }, old: { amount: 5, period: 10 } }
";
        limiter
            .replace_plans("events", document(plans))
            .expect("a valid config");
        let passes = async |project: &str, times: usize| {
            let attributes = [("project", project)];
            let request = Request::new().attributes(&attributes);
            let mut passed = 0;
            for _ in 0..times {
                let decision = limiter.check(&request).await.expect("a decision");
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
        assert_eq!(count, 3, "refused requests were not counted");
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
            .replace_plans(
                "events",
                document("subjects: { one: { amount: 5, period: 3600 } }"),
            )
            .expect("a valid config");
        assert_eq!(passes("one", 9).await, 2);
        assert_eq!(value(&mut redis, "one"), (start, 5));
    });
}

/// The layout of the documents, on one server and on a Cluster: the log is a sorted set, and the block is a
/// key next to it.
#[test]
fn every_token_is_blocked_for_the_time_of_its_line() {
    let (server, cluster) = (Server::start(), Cluster::start(3, 0));
    for url in [server.url(), cluster.url()] {
        let text = format!(
            "
store: {{ url: '{url}', timeout: 10s, redis: {{ layout: open }} }}
plans: [{{ name: tokens, file: tokens.json, unset: refuse }}]
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
        let config = Config::from_yaml(&text).expect("a valid config");
        runtime().block_on(async {
            let builder = Limiter::builder().config(config);
            let limiter = builder.connect().await.expect("the server is up");
            let tokens = r#"{"subjects": {
                "abc": {"amount": 1, "period": 1},
                "def": {"amount": 1, "period": 1, "block": 600},
                "ghi": {"amount": 1, "period": 3600, "block": 0}
            }}"#;
            let replaced = limiter.replace_plans("tokens", document(tokens));
            replaced.expect("a valid config");
            for (token, least_s, most_s) in [("abc", 200, 300), ("def", 500, 600)] {
                let request = Request::new().api_key(token);
                // Two in one second, even on a slow machine.
                let refused = loop {
                    let decision = limiter.check(&request).await.expect("a decision");
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
                let decision = limiter.check(&request).await.expect("a decision");
                assert_eq!(decision.is_allowed(), is_allowed);
                assert!(!decision.is_blocked());
            }
        });
    }
}
