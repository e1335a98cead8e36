//! How often a client is identified and its limits are matched: once per request at every frontend,
//! whichever store decides and whether or not limits make requests wait.

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
use tidegate_policy::work::Work;
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

/// One token verified, one matching.
const ONCE: Work = Work {
    tokens: 1,
    matchings: 1,
};

/// A server with every listener, on the thread of the test.
struct All {
    http: SocketAddr,
    grpc: SocketAddr,
    resp: SocketAddr,
    gateway: SocketAddr,
    _running: Running,
}

impl All {
    /// `store` is the URL of the store, `waiting` what limits say besides their rate.
    async fn start(store: &str, waiting: &str, upstream: &str) -> Self {
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
        assert_eq!(reply.status(), 200, "{path}: {reply:?}");
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
        assert_eq!(answer.unwrap().into_inner().overall_code, 1);
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
        assert_eq!(&reply, b"*7\r\n:1\r\n");
    }
}

/// What this thread does meanwhile.
async fn work(doing: impl Future<Output = ()>) -> Work {
    let before = Work::of_this_thread();
    doing.await;
    let after = Work::of_this_thread();
    Work {
        tokens: after.tokens - before.tokens,
        matchings: after.matchings - before.matchings,
    }
}

/// Runs `test` with each store, with and without waiting.
async fn everywhere(test: impl AsyncFn(&All, &str)) {
    let redis = Redis::start();
    let echo = Echo::start().await;
    for store in [
        "memory".to_owned(),
        format!("redis://127.0.0.1:{}", redis.port()),
    ] {
        for waiting in ["", ", on_refusal: wait, max_wait: 5s"] {
            let all = All::start(&store, waiting, &echo.url()).await;
            test(&all, &format!("{store}{waiting}")).await;
        }
    }
}

#[tokio::test]
async fn a_request_is_verified_and_matched_once_at_every_frontend() {
    let bearer = format!("authorization: Bearer {TOKEN}");
    let question =
        format!(r#"{{"policy": "api", "headers": {{"authorization": "Bearer {TOKEN}"}}}}"#);
    let described =
        r#"{"domain": "edge", "descriptors": [{"entries": [{"key": "path", "value": "/"}]}]}"#;
    let matched = Work {
        tokens: 0,
        matchings: 1,
    };
    everywhere(async |all, with| {
        let done = work(all.post("/v1/check", &question)).await;
        assert_eq!(done, ONCE, "/v1/check, {with}");
        let done = work(all.post("/v1/check", &format!("[{question}, {question}]"))).await;
        assert_eq!(
            (done.tokens, done.matchings),
            (2, 2),
            "two questions, {with}"
        );
        let reserving = question.replace("api", "calls");
        let done = work(all.post("/v1/reserve", &reserving)).await;
        assert_eq!(done, ONCE, "/v1/reserve, {with}");
        let done = work(all.post("/json", described)).await;
        assert_eq!(done, matched, "/json, {with}");
        assert_eq!(work(all.call()).await, matched, "gRPC, {with}");
        assert_eq!(work(all.command()).await, ONCE, "RESP, {with}");
        let asking = [&*bearer, "x-forwarded-method: GET", "x-forwarded-uri: /"];
        let asked = work(async {
            let mut client = Client::connect(all.http).await;
            let reply = client.get("/v1/auth/api", &asking).await;
            assert_eq!(reply.status(), 200, "{reply:?}");
        });
        assert_eq!(asked.await, ONCE, "/v1/auth, {with}");
        let passed = work(async {
            let mut client = Client::connect(all.gateway).await;
            let reply = client.get("/", &[&bearer]).await;
            // The upstream takes WebSockets alone.
            assert_ne!(reply.status(), 429, "{reply:?}");
        });
        assert_eq!(passed.await, ONCE, "gateway, {with}");
    })
    .await;
}

/// Verified once more for each message, a token that expired in between would leave its client without
/// an identity.
#[tokio::test]
async fn a_websocket_is_verified_once_and_matched_once_however_many_messages_it_has() {
    everywhere(async |all, with| {
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
        // The handshake meets one policy, and its messages another.
        let expected = Work {
            tokens: 1,
            matchings: 2,
        };
        assert_eq!(done.await, expected, "{with}");
    })
    .await;
}
