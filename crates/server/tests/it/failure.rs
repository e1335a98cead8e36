//! Responses of all frontends while the store does not answer.

use crate::admin::samples;
use crate::kit::{CuttableServer, Server, ask, get, post};

const EACH: &str = "
policies:
  - { name: local, limits: [{ name: x, rate: 2/h, on_failure: local }] }
  - { name: allow, limits: [{ name: x, rate: 2/h, on_failure: allow }] }
  - { name: deny, limits: [{ name: x, rate: 2/h, on_failure: deny }] }
  - { name: error, limits: [{ name: x, rate: 2/h, on_failure: error }] }
";

#[tokio::test]
async fn a_decision_without_the_store_is_marked_and_an_error_is_503() {
    let it = CuttableServer::start(EACH).await;
    it.cut();
    for (policy, status, body) in [
        (
            "local",
            200,
            r#"{"allowed":true,"limit":"x","band":"2/h","remaining":0,"retry_after_ms":0,"reset_ms":3600000,"decided_by":"local"}"#,
        ),
        (
            "local",
            200,
            r#"{"allowed":false,"limit":"x","band":"2/h","remaining":0,"retry_after_ms":3600000,"reset_ms":3600000,"decided_by":"local"}"#,
        ),
        (
            "allow",
            200,
            r#"{"allowed":true,"limit":"x","band":"2/h","remaining":null,"retry_after_ms":0,"reset_ms":null,"decided_by":"failure"}"#,
        ),
        (
            "deny",
            200,
            r#"{"allowed":false,"limit":"x","band":null,"remaining":0,"retry_after_ms":1000,"reset_ms":0,"decided_by":"failure"}"#,
        ),
        (
            "error",
            503,
            r#"{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"decision not possible at the moment; retry"}"#,
        ),
    ] {
        let reply = it.ask(policy).await;
        assert_eq!((reply.status, reply.body.as_str()), (status, body));
    }
    it.mend();
    for policy in ["local", "allow", "deny", "error"] {
        let reply = it.ask(policy).await;
        assert_eq!(
            reply.body,
            r#"{"allowed":true,"limit":"x","band":"2/h","remaining":1,"retry_after_ms":0,"reset_ms":1800000}"#,
        );
    }
}

#[tokio::test]
async fn metrics_show_the_store_state_and_decisions_without_it() {
    let it = CuttableServer::start(EACH).await;
    let page = || async { samples(&get(it.server.admin, "/metrics").await.body) };
    let before = page().await;
    assert_eq!(before.get("tidegate_store_up"), Some(&1.0));
    assert_eq!(
        before.get("tidegate_store_errors_total{kind=\"timeout\"}"),
        Some(&0.0)
    );
    assert!(
        !before.contains_key("tidegate_store_buckets"),
        "not Tidegate's"
    );
    it.cut();
    for policy in ["local", "local", "allow", "deny", "error"] {
        it.ask(policy).await;
    }
    // Without a policy, the first one applies.
    post(it.server.http, "{}").await;
    let during = page().await;
    assert_eq!(during.get("tidegate_store_up"), Some(&0.0));
    assert_eq!(
        during.get("tidegate_store_errors_total{kind=\"timeout\"}"),
        Some(&6.0)
    );
    assert_eq!(
        during.get("tidegate_store_errors_total{kind=\"corrupt\"}"),
        Some(&0.0)
    );
    for (policy, outcome, count) in [
        ("local", "local", 3.0),
        ("local", "error", 0.0),
        ("allow", "allow", 1.0),
        ("deny", "deny", 1.0),
        ("error", "error", 1.0),
    ] {
        let name = format!(
            "tidegate_decisions_without_store_total{{policy=\"{policy}\",outcome=\"{outcome}\"}}"
        );
        assert_eq!(during.get(&name), Some(&count), "{name}");
    }
    it.mend();
    it.ask("allow").await;
    assert_eq!(page().await.get("tidegate_store_up"), Some(&1.0));
}

