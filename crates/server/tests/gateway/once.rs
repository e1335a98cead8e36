//! How often a client is identified, its limits are matched and the store is called: once per request at every
//! frontend, whichever store decides and whether or not limits make requests wait. Where a guard refuses a
//! request, no limit is matched and the store is not called.

use crate::kit::running::Running;
use crate::kit::{Client, in_time, request};
use crate::websocket::{Echo, hear};
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use futures_util::SinkExt;
use std::net::SocketAddr;
use tidegate_policy::Config;
use tidegate_policy::config::NoEnvironment;
use tidegate_policy::work::WorkCounts;
use tidegate_server::bounds::Bounds;
use tidegate_server::server;
use tidegate_server::serving::Serving;
use tidegate_testkit::redis::Server as Redis;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::client_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tonic::transport::Endpoint;

/// `{"sub": "ann"}`, signed with the secret of the configuration.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4ifQ.\
                     auSjAiLeVXLWCMJ7rCv_1dd8pUcovoDAxrahrwmPQ7Q";

/// Guards: none, some that refuse whoever asks here, and one that knows nobody who does.
const NO_GUARDS: &str = "";
const REFUSING: &str = "guards: [{ name: listed, refuse: user, list: [ann] }, \
                         { name: paths, refuse: 'descriptor:path', list: [/] }]";
const EXEMPTING: &str = "guards: [{ name: staff, exempt: user, list: [root] }]";

/// A server with every listener, on the thread of the test.
struct All {
    http: SocketAddr,
    grpc: SocketAddr,
    resp: SocketAddr,
    gateway: SocketAddr,
    /// A guard refuses whoever asks here.
    refuses: bool,
    _running: Running,
}

impl All {
    /// `store` is the URL of the store, `waiting` the fields of limits besides their rate.
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
routes: [{{ id: all, upstreams: ['{upstream}'], policy: api, messages: talk }}]
policies:
  - {{ name: api, limits: [{}] }}
  - {{ name: talk, limits: [{}] }}
  - {{ name: calls, reserve: 1min, limits: [{{ name: all, key: user, rate: 1000/s }}] }}
  - {{ name: edge, limits: [{{ name: by-path, match: {{ descriptor: [path] }}, key: descriptor, rate: 1000/s{waiting} }}] }}
",
            limit("requests"),
            limit("messages"),
        );
        let config = Config::parse(&config, "test.yaml", &NoEnvironment)
            .unwrap_or_else(|errors| panic!("{errors}"));
        let listeners = server::bind(&config.listen).await.unwrap();
        let address = |bound: &Option<server::BoundDoor>| bound.as_ref().unwrap().tcp().unwrap();
        let serving = Serving::start(config).await.unwrap();
        Self {
            http: address(&listeners.http),
            grpc: address(&listeners.grpc),
            resp: address(&listeners.resp),
            gateway: address(&listeners.gateway),
            refuses: guards == REFUSING,
            _running: Running::start(listeners, serving, Bounds::default()),
        }
    }

    async fn post(&self, path: &str, body: &str) {
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
    }

    /// Asserts that a request with `tokens` tokens to `policies` policies was decided without doing
    /// anything twice.
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
            descriptors: vec![RateLimitDescriptor {
                entries: vec![Entry {
                    key: "path".to_owned(),
                    value: "/".to_owned(),
                }],
                ..RateLimitDescriptor::default()
            }],
            hits_addend: 0,
        };
        let mut client = RateLimitServiceClient::new(channel);
        let answer = in_time("an answer", client.should_rate_limit(call)).await;
        let code = if self.refuses { 2 } else { 1 };
        assert_eq!(answer.unwrap().into_inner().overall_code, code);
    }

    async fn command(&self) {
        let mut stream = TcpStream::connect(self.resp).await.unwrap();
        let words = ["TG.CHECK", "api", "header:authorization"];
        let token = format!("Bearer {TOKEN}");
        let words: Vec<&str> = words.into_iter().chain([token.as_str()]).collect();
        let bulks = words.iter();
        let bulks = bulks.map(|word| format!("${}\r\n{word}\r\n", word.len()));
        let command = format!("*{}\r\n{}", words.len(), bulks.collect::<String>());
        stream.write_all(command.as_bytes()).await.unwrap();
        let mut reply = [0; 8];
        in_time("a reply", stream.read_exact(&mut reply))
            .await
            .unwrap();
        assert_eq!(
            &reply[4..],
            if self.refuses { b":0\r\n" } else { b":1\r\n" }
        );
    }
}

/// What this thread does meanwhile.
async fn work(doing: impl Future<Output = ()>) -> WorkCounts {
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
async fn everywhere(guards: &[&str], test: impl AsyncFn(&All, &str)) {
    let redis = Redis::start();
    let echo = Echo::start().await;
    for store in [
        "memory".to_owned(),
        format!("redis://127.0.0.1:{}", redis.port()),
    ] {
        for waiting in ["", ", on_refusal: wait, max_wait: 5s"] {
            for guards in guards {
                let all = All::start(&store, waiting, guards, &echo.url()).await;
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
        let done = work(all.post("/json", described)).await;
        all.assert_once(done, (0, 1), &format!("/json, {with}"));
        let done = work(all.call()).await;
        all.assert_once(done, (0, 1), &format!("gRPC, {with}"));
        let done = work(all.command()).await;
        all.assert_once(done, (1, 1), &format!("RESP, {with}"));
        let asking = [&*bearer, "x-forwarded-method: GET", "x-forwarded-uri: /"];
        let asked = work(async {
            let mut client = Client::connect(all.http).await;
            let reply = client.get("/v1/auth/api", &asking).await;
            assert_eq!(reply.status() == 200, !all.refuses, "{reply:?}");
        });
        all.assert_once(asked.await, (1, 1), &format!("/v1/auth, {with}"));
        let passed = work(async {
            let mut client = Client::connect(all.gateway).await;
            let reply = client.get("/", &[&bearer]).await;
            // The upstream takes WebSockets alone.
            assert_eq!(reply.status() == 429, all.refuses, "{reply:?}");
        });
        all.assert_once(passed.await, (1, 1), &format!("gateway, {with}"));
    })
    .await;
}

/// Verified once more for each message, a token that expired in between would leave its client without
/// an identity.
#[tokio::test]
async fn a_websocket_is_verified_once_and_matched_once_however_many_messages_it_has() {
    everywhere(&[NO_GUARDS], async |all, with| {
        let done = work(async {
            let mut handshake = "ws://shop.example/talk".into_client_request().unwrap();
            let bearer = format!("Bearer {TOKEN}").parse().unwrap();
            handshake.headers_mut().insert("authorization", bearer);
            let stream = TcpStream::connect(all.gateway).await.unwrap();
            let connected = in_time("a WebSocket", client_async(handshake, stream)).await;
            let (mut socket, _) = connected.unwrap();
            for nth in 0..20 {
                let message = Message::text(nth.to_string());
                socket.send(message.clone()).await.unwrap();
                assert_eq!(hear(&mut socket).await, Some(message), "{with}");
            }
        });
        // The handshake meets one policy, and its messages another; the store decides each of them.
        let expected = WorkCounts {
            tokens: 1,
            matchings: 2,
            store_calls: 21,
        };
        assert_eq!(done.await, expected, "{with}");
    })
    .await;
}
