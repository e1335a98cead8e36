//! What is answered when the store is not.

use crate::kit::{CONFIG, Client, Server};
use std::time::Duration;
use tidegate_testkit::redis::{self, FaultProxy, ProxyFaults};
use tokio::time::timeout;

/// A server whose store can be cut off, and does then as `on_failure` says.
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
    stream.read_to_string(&mut page).await.unwrap();
    page
}

#[tokio::test]
async fn a_bucket_goes_on_as_the_store_was_told() {
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
            "-TRYAGAIN the store did not answer in time\r\n",
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
            page.contains(&format!("tidegate_throttle_total{{{counted}")),
            "{on_failure}: {page}"
        );
        let commands = "tidegate_resp_commands_total{command=\"cl.throttle\"} 2";
        assert!(page.contains(commands), "{page}");
    }
}

#[tokio::test]
async fn a_question_says_who_decided_it() {
    let redis = redis::Server::start();
    let (server, proxy) = cuttable(&redis, "local").await;
    let mut client = Client::connect(server.resp).await;
    assert!(client.ask("tg.check other").await.ends_with("store\r\n"));
    proxy.set(ProxyFaults::refuse());
    proxy.reset();
    assert!(client.ask("tg.check other").await.ends_with("local\r\n"));
}

#[tokio::test]
async fn commands_about_keys_do_not_guess() {
    let redis = redis::Server::start();
    let (server, proxy) = cuttable(&redis, "local").await;
    let mut client = Client::connect(server.resp).await;
    client.ask("cl.throttle a 9 1 60").await;
    proxy.set(ProxyFaults::refuse());
    proxy.reset();
    for words in ["del a", "ttl a", "exists a"] {
        let said = client.ask(words).await;
        assert_eq!(
            said, "-TRYAGAIN the store did not answer in time\r\n",
            "{words}"
        );
    }
}

#[tokio::test]
async fn commands_about_keys_waited_for_a_second_whatever_the_timeout_of_the_store() {
    let redis = redis::Server::start();
    for words in [
        "ttl a",
        "pttl a",
        "del a",
        "unlink a",
        "exists a b",
        "type a",
    ] {
        // Each has its own server: one failure may be enough for the next command to be held back.
        let (server, proxy) = patient(&redis, "error", "100ms").await;
        let mut client = Client::connect(server.resp).await;
        client.ask("cl.throttle a 9 1 60").await;
        proxy.set(ProxyFaults::drop_replies());
        let said = timeout(Duration::from_millis(900), client.ask(words)).await;
        let expected = "-TRYAGAIN the store did not answer in time\r\n";
        assert_eq!(said.as_deref(), Ok(expected), "{words}");
    }
}
