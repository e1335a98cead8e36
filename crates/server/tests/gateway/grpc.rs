//! A gRPC service behind the gateway, and a client in front: neither notices it.

use crate::kit::certificates::Certificates;
use crate::kit::modern::{H2, Http2Upstream, UpstreamProtocol, body};
use crate::kit::{Client, Gate, gate, in_time, request};
use http::Request;
use std::net::SocketAddr;
use tidegate_net::tasks::Tasks;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus as Told;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::server::{HealthReporter, health_reporter};

/// A tonic health service.
struct Service {
    address: SocketAddr,
    reporter: HealthReporter,
    _tasks: Tasks,
}

impl Service {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (reporter, service) = health_reporter();
        reporter
            .set_service_status("shop", ServingStatus::Serving)
            .await;
        let tasks = Tasks::new();
        tasks.spawn(async move {
            let router = Server::builder().add_service(service);
            router
                .serve_with_incoming(TcpIncoming::from(listener))
                .await
                .unwrap();
        });
        Self {
            address,
            reporter,
            _tasks: tasks,
        }
    }

    fn url(&self) -> String {
        format!("h2c://{}", self.address)
    }
}

async fn client(gate: &Gate) -> HealthClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", gate.address)).unwrap();
    HealthClient::new(in_time("a channel", endpoint.connect()).await.unwrap())
}

fn about(service: &str) -> HealthCheckRequest {
    HealthCheckRequest {
        service: service.to_owned(),
    }
}

#[tokio::test]
async fn a_call_is_answered() {
    let service = Service::start().await;
    let gate = gate::open(service.url(), "").await;
    let mut client = client(&gate).await;
    let answer = in_time("an answer", client.check(about("shop")))
        .await
        .unwrap();
    assert_eq!(answer.into_inner().status(), Told::Serving);
}

/// The status is in trailers, or in a response of headers only.
#[tokio::test]
async fn a_grpc_status_of_the_service_is_unchanged() {
    let service = Service::start().await;
    let gate = gate::open(service.url(), "").await;
    let mut client = client(&gate).await;
    let status = in_time("an answer", client.check(about("nobody")))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::NotFound);
    assert_eq!(status.message(), "service not registered");
}

#[tokio::test]
async fn a_stream_is_forwarded_as_it_arrives() {
    let service = Service::start().await;
    let gate = gate::open(service.url(), "").await;
    let mut client = client(&gate).await;
    let watched = in_time("a stream", client.watch(about("shop")))
        .await
        .unwrap();
    let mut watched = watched.into_inner();
    for (status, told) in [
        (ServingStatus::Serving, Told::Serving),
        (ServingStatus::NotServing, Told::NotServing),
        (ServingStatus::Serving, Told::Serving),
    ] {
        service.reporter.set_service_status("shop", status).await;
        let message = in_time("a message", watched.message()).await.unwrap();
        assert_eq!(message.unwrap().status(), told);
    }
    // A concurrent call on the same connections.
    let answer = in_time("an answer", client.check(about("shop")))
        .await
        .unwrap();
    assert_eq!(answer.into_inner().status(), Told::Serving);
}

#[tokio::test]
async fn many_calls_at_once_are_all_answered() {
    let service = Service::start().await;
    let gate = gate::open(service.url(), "").await;
    let client = client(&gate).await;
    let calls = (0..200).map(|_| {
        let mut client = client.clone();
        async move { client.check(about("shop")).await }
    });
    let answers = in_time("all answers", futures_util::future::join_all(calls)).await;
    assert!(answers.iter().all(Result::is_ok), "{answers:?}");
}

#[tokio::test]
async fn a_refused_call_gets_a_grpc_status_and_never_reaches_the_service() {
    let service = Service::start().await;
    let gate = gate::limited(service.url(), "rate: 1/h burst 1").await;
    let mut client = client(&gate).await;
    in_time("an answer", client.check(about("shop")))
        .await
        .unwrap();
    let status = in_time("an answer", client.check(about("shop")))
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(
        status.message().starts_with("Rate limit exceeded"),
        "{status:?}"
    );
    let metadata = status.metadata();
    assert!(metadata.get("retry-after").is_some(), "{status:?}");
    assert_eq!(metadata.get("x-ratelimit-remaining").unwrap(), "0");
    // `google.rpc.RetryInfo`.
    assert!(!status.details().is_empty(), "{status:?}");
}

/// Returns the status of a failed call.
async fn failure(gate: &Gate) -> Status {
    let mut client = client(gate).await;
    let answer = in_time("an answer", client.check(about("shop"))).await;
    answer.unwrap_err()
}

