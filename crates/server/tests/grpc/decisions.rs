//! `ShouldRateLimit`: decisions.

use crate::kit::{EDGE, Server, about, ask, codes, descriptor, get, in_time, metrics};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::RateLimitOverride;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::rate_limit::Unit;
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::UInt64Value;
use tonic::Code;

const ANN: &[(&str, &str)] = &[("user", "ann")];

#[tokio::test]
async fn calls_pass_up_to_the_limit_with_the_remaining_units() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    for left in [1, 0] {
        let response = ask(&mut client, about(&[ANN])).await;
        assert_eq!(codes(&response), ["OK", "OK"]);
        let status = &response.statuses[0];
        assert_eq!(status.limit_remaining, left);
        let limit = status.current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (2, Unit::Hour));
        assert_eq!(limit.name, "per-user");
        let reset = status.duration_until_reset.as_ref().unwrap().seconds;
        assert!((0..=3_600).contains(&reset), "{reset}");
        assert!(response.response_headers_to_add.is_empty() && response.raw_body.is_empty());
    }
    let response = ask(&mut client, about(&[ANN])).await;
    assert_eq!(codes(&response), ["OVER_LIMIT", "OVER_LIMIT"]);
    assert_eq!(response.statuses[0].limit_remaining, 0);
    let other = ask(&mut client, about(&[&[("user", "bob")]])).await;
    assert_eq!(codes(&other), ["OK", "OK"]);
}

#[tokio::test]
async fn each_descriptor_has_a_status_and_a_refusal_charges_no_other() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    let both: &[&[(&str, &str)]] = &[ANN, &[("path", "/slow")], &[("nothing", "known")]];
    let response = ask(&mut client, about(both)).await;
    assert_eq!(codes(&response), ["OK", "OK", "OK", "OK"]);
    let limits = response
        .statuses
        .iter()
        .map(|status| status.current_limit.is_some());
    assert_eq!(limits.collect::<Vec<_>>(), [true, true, false]);

    let response = ask(&mut client, about(both)).await;
    assert_eq!(codes(&response), ["OVER_LIMIT", "OK", "OVER_LIMIT", "OK"]);
    let alone = ask(&mut client, about(&[ANN])).await;
    assert_eq!(
        codes(&alone),
        ["OK", "OK"],
        "ann was not charged for the refused call"
    );
    assert_eq!(
        codes(&ask(&mut client, about(&[ANN])).await),
        ["OVER_LIMIT", "OVER_LIMIT"]
    );
}

#[tokio::test]
async fn an_unlimited_descriptor_has_no_limit_and_no_end() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    for _ in 0..5 {
        let response = ask(&mut client, about(&[&[("user", "root")]])).await;
        assert_eq!(codes(&response), ["OK", "OK"]);
        assert_eq!(response.statuses[0].limit_remaining, u32::MAX);
        assert_eq!(response.statuses[0].current_limit, None);
    }
}

#[tokio::test]
async fn hits_of_the_call_and_of_a_descriptor_are_charged() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    let take = |hits_addend, own: Option<u64>, is_negative_hits| {
        let mut it = descriptor(ANN);
        it.hits_addend = own.map(|value| UInt64Value { value });
        it.is_negative_hits = is_negative_hits;
        RateLimitRequest {
            domain: "shop/http".to_owned(),
            descriptors: vec![it],
            hits_addend,
        }
    };
    // A descriptor's own `hits_addend` takes precedence over the call's, even 0, which only reads.
    let look = ask(&mut client, take(9, Some(0), false)).await;
    assert_eq!(
        (codes(&look)[0], look.statuses[0].limit_remaining),
        ("OK", 2)
    );
    assert_eq!(
        codes(&ask(&mut client, take(3, None, false)).await)[0],
        "OVER_LIMIT"
    );
    assert_eq!(
        codes(&ask(&mut client, take(2, None, false)).await)[0],
        "OK"
    );
    // With nothing left, even 0 is refused.
    assert_eq!(
        codes(&ask(&mut client, take(0, Some(0), false)).await)[0],
        "OVER_LIMIT"
    );
    assert_eq!(
        codes(&ask(&mut client, take(0, Some(1), true)).await)[0],
        "OK"
    );
    assert_eq!(
        codes(&ask(&mut client, take(0, Some(1), false)).await)[0],
        "OK"
    );
    assert_eq!(
        codes(&ask(&mut client, take(0, None, false)).await)[0],
        "OVER_LIMIT"
    );
}

