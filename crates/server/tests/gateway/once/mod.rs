//! The number of identifications, limit matches and store calls: one each per request at every
//! frontend, on any store, with or without queueing. If a guard refuses a request, no limit is
//! matched and the store is not called.

/// Messages of Kuadrant's service.
#[path = "../../grpc/reserving/messages.rs"]
mod messages;
/// Reservations, commits, refunds and reports.
mod settling;
/// Rejected tokens, counted once each.
mod tokens;

use crate::kit::running::RunningServer;
use crate::kit::{Client, in_time, request};
use crate::websocket::{Echo, Socket, receive};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use futures_util::SinkExt;
use std::net::SocketAddr;
use tidegate_config::Config;
use tidegate_config::NoEnvironment;
use tidegate_control::running::ServerState;
use tidegate_net::bounds::Bounds;
use tidegate_policy::work::WorkCounts;
use tidegate_testkit::redis::{Cluster, Server as Redis};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{Error, Message};
use tonic::transport::Endpoint;

/// `{"sub": "ann"}`, signed with the secret of the configuration.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4ifQ.\
                     auSjAiLeVXLWCMJ7rCv_1dd8pUcovoDAxrahrwmPQ7Q";

/// Guards: none, some that refuse all clients of these tests, and one that matches none of them.
const NO_GUARDS: &str = "";
const REFUSING: &str = "guards: [{ name: listed, deny: user, list: [ann] }, \
                         { name: paths, deny: 'descriptor:path', list: [/] }]";
const EXEMPTING: &str = "guards: [{ name: staff, allow: user, list: [root] }]";

/// A server with every listener, on the thread of the test.
struct AllListeners {
    http: SocketAddr,
    grpc: SocketAddr,
    resp: SocketAddr,
    gateway: SocketAddr,
    admin: SocketAddr,
    /// True if a guard refuses the clients.
    refuses: bool,
    _running: RunningServer,
}