/// A response that is not gRPC leaves its clients guessing.
#[tokio::test]
async fn gateway_errors_of_grpc_calls_are_grpc_statuses() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = nobody.local_addr().unwrap();
    drop(nobody);
    let gate = gate::open(format!("h2c://{address}"), "").await;
    let status = failure(&gate).await;
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert_eq!(status.message(), "no upstream could be reached");

    let routes = format!("{{ name: a, match: {{ path: /a }}, upstreams: ['h2c://{address}'] }}");
    let gate = Gate::start(&gate::config(&routes, "rate: 1/s")).await;
    let status = failure(&gate).await;
    assert_eq!(status.code(), Code::Unimplemented, "{status:?}");
    assert!(status.message().contains("no route"), "{status:?}");
}

#[tokio::test]
async fn a_call_that_cannot_be_decided_is_unavailable() {
    let service = Service::start().await;
    let nobody = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let redis = nobody.local_addr().unwrap();
    drop(nobody);
    for on_failure in ["deny", "error"] {
        let routes = format!("{{ name: all, upstreams: ['{}'] }}", service.url());
        let config = gate::config(&routes, "rate: 1/s");
        let store = format!("store: {{ url: 'redis://{redis}', on_failure: {on_failure} }}");
        let gate = Gate::start(&format!("{config}{store}\n")).await;
        let status = failure(&gate).await;
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    }
}

/// Requests over plain HTTP get HTTP responses.
#[tokio::test]
async fn plain_http_requests_get_http_refusals() {
    let service = Service::start().await;
    let gate = gate::limited(service.url(), "rate: 1/h burst 1").await;
    let mut client = H2::connect(gate.address).await;
    for (kind, status, is_grpc) in [
        ("application/json", 200, false),
        ("application/json", 429, false),
        ("application/grpc+proto", 200, true),
        ("application/grpc-web", 200, true),
    ] {
        let request = Request::post("http://shop.example/a").header("content-type", kind);
        let answered = client.ask(request.body(body("", &[])).unwrap()).await;
        assert_eq!(answered.head.status, status, "{kind}");
        let code = answered.head.headers.get("grpc-status");
        assert_eq!(code.is_some_and(|it| it == "8"), is_grpc, "{kind}");
    }
}

/// Regression: a GET or HEAD with the content type of gRPC got 200 when a limit refused it.
#[tokio::test]
async fn a_request_that_is_not_grpc_is_not_refused_with_200() {
    let service = Service::start().await;
    let gate = gate::limited(service.url(), "rate: 1/h burst 1").await;
    let mut client = Client::connect(gate.address).await;
    client.get("/", &[]).await;
    let kind = ["content-type: application/grpc"];
    for method in ["GET", "HEAD", "PUT"] {
        let reply = client.ask(request(method, "/", &kind)).await;
        assert_eq!(reply.status(), 429, "{method}: {reply:#?}");
        assert_eq!(reply.head.get("grpc-status"), None, "{method}");
    }
}

/// Regression: `Content-Type: application/grpc` lifted the minimum rate on every route with an
/// `https` upstream.
#[tokio::test]
async fn a_content_type_does_not_lift_the_least_rate_of_an_upload() {
    const TOO_LITTLE: &str = "the body was sent too slowly";
    const TOO_SLOW: &str = "the body timed out";
    let certificates = Certificates::make();
    for (protocol, method, detail) in [
        ("http/1.1", "POST", TOO_LITTLE),
        ("http/1.1", "PUT", TOO_LITTLE),
        ("h2", "PUT", TOO_LITTLE),
        // A gRPC call over HTTP/2 may be silent for as long as `idle`.
        ("h2", "POST", TOO_SLOW),
    ] {
        let protocols = match protocol {
            "h2" => &["h2"][..],
            _ => &["http/1.1"],
        };
        let upstream = Http2Upstream::start(UpstreamProtocol::Tls(protocols), &certificates).await;
        let more = format!(
            ", tls: {{ ca: '{}' }}, min_upload_rate: 1MiB, \
             timeouts: {{ upload_grace: 100ms, idle: 400ms }}",
            certificates.path("ca.pem")
        );
        let url = format!("https://localhost:{}", upstream.address.port());
        let gate = gate::open(url, &more).await;
        let lines = [
            "content-type: application/grpc",
            "transfer-encoding: chunked",
        ];
        let mut client = Client::connect(gate.address).await;
        let begin = request(method, "/", &lines) + "5\r\nhello\r\n";
        let reply = client.ask(begin).await;
        let case = format!("{method} over {protocol}: {reply:#?}");
        if method == "POST" {
            assert_eq!(reply.status(), 200, "{case}");
            assert_eq!(reply.head.get("grpc-status"), Some("4"), "{case}");
            assert_eq!(reply.head.get("grpc-message"), Some(detail), "{case}");
        } else {
            assert_eq!(reply.status(), 408, "{case}");
            assert!(reply.text().contains(detail), "{case}");
        }
    }
}
