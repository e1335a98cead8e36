use crate::world::{ONE_EACH, RunningServer, TWO, config, limiter};
use std::time::Duration;
use tidegate::Store;
use tidegate_tower::RateLimitLayer;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};
use tonic_health::server::health_reporter;
use tonic_types::StatusExt as _;
use tower::Layer as _;

async fn serve<S: Store + 'static>(layer: RateLimitLayer<S>) -> RunningServer {
    RunningServer::start(|listener: TcpListener| async move {
        let served = Server::builder()
            .layer(layer)
            .add_service(health_reporter().1)
            .serve_with_incoming(TcpIncoming::from(listener));
        served.await.expect("it serves");
    })
    .await
}

async fn client(server: &RunningServer) -> HealthClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", server.address));
    let channel = endpoint.expect("an address").connect().await;
    HealthClient::new(channel.expect("a connection"))
}

async fn ask(
    client: &mut HealthClient<Channel>,
    from: &'static str,
) -> Result<Response<HealthCheckResponse>, Status> {
    let mut request = Request::new(HealthCheckRequest::default());
    let from = from.parse().expect("metadata");
    request.metadata_mut().insert("x-forwarded-for", from);
    client.check(request).await
}

#[tokio::test]
async fn a_refused_call_has_retry_info() {
    let server = serve(RateLimitLayer::new(limiter(ONE_EACH))).await;
    let mut client = client(&server).await;
    // The peer is a trusted proxy on this machine, so its headers name the client.
    let allowed = ask(&mut client, "192.0.2.1").await.expect("it is allowed");
    let told = allowed.metadata().get("x-ratelimit-remaining");
    assert_eq!(told.expect("a header"), "0");

    let refused = ask(&mut client, "192.0.2.1")
        .await
        .expect_err("it is refused");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert!(
        refused.message().starts_with("Rate limit exceeded."),
        "{refused:?}"
    );
    let details = refused.get_error_details();
    let delay = details.retry_info().and_then(|info| info.retry_delay);
    let delay = delay.expect("a wait");
    assert_eq!(delay, Duration::from_secs(3_600));
    let metadata = refused.metadata();
    assert_eq!(metadata.get("retry-after").unwrap(), "3600");
    assert_eq!(metadata.get("x-ratelimit-limit").unwrap(), "1");

    ask(&mut client, "192.0.2.2").await.expect("it is allowed");
}

#[tokio::test]
async fn a_grpc_error_of_the_application_is_unchanged() {
    let server = serve(RateLimitLayer::new(limiter(TWO))).await;
    let mut client = client(&server).await;
    let unknown = HealthCheckRequest {
        service: "unknown".into(),
    };
    let status = client.check(unknown).await.expect_err("there is none");
    assert_eq!(status.code(), Code::NotFound);
    assert!(status.get_error_details().retry_info().is_none());
    assert_eq!(status.metadata().get("x-ratelimit-remaining").unwrap(), "1");
}

#[tokio::test]
async fn an_undecidable_call_is_unavailable() {
    let closed = limiter(TWO);
    closed.close();
    let denying = crate::slow::unreachable_limiter(tidegate::OnFailure::Deny);
    let erring = crate::slow::unreachable_limiter(tidegate::OnFailure::Error);
    for server in [
        serve(RateLimitLayer::new(closed)).await,
        serve(RateLimitLayer::new(denying)).await,
        serve(RateLimitLayer::new(erring)).await,
    ] {
        let mut client = client(&server).await;
        let status = ask(&mut client, "192.0.2.1")
            .await
            .expect_err("the outcome is unknown");
        assert_eq!(status.code(), Code::Unavailable);
        let details = status.get_error_details();
        let delay = details.retry_info().and_then(|info| info.retry_delay);
        assert_eq!(delay, Some(Duration::from_secs(1)));
    }
}

#[tokio::test]
async fn limits_can_apply_to_one_service() {
    let limiter = limiter(TWO);
    let layer = RateLimitLayer::new(limiter.clone());
    let server = RunningServer::start(|listener| async move {
        let served = Server::builder()
            .add_service(layer.layer(health_reporter().1))
            .serve_with_incoming(TcpIncoming::from(listener));
        served.await.expect("it serves");
    })
    .await;
    let mut client = client(&server).await;
    for _ in 0..2 {
        ask(&mut client, "192.0.2.1").await.expect("it is allowed");
    }
    let refused = ask(&mut client, "192.0.2.1")
        .await
        .expect_err("it is refused");
    assert_eq!(refused.code(), Code::ResourceExhausted);
    limiter
        .reload(config(
            "policies: [{ name: api, limits: [{ name: more, rate: 9/h }] }]",
        ))
        .unwrap();
    ask(&mut client, "192.0.2.1").await.expect("it is allowed");
}