impl AllListeners {
    /// Starts it. `store` is the URL of the store, `waiting` the fields of limits besides their
    /// rate.
    async fn start(store: &str, waiting: &str, guards: &str, upstream: &str) -> Self {
        let limit =
            |name| format!("{{ name: {name}, key: user, missing: refuse, rate: 1000/s{waiting} }}");
        let config = format!(
            "
listen: {{ http: '127.0.0.1:0', grpc: '127.0.0.1:0', resp: '127.0.0.1:0',
          gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: '{store}' }}
client:
  user: {{ claim: sub }}
  jwt: {{ secret: thirty-two bytes of no importance }}
{guards}
routes:
  - {{ name: open, match: [{{ path: /open }}], upstreams: ['{upstream}'], policy: none, messages: talk }}
  - {{ name: apart, match: [{{ path: /apart }}], upstreams: ['{upstream}'], policy: apart }}
  - {{ name: all, upstreams: ['{upstream}'], policy: api, messages: talk }}
policies:
  - {{ name: api, limits: [{}] }}
  - {{ name: talk, limits: [{}] }}
  - {{ name: apart, evaluate: each, limits: [{{ name: own, key: user, rate: 1000/s }}, {{ name: all, rate: 1000/s }}] }}
  - {{ name: calls, reserve: 1min, limits: [{{ name: all, key: user, rate: 1000/s }}] }}
  - {{ name: spend, reserve: 1min, limits: [{{ name: by-path, match: {{ descriptor: [path] }}, key: descriptor, rate: 1000/s }}] }}
  - {{ name: edge, limits: [{{ name: by-path, match: {{ descriptor: [path] }}, key: descriptor, rate: 1000/s{waiting} }}] }}
",
            limit("requests"),
            limit("messages"),
        );
        let config = Config::parse(&config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listeners = tidegate_net::bind(&config.listen).await.unwrap();
        let address =
            |bound: &Option<tidegate_net::BoundListener>| bound.as_ref().unwrap().tcp().unwrap();
        let serving = ServerState::start(config).await.unwrap();
        Self {
            http: address(&listeners.http),
            grpc: address(&listeners.grpc),
            resp: address(&listeners.resp),
            gateway: address(&listeners.gateway),
            admin: listeners.admin.tcp().unwrap(),
            refuses: guards == REFUSING,
            _running: RunningServer::start(listeners, serving, Bounds::default()),
        }
    }

    /// Posts JSON, and returns the response body.
    async fn post(&self, path: &str, body: &str) -> String {
        let head = request(
            "POST",
            path,
            &[
                "content-type: application/json",
                &format!("content-length: {}", body.len()),
            ],
        );
        let reply = Client::connect(self.http).await.ask(head + body).await;
        let is_refused = self.refuses && path == "/json";
        let status = if is_refused { 429 } else { 200 };
        assert_eq!(reply.status(), status, "{path}: {reply:?}");
        reply.text().to_owned()
    }

    /// Sends a request to the gateway. The upstream accepts upgrades only.
    async fn pass(&self, path: &str, header: &str) {
        let mut client = Client::connect(self.gateway).await;
        let reply = client.get(path, &[header]).await;
        assert_eq!(reply.status() == 429, self.refuses, "{path}: {reply:?}");
    }

    /// Opens a WebSocket, unless a guard refuses it.
    async fn open_websocket(&self, path: &str, token: &str) -> Option<Socket> {
        let uri = format!("ws://shop.example{path}");
        let mut handshake = uri.into_client_request().unwrap();
        let bearer = format!("Bearer {token}").parse().unwrap();
        handshake.headers_mut().insert("authorization", bearer);
        let stream = TcpStream::connect(self.gateway).await.unwrap();
        match in_time("a WebSocket", client_async(handshake, stream)).await {
            Ok((socket, _)) => Some(socket),
            Err(Error::Http(refused)) if self.refuses && refused.status() == 429 => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Asserts that a request with `tokens` tokens to `policies` policies repeated no work.
    fn assert_once(&self, done: WorkCounts, (tokens, policies): (u64, u64), what: &str) {
        let asked = if self.refuses { 0 } else { policies };
        let expected = WorkCounts {
            tokens,
            matchings: asked,
            store_calls: asked,
        };
        assert_eq!(done, expected, "{what}");
    }

    async fn call(&self) {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc)).unwrap();
        let channel = in_time("a channel", endpoint.connect()).await.unwrap();
        let call = RateLimitRequest {
            domain: "edge".to_owned(),
            descriptors: vec![of_path()],
            hits_addend: 0,
        };
        let mut client = RateLimitServiceClient::new(channel);
        let answer = in_time("an answer", client.should_rate_limit(call)).await;
        let code = if self.refuses { 2 } else { 1 };
        assert_eq!(answer.unwrap().into_inner().overall_code, code);
    }

    async fn check_over_resp(&self) {
        let token = format!("Bearer {TOKEN}");
        let words = ["TG.CHECK", "api", "header:authorization", &token];
        let allowed = if self.refuses { b":0\r\n" } else { b":1\r\n" };
        assert_eq!(&self.command(&words).await[4..], allowed);
    }

    /// A bucket with a quota in the call: no guard, no policy, no client to identify.
    async fn throttle_over_resp(&self) {
        let reply = self
            .command(&["CL.THROTTLE", "key", "15", "30", "60"])
            .await;
        assert_eq!(&reply, b"*5\r\n:0\r\n");
    }

    /// Sends a command of the Redis protocol, and returns the beginning of its reply.
    async fn command(&self, words: &[&str]) -> [u8; 8] {
        let mut stream = TcpStream::connect(self.resp).await.unwrap();
        let bulks = words.iter();
        let bulks = bulks.map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let command = format!("*{}\r\n{}", words.len(), bulks.collect::<String>());
        stream.write_all(command.as_bytes()).await.unwrap();
        let mut reply = [0; 8];
        in_time("a reply", stream.read_exact(&mut reply))
            .await
            .unwrap();
        reply
    }
}

/// Returns the descriptors of a call over gRPC.
fn of_path() -> RateLimitDescriptor {
    RateLimitDescriptor {
        entries: vec![Entry {
            key: "path".to_owned(),
            value: "/".to_owned(),
        }],
        ..RateLimitDescriptor::default()
    }
}

/// Returns the work of this thread during `doing`.
async fn work<T>(doing: impl Future<Output = T>) -> WorkCounts {
    let before = WorkCounts::of_this_thread();
    doing.await;
    let after = WorkCounts::of_this_thread();
    WorkCounts {
        tokens: after.tokens - before.tokens,
        matchings: after.matchings - before.matchings,
        store_calls: after.store_calls - before.store_calls,
    }
}

/// Runs `test` with each store, with and without waiting, by each of `guards`.
async fn everywhere(guards: &[&str], test: impl AsyncFn(&AllListeners, &str)) {
    let (redis, cluster) = (Redis::start(), Cluster::start(3, 0));
    let echo = Echo::start().await;
    for store in ["memory".to_owned(), redis.url(), cluster.url()] {
        for waiting in ["", ", on_refusal: wait, max_wait: 5s"] {
            for guards in guards {
                let all = AllListeners::start(&store, waiting, guards, &echo.url()).await;
                test(&all, &format!("{store}{waiting}, {guards}")).await;
            }
        }
    }
}

#[tokio::test]
async fn a_request_is_verified_matched_and_decided_once_at_every_frontend() {
    let bearer = format!("authorization: Bearer {TOKEN}");
    let question =
        format!(r#"{{"policy": "api", "headers": {{"authorization": "Bearer {TOKEN}"}}}}"#);
    let described =
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "path", "value": "/"}]}]}"#;
    everywhere(&[NO_GUARDS, REFUSING, EXEMPTING], async |all, with| {
        let done = work(all.post("/v1/check", &question)).await;
        all.assert_once(done, (1, 1), &format!("/v1/check, {with}"));
        let done = work(all.post("/v1/check", &format!("[{question}, {question}]"))).await;
        all.assert_once(done, (2, 2), &format!("two questions, {with}"));
        let reserving = question.replace("api", "calls");
        let done = work(all.post("/v1/reserve", &reserving)).await;
        all.assert_once(done, (1, 1), &format!("/v1/reserve, {with}"));
        let list = format!("[{reserving}, {reserving}]");
        let done = work(all.post("/v1/reserve", &list)).await;
        all.assert_once(done, (2, 2), &format!("two reservations, {with}"));
        let done = work(all.post("/json", described)).await;
        all.assert_once(done, (0, 1), &format!("/json, {with}"));
        let done = work(all.call()).await;
        all.assert_once(done, (0, 1), &format!("gRPC, {with}"));
        let done = work(all.check_over_resp()).await;
        all.assert_once(done, (1, 1), &format!("TG.CHECK, {with}"));
        let done = work(all.throttle_over_resp()).await;
        let expected = WorkCounts {
            store_calls: 1,
            ..WorkCounts::NONE
        };
        assert_eq!(done, expected, "CL.THROTTLE, {with}");
        let asking = [&*bearer, "x-forwarded-method: GET", "x-forwarded-uri: /"];
        let asked = work(async {
            let mut client = Client::connect(all.http).await;
            let reply = client.get("/v1/auth/api", &asking).await;
            assert_eq!(reply.status() == 200, !all.refuses, "{reply:?}");
        });
        all.assert_once(asked.await, (1, 1), &format!("/v1/auth, {with}"));
        let done = work(all.pass("/", &bearer)).await;
        all.assert_once(done, (1, 1), &format!("gateway, {with}"));
    })
    .await;
}

