//! Replies while the store is down.

use crate::kit::{CONFIG, Client, Server, in_time};
use std::time::Duration;
use tidegate_testkit::redis::{self, FaultProxy, ProxyFaults};
use tokio::time::timeout;

/// Starts a server whose store can be cut off, with this `on_failure`.
async fn cuttable(redis: &redis::Server, on_failure: &str) -> (Server, FaultProxy) {
    patient(redis, on_failure, "2s").await
}

async fn patient(redis: &redis::Server, on_failure: &str, time: &str) -> (Server, FaultProxy) {
    let proxy = FaultProxy::start(redis.port());
    let store = format!(
        "store: {{ url: '{}', timeout: {time}, on_failure: {on_failure} }}",
        redis.url_at(proxy.port())
    );
    (Server::start(&format!("{store}\n{CONFIG}")).await, proxy)
}

async fn metrics(server: &Server) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(server.admin).await.unwrap();
    let request = "GET /metrics HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    let reading = stream.read_to_string(&mut page);
    in_time("the metrics", reading).await.unwrap();
    page
}

#[tokio::test]
async fn a_throttle_applies_the_failure_policy_during_an_outage() {
    let redis = redis::Server::start();
    for (on_failure, expected, counted) in [
        (
            "local",
            "*5\r\n:0\r\n:10\r\n:",
            "outcome=\"allowed\",decided_by=\"local\"} 1",
        ),
        (
            "allow",
            "*5\r\n:0\r\n:10\r\n:10\r\n:-1\r\n:0\r\n",
            "outcome=\"allowed\",decided_by=\"failure\"} 1",
        ),
        (
            "deny",
            "*5\r\n:1\r\n:10\r\n:0\r\n:1\r\n:1\r\n",
            "outcome=\"refused\",decided_by=\"failure\"} 1",
        ),
        (
            "error",
            "-TRYAGAIN the store timed out\r\n",
            "outcome=\"error\",decided_by=\"failure\"} 1",
        ),
    ] {
        let (server, proxy) = cuttable(&redis, on_failure).await;
        let mut client = Client::connect(server.resp).await;
        let ask = format!("cl.throttle {on_failure} 9 1 60");
        assert!(
            client
                .ask(&ask)
                .await
                .starts_with("*5\r\n:0\r\n:10\r\n:9\r\n"),
            "{on_failure}"
        );
        proxy.set(ProxyFaults::refuse());
        proxy.reset();
        let said = client.ask(&ask).await;
        assert!(said.starts_with(expected), "{on_failure}: {said}");
        assert_eq!(
            client.ask("ping").await,
            "+PONG\r\n",
            "the connection goes on"
        );
        let page = metrics(&server).await;
        assert!(
            page.contains(&format!("tidegate_throttle_decisions_total{{{counted}")),
            "{on_failure}: {page}"
        );
        let commands = "tidegate_resp_commands_total{command=\"cl.throttle\"} 2";
        assert!(page.contains(commands), "{page}");
    }
}

#[tokio::test]
async fn a_check_reports_its_decider() {
    let redis = redis::Server::start();
    let (server, proxy) = cuttable(&redis, "local").await;
    let mut client = Client::connect(server.resp).await;
    assert!(client.ask("tg.check other").await.ends_with("store\r\n"));
    proxy.set(ProxyFaults::refuse());
    proxy.reset();
    assert!(client.ask("tg.check other").await.ends_with("local\r\n"));
}

#[tokio::test]
async fn key_commands_fail_without_the_store() {
    let redis = redis::Server::start();
    let (server, proxy) = cuttable(&redis, "local").await;
    let mut client = Client::connect(server.resp).await;
    client.ask("cl.throttle a 9 1 60").await;
    proxy.set(ProxyFaults::refuse());
    proxy.reset();
    for words in ["del a", "ttl a", "exists a"] {
        let said = client.ask(words).await;
        assert_eq!(said, "-TRYAGAIN the store timed out\r\n", "{words}");
    }
}

#[tokio::test]
async fn key_commands_waited_a_second_regardless_of_the_store_timeout() {
    let redis = redis::Server::start();
    for words in [
        "ttl a",
        "pttl a",
        "del a",
        "unlink a",
        "exists a b",
        "type a",
    ] {
        // Each has its own server: one failure may hold the next command back.
        let (server, proxy) = patient(&redis, "error", "100ms").await;
        let mut client = Client::connect(server.resp).await;
        client.ask("cl.throttle a 9 1 60").await;
        proxy.set(ProxyFaults::drop_replies());
        let said = timeout(Duration::from_millis(900), client.ask(words)).await;
        let expected = "-TRYAGAIN the store timed out\r\n";
        assert_eq!(said.as_deref(), Ok(expected), "{words}");
    }
}
