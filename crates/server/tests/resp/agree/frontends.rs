//! The library and all frontends, each with separate buckets.

use super::question::Question;
use super::said::{FrontendReply, FullReply, Rls, of_decision};
use crate::kit::{Client, Server, bulk, in_time};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use serde_json::Value;
use std::net::SocketAddr;
use tidegate::{AnyStore, Config, Limiter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};

/// The library and a connection to each frontend.
pub(super) struct Frontends {
    library: Limiter<AnyStore>,
    check: Server,
    redis: Client,
    /// `None` if Envoy's service cannot express the requests.
    envoy: Option<(RateLimitServiceClient<Channel>, Server)>,
    /// They end when these are dropped.
    _servers: Vec<Server>,
}

impl Frontends {
    /// Opens them. Each replaces `FRONTEND` in `config` with its own name.
    pub(super) async fn open(config: &str, is_whole: bool) -> Self {
        let config = |frontend: &str| config.replace("FRONTEND", frontend);
        let parsed = Config::from_yaml(&config("library"))
            .unwrap_or_else(|errors| panic!("{errors}\n{}", config("library")));
        let library = Limiter::builder().config(parsed).start().await.unwrap();
        let check = start(&config("check")).await;
        let by_commands = start(&config("commands")).await;
        let redis = Client::connect(by_commands.resp).await;
        let mut servers = vec![by_commands];
        let envoy = if is_whole {
            None
        } else {
            let by_calls = start(&config("calls")).await;
            let endpoint = format!("http://{}", by_calls.grpc.unwrap());
            let endpoint = Endpoint::from_shared(endpoint).unwrap();
            let channel = in_time("a connection", endpoint.connect()).await.unwrap();
            servers.push(by_calls);
            let by_json = start(&config("json")).await;
            Some((RateLimitServiceClient::new(channel), by_json))
        };
        Self {
            library,
            check,
            redis,
            envoy,
            _servers: servers,
        }
    }

    /// Returns the library's decision.
    pub(super) async fn library(&self, question: &Question) -> FrontendReply {
        of_decision(&question.ask(&self.library).await)
    }

    /// Returns the response of each frontend, by its name.
    pub(super) async fn others(
        &mut self,
        question: &Question,
    ) -> Vec<(&'static str, FrontendReply)> {
        let (_, answer) = post(self.check.http, "/v1/check", &question.json()).await;
        let mut said = vec![("/v1/check", FrontendReply::whole(FullReply::read(&answer)))];
        let words = question.words();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.redis.send(&bulk(&words)).await;
        let reply = self.redis.reply().await;
        said.push((
            "TG.CHECK",
            FrontendReply::whole(FullReply::of_reply(&reply)),
        ));
        if let Some((client, by_json)) = &mut self.envoy {
            let asking = client.should_rate_limit(question.call());
            let answer = in_time("an answer", asking).await.unwrap();
            said.push((
                "gRPC",
                FrontendReply::rls(Rls::of_message(&answer.into_inner())),
            ));
            let (status, answer) = post(by_json.http, "/json", &question.call_json()).await;
            said.push(("/json", FrontendReply::rls(Rls::read(status, &answer))));
        }
        said
    }
}

async fn start(config: &str) -> Server {
    let listen = "listen: { http: '127.0.0.1:0', resp: '127.0.0.1:0', grpc: '127.0.0.1:0', admin: '127.0.0.1:0' }";
    Server::start(&format!("{listen}\n{config}")).await
}

async fn post(address: SocketAddr, path: &str, question: &Value) -> (u16, Value) {
    let body = question.to_string();
    let length = body.len();
    let head = format!("POST {path} HTTP/1.1\r\nhost: t\r\nconnection: close\r\n");
    let request = format!("{head}content-length: {length}\r\n\r\n{body}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let reading = stream.read_to_string(&mut answer);
    in_time("an answer", reading).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let json = serde_json::from_str(body);
    (
        status,
        json.unwrap_or_else(|error| panic!("{error}: {answer}")),
    )
}