#[tokio::test]
async fn a_store_in_this_process_has_no_such_metrics() {
    let server = Server::start(crate::kit::TWO_A_MINUTE).await;
    let page = get(server.admin, "/metrics").await.body;
    for name in ["store_up", "store_errors", "without_store"] {
        assert!(!page.contains(name), "{name}");
    }
}

#[tokio::test]
async fn a_server_with_fallbacks_stays_ready_and_reports_the_outage() {
    let it = CuttableServer::start(EACH).await;
    assert_eq!(it.readyz().await, (200, r#"{"ready":true}"#.into()));
    it.cut();
    it.ask("deny").await;
    let degraded = r#"{"ready":true,"degraded":["store"]}"#;
    assert_eq!(it.readyz().await, (200, degraded.into()));
    // Only the probe calls the store, and still the recovery is noticed.
    it.mend();
    assert_eq!(it.readyz().await, (200, r#"{"ready":true}"#.into()));
}

#[tokio::test]
async fn a_server_that_can_allow_nothing_is_not_ready() {
    let it = CuttableServer::start(
        "
policies:
  - { name: deny, limits: [{ name: x, rate: 2/h, on_failure: deny }] }
  - { name: error, limits: [{ name: x, rate: 2/h, on_failure: error }] }
",
    )
    .await;
    it.cut();
    it.ask("deny").await;
    let stuck = r#"{"ready":false,"reasons":["store"]}"#;
    assert_eq!(it.readyz().await, (503, stuck.into()));
    assert_eq!(get(it.server.admin, "/livez").await.status, 200);
    it.mend();
    assert_eq!(it.readyz().await, (200, r#"{"ready":true}"#.into()));
}

#[tokio::test]
async fn allow_reported_neither_limit_nor_reset_during_an_outage() {
    let it = CuttableServer::start(
        "
respond: { headers: [x-ratelimit, draft-03, draft-11], reset: delta }
policies:
  - name: api
    limits:
      - { name: large, rate: 100/h, on_failure: allow }
      - { name: small, rate: 2/h, algorithm: fixed-window, align: clock, on_failure: allow }
  - { name: bucket, limits: [{ name: x, rate: 2/h, on_failure: allow }] }
  - { name: mixed, limits: [{ name: x, rate: 2/h, on_failure: allow }, { name: y, rate: 9/h }] }
",
    )
    .await;
    it.cut();
    let reply = ask("/v1/auth/api").at(it.server.http).await;
    assert_eq!(
        (reply.status, reply.header("x-ratelimit-limit")),
        (200, Some("2"))
    );
    let listed = Some("2, 100;w=3600, 2;w=3600");
    assert_eq!(reply.header("ratelimit-limit"), listed);
    let policy = Some(r#""large";q=100;w=3600, "small";q=2;w=3600"#);
    assert_eq!(reply.header("ratelimit-policy"), policy);
    let seconds = |name: &str| reply.header(name).and_then(|it| it.parse::<u64>().ok());
    for reset in ["x-ratelimit-reset", "ratelimit-reset"] {
        assert!(
            seconds(reset).is_some_and(|it| (1..=3600).contains(&it)),
            "{reset}"
        );
    }
    for unknown in ["x-ratelimit-remaining", "ratelimit-remaining", "ratelimit"] {
        assert_eq!(reply.header(unknown), None, "the outcome is unknown");
    }
    let told = it.ask("api").await.json();
    assert_eq!(
        (&told["limit"], &told["remaining"]),
        (&"small".into(), &().into())
    );
    assert!(told["reset_ms"].as_u64().is_some_and(|it| it <= 3_600_000));

    let reply = ask("/v1/auth/bucket").at(it.server.http).await;
    assert_eq!(reply.header("x-ratelimit-limit"), Some("2"));
    assert_eq!(
        reply.header("x-ratelimit-reset"),
        None,
        "decided by the store only"
    );
    let reply = ask("/v1/auth/mixed").at(it.server.http).await;
    assert_eq!(
        reply.header("x-ratelimit-limit"),
        Some("9"),
        "a local decision"
    );
}
