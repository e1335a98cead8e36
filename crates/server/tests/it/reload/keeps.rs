//! State that outlives a reload, and state that does not.

use super::kit::{ReloadableServer, Upstream, answered_by, ask, one_route};
use crate::kit::Client;
use std::time::Duration;
use tokio::time::timeout;

/// Nothing in these tests takes as long, unless it hangs.
const LONG: Duration = Duration::from_secs(8);

/// Returns a limit that all clients share, in front of `upstream`.
fn rated(rate: &str, upstream: &Upstream) -> String {
    format!(
        "policies: [{{ name: api, limits: [{{ name: all, key: global, rate: {rate} }}] }}]
routes: [{{ name: all, upstreams: ['http://{}'] }}]",
        upstream.address
    )
}

#[tokio::test]
async fn buckets_keep_their_usage_across_route_and_rate_changes() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    let it = ReloadableServer::start(&rated("2/h", &a)).await;
    for _ in 0..2 {
        assert_eq!(it.get("/").await.body, "a");
    }
    assert_eq!(it.get("/").await.status, 429);
    it.reload(&rated("2/h", &b));
    assert_eq!(it.get("/").await.status, 429, "still empty");
    it.reload(&rated("2/h burst 3", &b));
    assert_eq!(it.get("/").await.body, "b", "two of three are used");
    assert_eq!(it.get("/").await.status, 429);
}

#[tokio::test]
async fn a_request_in_flight_is_answered_by_its_upstream() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    let it = ReloadableServer::start(&one_route("a", &a)).await;
    let mut waiting = Client::connect(it.gateway).await;
    waiting
        .send("GET /held HTTP/1.1\r\nhost: test\r\n\r\n")
        .await;
    timeout(LONG, a.held.arrived.notified()).await.unwrap();
    it.reload(&one_route("b", &b));
    assert_eq!(answered_by(&it.get("/").await), "b");
    a.held.release.notify_one();
    assert_eq!(answered_by(&waiting.reply().await), "a");
    // The reload does not affect its connection.
    assert_eq!(answered_by(&ask(&mut waiting, "/").await), "b");
}

#[tokio::test]
async fn removed_upstreams_are_no_longer_checked() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    // The health check gets no response, and times out only after ten seconds.
    let health = "health: { path: /held, interval: 10s, timeout: 10s }";
    let checked = one_route("a", &a).replace("name: all,", &format!("name: all, {health},"));
    let it = ReloadableServer::start(&checked).await;
    timeout(LONG, a.held.arrived.notified()).await.unwrap();
    it.reload(&one_route("b", &b));
    timeout(LONG, a.held.given_up.notified()).await.unwrap();
    assert_eq!(answered_by(&it.get("/").await), "b");
}

/// Returns two catch-all routes, of which the first may be off.
fn two_routes(mode: &str, fields: &str, a: &Upstream, b: &Upstream) -> String {
    format!(
        "policies: [{{ name: api, limits: [{{ name: all, rate: 1000000/s }}] }}]
routes:
  - {{ name: first, mode: {mode}, upstreams: ['http://{}'], match: {{ path: / }}{fields} }}
  - {{ name: second, upstreams: ['http://{}'], match: {{ path: /** }} }}",
        a.address, b.address
    )
}

#[tokio::test]
async fn requests_take_the_next_route_while_one_is_off_and_none_is_lost() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    let it = ReloadableServer::start(&two_routes("enforce", "", &a, &b)).await;
    let mut waiting = Client::connect(it.gateway).await;
    waiting
        .send("GET /held HTTP/1.1\r\nhost: test\r\n\r\n")
        .await;
    timeout(LONG, a.held.arrived.notified()).await.unwrap();
    assert_eq!(it.get("/").await.body, "a");
    it.reload(&two_routes("off", "", &a, &b));
    assert_eq!(it.get("/").await.body, "b");
    a.held.release.notify_one();
    assert_eq!(waiting.reply().await.body, "a", "the request was in flight");
    let page = it.metrics().await;
    let taken = "tidegate_gateway_requests_total{route=\"first\",route_path=\"/\",status=\"200\"}";
    assert_eq!(page.get(taken), Some(&2.0));
    let enabled = |route| format!("tidegate_gateway_route_enabled{{route=\"{route}\"}}");
    assert_eq!(page.get(&enabled("first")), Some(&0.0));
    assert_eq!(page.get(&enabled("second")), Some(&1.0));
    let healthy = format!(
        "tidegate_gateway_upstream_healthy{{route=\"first\",upstream=\"{}\"}}",
        a.address
    );
    assert_eq!(page.get(&healthy), None);
    it.reload(&two_routes("enforce", "", &a, &b));
    assert_eq!(it.get("/").await.body, "a");
    let page = it.metrics().await;
    assert_eq!(page.get(taken), Some(&3.0), "the counter continues");
    assert_eq!(page.get(&healthy), Some(&1.0));
}

#[tokio::test]
async fn upstreams_of_a_route_that_is_off_are_not_checked() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    // The health check gets no response, and times out only after ten seconds.
    let health = ", health: { path: /held, interval: 10s, timeout: 10s }";
    let it = ReloadableServer::start(&two_routes("enforce", health, &a, &b)).await;
    timeout(LONG, a.held.arrived.notified()).await.unwrap();
    it.reload(&two_routes("off", health, &a, &b));
    timeout(LONG, a.held.given_up.notified()).await.unwrap();
    assert_eq!(it.get("/").await.body, "b");
    it.reload(&two_routes("enforce", health, &a, &b));
    timeout(LONG, a.held.arrived.notified()).await.unwrap();
    assert_eq!(it.get("/").await.body, "a");
}

#[tokio::test]
async fn without_routes_the_gateway_answers_404_until_there_are_some() {
    let a = Upstream::start("a").await;
    let it = ReloadableServer::start(&one_route("a", &a)).await;
    let mut kept = Client::connect(it.gateway).await;
    assert_eq!(answered_by(&ask(&mut kept, "/").await), "a");
    // A configuration may not open a gateway without routes.
    let listen = "listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }";
    let policies = "policies: [{ name: api, limits: [{ name: limit-a, rate: 1/h }] }]";
    let routeless = tidegate_config::Config::from_yaml(&format!("{listen}\n{policies}")).unwrap();
    it.try_reload(routeless).unwrap();
    assert_eq!(ask(&mut kept, "/").await.status, 404);
    it.reload(&one_route("a", &a));
    assert_eq!(answered_by(&ask(&mut kept, "/").await), "a");
}

#[tokio::test]
async fn metrics_of_unchanged_names_continue() {
    let (a, b) = (Upstream::start("a").await, Upstream::start("b").await);
    let it = ReloadableServer::start(&rated("5/h", &a)).await;
    it.get("/").await;
    let before = it.metrics().await;
    it.reload(&rated("5/h", &b));
    it.get("/").await;
    let after = it.metrics().await;
    for series in [
        "tidegate_decisions_total{policy=\"api\",limit=\"all\",outcome=\"allowed\",decided_by=\"store\",reason=\"allowed\"}",
        "tidegate_gateway_requests_total{route=\"all\",route_path=\"/\",status=\"200\"}",
    ] {
        let counted = [&before, &after].map(|page| page.get(series));
        assert_eq!(counted, [Some(&1.0), Some(&2.0)], "{series}");
    }
    let loaded = "tidegate_configuration_loaded_timestamp_seconds";
    assert!(before[loaded] > 1_700_000_000.0);
    assert!(after[loaded] >= before[loaded]);
}
