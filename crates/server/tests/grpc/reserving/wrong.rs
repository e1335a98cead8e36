//! Reservations that fail: invalid calls, and an unreachable store.

use super::messages::{CommitRequest, ReserveRequest};
use super::{LLM, call, commit, committing, remaining, reserve, reserving};
use crate::kit::{Server, descriptor};
use envoy_types::pb::google::protobuf::Duration;

#[tokio::test]
async fn invalid_reservations_get_a_reason_and_no_charge() {
    let server = Server::start(LLM).await;
    let no_time = "a ttl must be at least one microsecond";
    let none =
        "policy `plain` cannot reserve this: it does not accept reservations; add `reserve: 60s`";
    let lasting = |seconds, nanos| ReserveRequest {
        ttl: Some(Duration { seconds, nanos }),
        ..reserving(1)
    };
    let of = |domain: &str, descriptors| ReserveRequest {
        domain: domain.to_owned(),
        descriptors,
        ..reserving(1)
    };
    let ann = || vec![descriptor(&[("user", "ann")])];
    let (no_domain, no_list) = (
        "rate limit domain must not be empty",
        "rate limit descriptor list must not be empty",
    );
    for (request, status, words) in [
        (of("plain", ann()), "9", none),
        (of("", ann()), "3", no_domain),
        (of("llm", vec![]), "3", no_list),
        (lasting(0, 0), "3", no_time),
        (lasting(-1, 0), "3", no_time),
        (lasting(1, -1), "3", no_time),
        (lasting(1, 1_000_000_000), "3", no_time),
    ] {
        let raw = call(&server, "Reserve", &request).await;
        assert_eq!(raw.grpc_status(), Some(status), "{request:?}");
        assert_eq!(raw.message(), words);
    }
    for (domain, descriptors, words) in [("", ann(), no_domain), ("llm", vec![], no_list)] {
        let told = CommitRequest {
            domain: domain.to_owned(),
            descriptors,
            ..committing("r1made-up", 1)
        };
        let raw = call(&server, "Commit", &told).await;
        assert_eq!((raw.grpc_status(), raw.message()), (Some("3"), words));
    }
    assert_eq!(remaining(&server, "llm").await, 1_000);
    assert_eq!(remaining(&server, "plain").await, 1_000);
}

/// Any instance with the same secret recognizes the id, with any store.
#[tokio::test]
async fn without_the_store_a_settlement_fails_and_can_be_retried() {
    let here = Server::start(&format!("store: {{ key_secret: pepper }}\n{LLM}")).await;
    let away = "store: { url: 'redis://127.0.0.1:1', on_failure: error, key_secret: pepper }\n";
    let away = Server::start(&format!("{away}{LLM}")).await;
    let id = reserve(&here, &reserving(400)).await.reservation_id;
    let raw = call(&away, "Commit", &committing(&id, 100)).await;
    assert_eq!(raw.grpc_status(), Some("14"), "{raw:?}");
    assert!(raw.message().contains("with the same request"), "{raw:?}");
    let raw = call(&away, "Reserve", &reserving(1)).await;
    assert_eq!(raw.grpc_status(), Some("14"), "{raw:?}");
    assert!(commit(&here, &committing(&id, 100)).await);
    assert_eq!(remaining(&here, "llm").await, 900);
}