#[tokio::test]
async fn a_route_with_guards_alone_verifies_once_and_calls_no_store() {
    let bearer = format!("authorization: Bearer {TOKEN}");
    everywhere(&[NO_GUARDS, REFUSING, EXEMPTING], async |all, with| {
        let done = work(all.pass("/open", &bearer)).await;
        let expected = WorkCounts {
            tokens: u64::from(with.contains("guards")),
            ..WorkCounts::NONE
        };
        assert_eq!(done, expected, "{with}");
    })
    .await;
}

/// Each limit is a call of the store, which decides them separately.
#[tokio::test]
async fn separate_limits_are_matched_once_and_decided_once_each() {
    let bearer = format!("authorization: Bearer {TOKEN}");
    let question =
        format!(r#"{{"policy": "apart", "headers": {{"authorization": "Bearer {TOKEN}"}}}}"#);
    everywhere(&[NO_GUARDS, REFUSING, EXEMPTING], async |all, with| {
        let expected = WorkCounts {
            tokens: 1,
            matchings: u64::from(!all.refuses),
            store_calls: if all.refuses { 0 } else { 2 },
        };
        let done = work(all.post("/v1/check", &question)).await;
        assert_eq!(done, expected, "/v1/check, {with}");
        let done = work(all.pass("/apart", &bearer)).await;
        assert_eq!(done, expected, "gateway, {with}");
    })
    .await;
}

/// If each message verified the token again, a token that expires in between would leave its client
/// without an identity.
#[tokio::test]
async fn a_websocket_is_verified_and_matched_once_for_all_messages() {
    everywhere(&[NO_GUARDS, REFUSING, EXEMPTING], async |all, with| {
        let done = work(async {
            let Some(mut socket) = all.open_websocket("/talk", TOKEN).await else {
                return;
            };
            for nth in 0..20 {
                let message = Message::text(nth.to_string());
                socket.send(message.clone()).await.unwrap();
                assert_eq!(receive(&mut socket).await, Some(message), "{with}");
            }
        });
        // The handshake matches one policy, and its messages another; the store decides each of them.
        let asked = |count| if all.refuses { 0 } else { count };
        let expected = WorkCounts {
            tokens: 1,
            matchings: asked(2),
            store_calls: asked(21),
        };
        assert_eq!(done.await, expected, "{with}");
    })
    .await;
}
