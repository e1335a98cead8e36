//! A server and its clients.

#[path = "../it/kit/running.rs"]
mod running;

use bytes::Bytes;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::DescriptorStatus;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use running::{RunningServer, StoppingServer};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_control::running::ServerState;
use tidegate_net::bounds::Bounds;
use tidegate_net::tasks::Tasks;
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};

pub(crate) const PATH: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// Addresses of all listeners under test.
const LISTEN: &str = "listen: { grpc: '127.0.0.1:0', http: '127.0.0.1:0', admin: '127.0.0.1:0' }\n";

/// A policy for all requests of the tests.
pub(crate) const EDGE: &str = "
policies:
  - name: edge
    domain: shop/http
    limits:
      - { name: per-user, match: { descriptor: [user] }, key: descriptor:user, rate: 2/hour, algorithm: fixed-window }
      - { name: per-path, match: { descriptor: [path: /slow] }, rate: 1/day, algorithm: fixed-window }
      - { name: staff, match: { descriptor: [user: root] }, rate: unlimited }
";

/// A server that runs until it is stopped or dropped.
pub(crate) struct Server {
    pub(crate) grpc: SocketAddr,
    pub(crate) http: Option<SocketAddr>,
    pub(crate) admin: SocketAddr,
    running: RunningServer,
}

impl Server {
    /// Starts a server with these policies.
    pub(crate) async fn start(policies: &str) -> Self {
        Self::within(policies, Bounds::default()).await
    }

    /// Starts a server with these bounds.
    pub(crate) async fn within(policies: &str, bounds: Bounds) -> Self {
        Self::with(&format!("{LISTEN}{policies}"), bounds).await
    }

    pub(crate) async fn with(config: &str, bounds: Bounds) -> Self {
        let config = Config::parse(config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listen = config.listen.clone();
        let serving = ServerState::start(config).await.unwrap();
        let listeners = tidegate_net::bind(&listen).await.unwrap();
        let grpc = listeners.grpc.as_ref().unwrap().tcp().unwrap();
        let http = listeners
            .http
            .as_ref()
            .and_then(tidegate_net::BoundListener::tcp);
        let admin = listeners.admin.tcp().unwrap();
        Self {
            grpc,
            http,
            admin,
            running: RunningServer::start(listeners, serving, bounds),
        }
    }

    /// Returns a connection to it.
    pub(crate) async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap();
        in_time(endpoint.connect()).await.unwrap()
    }

    /// Returns Envoy's client, connected to it.
    pub(crate) async fn client(&self) -> RateLimitServiceClient<Channel> {
        RateLimitServiceClient::new(self.channel().await)
    }

    /// Starts its shutdown.
    pub(crate) fn stop(self) -> StoppingServer {
        self.running.stop()
    }
}

/// Waits with a timeout that no test needs.
pub(crate) async fn in_time<F: Future>(what: F) -> F::Output {
    let waited = tokio::time::timeout(Duration::from_secs(30), what).await;
    waited.expect("nothing came for half a minute")
}

/// Returns a call with these descriptors, each a list of pairs.
pub(crate) fn about(descriptors: &[&[(&str, &str)]]) -> RateLimitRequest {
    RateLimitRequest {
        domain: "shop/http".to_owned(),
        descriptors: descriptors.iter().map(|pairs| descriptor(pairs)).collect(),
        hits_addend: 0,
    }
}

pub(crate) fn descriptor(pairs: &[(&str, &str)]) -> RateLimitDescriptor {
    let entries = pairs.iter().map(|(key, value)| Entry {
        key: (*key).to_owned(),
        value: (*value).to_owned(),
    });
    RateLimitDescriptor {
        entries: entries.collect(),
        ..RateLimitDescriptor::default()
    }
}

pub(crate) async fn ask(
    client: &mut RateLimitServiceClient<Channel>,
    request: RateLimitRequest,
) -> RateLimitResponse {
    let answer = in_time(client.should_rate_limit(request)).await.unwrap();
    answer.into_inner()
}

/// Returns the overall code and that of each descriptor, by name.
pub(crate) fn codes(response: &RateLimitResponse) -> Vec<&'static str> {
    let each = response.statuses.iter().map(DescriptorStatus::code);
    let all = std::iter::once(response.overall_code()).chain(each);
    all.map(|code| code.as_str_name()).collect()
}

/// The response to a request that was made by hand.
#[derive(Debug)]
pub(crate) struct RawResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    pub(crate) trailers: HeaderMap,
}

impl RawResponse {
    /// Returns the gRPC status, from headers or trailers.
    pub(crate) fn grpc_status(&self) -> Option<&str> {
        let of = |headers: &'_ HeaderMap| headers.get("grpc-status").cloned();
        let status = of(&self.headers).or_else(|| of(&self.trailers));
        let known = ["0", "3", "4", "5", "8", "9", "12", "14", "16"];
        known
            .into_iter()
            .find(|known| status.as_ref().is_some_and(|it| it == known))
    }

    pub(crate) fn message(&self) -> &str {
        self.headers["grpc-message"].to_str().unwrap()
    }
}

/// Sends one request over HTTP/2, made by hand.
pub(crate) async fn send(address: SocketAddr, request: Request<Bytes>) -> RawResponse {
    in_time(async {
        let stream = TcpStream::connect(address).await.unwrap();
        let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
            .await
            .unwrap();
        let tasks = Tasks::new();
        tasks.spawn(async move {
            connection.await.ok();
        });
        let answer = sender.send_request(request.map(Full::new)).await.unwrap();
        let (head, body) = answer.into_parts();
        let body = body.collect().await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        RawResponse {
            status: head.status,
            headers: head.headers,
            body: body.to_bytes(),
            trailers,
        }
    })
    .await
}

/// Returns a call with exactly this body.
pub(crate) fn post(address: SocketAddr, path: &str, body: impl Into<Bytes>) -> Request<Bytes> {
    Request::post(format!("http://{address}{path}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(body.into())
        .unwrap()
}

/// Returns a message with its gRPC prefix.
pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap();
    [&[0], &length.to_be_bytes()[..], message].concat()
}

/// Returns the page of metrics.
pub(crate) async fn metrics(server: &Server) -> String {
    let answer = get(server.admin, "/metrics").await;
    answer.1
}

/// Returns status and body of a `GET` over HTTP/1.
pub(crate) async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    plain(
        address,
        &format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n"),
    )
    .await
}

/// Returns status and body of a `POST` over HTTP/1.
pub(crate) async fn post_text(address: SocketAddr, path: &str, body: &str) -> (u16, String) {
    let head = format!("POST {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n");
    plain(
        address,
        &format!("{head}content-length: {}\r\n\r\n{body}", body.len()),
    )
    .await
}

async fn plain(address: SocketAddr, text: &str) -> (u16, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = String::new();
    in_time(stream.read_to_string(&mut answer)).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (
        head.split(' ').nth(1).unwrap().parse().unwrap(),
        body.to_owned(),
    )
}