#[tokio::test]
async fn a_call_may_contain_its_own_limit() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    let bring = |unit| {
        let mut it = descriptor(&[("tenant", "acme")]);
        it.limit = Some(RateLimitOverride {
            requests_per_unit: 3,
            unit,
        });
        RateLimitRequest {
            domain: "shop/http".to_owned(),
            descriptors: vec![it],
            hits_addend: 0,
        }
    };
    for left in [2, 1, 0] {
        let response = ask(&mut client, bring(RateLimitUnit::Day.into())).await;
        assert_eq!(codes(&response), ["OK", "OK"]);
        let limit = response.statuses[0].current_limit.as_ref().unwrap();
        assert_eq!((limit.requests_per_unit, limit.unit()), (3, Unit::Day));
        assert_eq!(response.statuses[0].limit_remaining, left);
    }
    let response = ask(&mut client, bring(RateLimitUnit::Day.into())).await;
    assert_eq!(codes(&response), ["OVER_LIMIT", "OVER_LIMIT"]);
    let error = in_time(client.should_rate_limit(bring(0)))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[tokio::test]
async fn an_unknown_domain_passes_and_is_counted() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    let mut request = about(&[ANN, ANN]);
    request.domain = "another".to_owned();
    for _ in 0..5 {
        let response = ask(&mut client, request.clone()).await;
        assert_eq!(codes(&response), ["OK", "OK", "OK"]);
        assert_eq!(response.statuses[0].current_limit, None);
    }
    let page = metrics(&server).await;
    assert!(
        page.contains("tidegate_rls_unknown_domain_total 5"),
        "{page}"
    );
}

#[tokio::test]
async fn a_call_of_four_hits_over_two_limits_was_counted_as_one_of_one() {
    let server = Server::start(
        "
policies:
  - name: edge
    domain: shop/http
    evaluate: each
    limits:
      - { name: per-user, match: { descriptor: [user] }, key: descriptor:user, rate: 5/hour, algorithm: fixed-window }
      - { name: per-path, match: { descriptor: [path] }, rate: 100/hour, algorithm: fixed-window }
",
    )
    .await;
    let mut client = server.client().await;
    let mut request = about(&[ANN, &[("path", "/slow")]]);
    request.hits_addend = 4;
    request.descriptors[1].hits_addend = Some(UInt64Value { value: 7 });
    for _ in 0..2 {
        ask(&mut client, request.clone()).await;
    }
    let page = metrics(&server).await;
    for (limit, result, hits) in [
        ("per-user", "allowed", 4),
        ("per-user", "refused", 4),
        ("per-path", "allowed", 14),
    ] {
        let line = format!(
            "tidegate_limit_hits_total{{policy=\"edge\",limit=\"{limit}\",mode=\"enforce\",outcome=\"{result}\"}} {hits}\n"
        );
        assert!(page.contains(&line), "{line}: {page}");
    }
}

#[tokio::test]
async fn calls_are_counted_as_at_other_frontends() {
    let server = Server::start(EDGE).await;
    let mut client = server.client().await;
    for _ in 0..3 {
        ask(&mut client, about(&[ANN])).await;
    }
    let page = metrics(&server).await;
    for line in [
        "tidegate_rls_duration_seconds_count 3",
        "tidegate_connections{listener=\"grpc\"} 1",
        "tidegate_connections_accepted_total{listener=\"grpc\"} 1",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert_eq!(get(server.admin, "/readyz").await.0, 200);
}

#[tokio::test]
async fn a_descriptor_refused_for_a_missing_identity_is_marked() {
    let policy = EDGE.replace(
        "match: { descriptor: [user] }, key: descriptor:user",
        "match: { descriptor: [user] }, key: user, missing: refuse",
    );
    let server = Server::start(&policy).await;
    let path: &[(&str, &str)] = &[("path", "/slow")];
    let response = ask(&mut server.client().await, about(&[path, ANN])).await;
    assert_eq!(codes(&response), ["OVER_LIMIT", "OK", "OVER_LIMIT"]);
    // No counter was read, so there are no numbers.
    assert!(
        response
            .statuses
            .iter()
            .all(|it| it.current_limit.is_none())
    );
}

#[tokio::test]
async fn an_unreachable_store_is_unavailable_or_the_failure_policy() {
    // No listener on this port.
    let policies = |on_failure: &str| {
        format!("store: {{ url: 'redis://127.0.0.1:1', on_failure: {on_failure} }}\n{EDGE}")
    };
    for (on_failure, expected) in [("allow", "OK"), ("deny", "OVER_LIMIT"), ("local", "OK")] {
        let server = Server::start(&policies(on_failure)).await;
        let response = ask(&mut server.client().await, about(&[ANN])).await;
        assert_eq!(codes(&response), [expected, expected], "{on_failure}");
        assert_eq!(response.raw_body.is_empty(), expected == "OK");
    }
    let server = Server::start(&policies("error")).await;
    let mut client = server.client().await;
    let error = in_time(client.should_rate_limit(about(&[ANN])));
    assert_eq!(error.await.unwrap_err().code(), Code::Unavailable);
}
