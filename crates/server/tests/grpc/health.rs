//! `grpc.health.v1`: follows readiness and the server's shutdown.

use crate::kit::{EDGE, Server, in_time};
use std::time::Duration;
use tidegate_net::bounds::Bounds;
use tidegate_server::program::ServeEnd;
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

#[tokio::test]
async fn only_the_server_and_its_services_are_serving() {
    let server = Server::start(EDGE).await;
    let mut client = HealthClient::new(server.channel().await);
    for service in [
        "",
        "envoy.service.ratelimit.v3.RateLimitService",
        "kuadrant.service.ratelimit.v1.RateLimitService",
    ] {
        let answer = in_time(client.check(about(service))).await.unwrap();
        assert_eq!(
            answer.into_inner().status(),
            ServingStatus::Serving,
            "{service}"
        );
    }
    let error = in_time(client.check(about("nobody"))).await.unwrap_err();
    assert_eq!(error.code(), Code::NotFound);
}

#[tokio::test]
async fn a_health_watch_reports_at_the_start_and_at_shutdown() {
    let server = Server::start(EDGE).await;
    let mut client = HealthClient::new(server.channel().await);
    let mut watch = in_time(client.watch(about(""))).await.unwrap().into_inner();
    let first = in_time(watch.message()).await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    let mut nobody = in_time(client.watch(about("nobody")))
        .await
        .unwrap()
        .into_inner();
    let unknown = in_time(nobody.message()).await.unwrap().unwrap();
    assert_eq!(unknown.status(), ServingStatus::ServiceUnknown);

    let stopping = server.stop();
    let last = in_time(watch.message()).await.unwrap().unwrap();
    assert_eq!(last.status(), ServingStatus::NotServing);
    assert_eq!(
        in_time(watch.message()).await.unwrap(),
        None,
        "and that is the end"
    );
    assert_eq!(in_time(nobody.message()).await.unwrap(), None);
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}

#[tokio::test]
async fn a_server_without_its_store_is_not_serving() {
    // No listener on this port.
    let store = "store: { url: 'redis://127.0.0.1:1', on_failure: error }\n";
    let server = Server::start(&format!("{store}{EDGE}")).await;
    let mut client = HealthClient::new(server.channel().await);
    // The store counts as down after a failed call.
    loop {
        let answer = in_time(client.check(about(""))).await.unwrap();
        if answer.into_inner().status() == ServingStatus::NotServing {
            break;
        }
        tokio::task::yield_now().await;
    }
}

/// Regression: while the server was about to stop, a watch polled without a pause, and sent the
/// same status again and again.
#[tokio::test]
async fn a_health_watch_reported_an_imminent_shutdown_repeatedly() {
    let bounds = Bounds {
        shutdown_delay: Duration::from_secs(1),
        ..Bounds::default()
    };
    let server = Server::within(EDGE, bounds).await;
    let mut client = HealthClient::new(server.channel().await);
    let mut watch = in_time(client.watch(about(""))).await.unwrap().into_inner();
    let first = in_time(watch.message()).await.unwrap().unwrap();
    assert_eq!(first.status(), ServingStatus::Serving);
    let mut nobody = in_time(client.watch(about("nobody")))
        .await
        .unwrap()
        .into_inner();
    let unknown = in_time(nobody.message()).await.unwrap().unwrap();
    assert_eq!(unknown.status(), ServingStatus::ServiceUnknown);

    let mut limits = server.client().await;
    let stopping = server.stop();
    let told = in_time(watch.message()).await.unwrap().unwrap();
    assert_eq!(told.status(), ServingStatus::NotServing);
    // It still serves.
    in_time(limits.should_rate_limit(crate::kit::about(&[&[("user", "ann")]])))
        .await
        .expect("an answer");
    assert_eq!(in_time(watch.message()).await.unwrap(), None);
    assert_eq!(in_time(nobody.message()).await.unwrap(), None);
    assert_eq!(stopping.ended().await, ServeEnd::Drained);
}
