//! Responses to clients if no upstream replies: one of each status, word for word.

use super::kit::{Link, Place, RawUpstream, TestGateway, assert_problem};
use crate::kit::{Client, Reply, request};
use std::net::SocketAddr;
use tokio::io::AsyncWriteExt;

const ID: &str = "x-correlation-id: abc-1";

/// Returns a gateway with a route for each kind of failure.
async fn troubled() -> (TestGateway, RawUpstream, Place) {
    let mute = RawUpstream::start(|link: Link| link.until_closed()).await;
    let place = Place::reserve();
    let (mute_at, nobody) = (mute.address, place.address);
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
routes:
  - name: nobody
    match: {{ path: /nobody }}
    upstreams: ['http://{nobody}']
    policy: none
  - name: mute
    match: {{ path: /mute }}
    upstreams: ['http://{mute_at}']
    policy: none
    body_bytes: 10B
    timeouts: {{ response: 100ms, idle: 300ms }}
  - name: closed
    match: {{ path: /closed }}
    upstreams: ['http://{mute_at}']
policies:
  - name: api
    limits: [{{ name: per-client, key: ip, rate: 0/s }}]
"
    );
    (TestGateway::start(&config).await, mute, place)
}

fn post(length: usize) -> String {
    request("POST", "/mute", &[ID, &format!("content-length: {length}")])
}

#[track_caller]
fn assert_told(reply: &Reply, status: u16, body: &str) {
    assert_eq!((reply.status(), reply.text()), (status, body));
    for (name, value) in [
        ("content-type", "application/problem+json"),
        ("cache-control", "no-store"),
        ("x-correlation-id", "abc-1"),
    ] {
        assert_eq!(reply.head.get(name), Some(value), "{status} {name}");
    }
}

async fn ask(address: SocketAddr, request: impl AsRef<[u8]>) -> Reply {
    Client::connect(address).await.ask(request).await
}

#[tokio::test]
async fn each_status_has_its_problem() {
    let (stand, _mute, _place) = troubled().await;
    for (asked, status, body) in [
        (
            request("GET", "/elsewhere", &[ID]),
            404,
            r#"{"type":"about:blank","title":"Not Found","status":404,"detail":"no route matches this host, path and method","correlationId":"abc-1"}"#,
        ),
        (
            request("TRACE", "/mute", &[ID]),
            405,
            r#"{"type":"about:blank","title":"Method Not Allowed","status":405,"detail":"this method is not allowed","correlationId":"abc-1"}"#,
        ),
        (
            post(5),
            408,
            r#"{"type":"about:blank","title":"Request Timeout","status":408,"detail":"the body timed out","correlationId":"abc-1"}"#,
        ),
        (
            post(11),
            413,
            r#"{"type":"about:blank","title":"Content Too Large","status":413,"detail":"the body is too large","correlationId":"abc-1"}"#,
        ),
        (
            request("GET", "/closed", &[ID]),
            429,
            r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","title":"Too Many Requests","status":429,"detail":"Rate limit exceeded. This request can never pass.","correlationId":"abc-1","violated-policies":["per-client"]}"#,
        ),
        (
            request("GET", "/nobody", &[ID]),
            502,
            r#"{"type":"about:blank","title":"Bad Gateway","status":502,"detail":"no upstream could be reached","correlationId":"abc-1"}"#,
        ),
        (
            request("GET", "/mute", &[ID]),
            504,
            r#"{"type":"about:blank","title":"Gateway Timeout","status":504,"detail":"the upstream timed out","correlationId":"abc-1"}"#,
        ),
    ] {
        assert_told(&ask(stand.address, asked).await, status, body);
    }
}

#[tokio::test]
async fn a_rejected_method_lists_the_allowed_ones() {
    let (stand, _mute, _place) = troubled().await;
    for asked in [
        request("TRACE", "/mute", &[ID]),
        request("CONNECT", "shop.example:443", &[ID]),
    ] {
        let reply = ask(stand.address, asked).await;
        assert_eq!(reply.status(), 405);
        let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
        assert_eq!(reply.head.get("allow"), Some(allowed));
    }
}

#[tokio::test]
async fn a_body_that_ends_too_early_has_its_problem() {
    let (stand, mute, _place) = troubled().await;
    let mut client = Client::connect(stand.address).await;
    client.send(post(5) + "he").await;
    mute.has_open(1).await;
    client.messages.stream.shutdown().await.unwrap();
    assert_told(
        &client.reply("POST").await,
        400,
        r#"{"type":"about:blank","title":"Bad Request","status":400,"detail":"the body ended too early","correlationId":"abc-1"}"#,
    );
}

/// Without a store, limits cannot be decided.
#[tokio::test]
async fn an_undecidable_request_has_its_problem() {
    let places = (Place::reserve(), Place::reserve());
    let (store, upstream) = (places.0.address, places.1.address);
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
store: {{ url: 'redis://{store}' }}
routes: [{{ name: all, upstreams: ['http://{upstream}'] }}]
policies:
  - name: api
    limits: [{{ name: per-client, key: ip, rate: 1/s, on_failure: error }}]
"
    );
    let stand = TestGateway::start(&config).await;
    let reply = ask(stand.address, request("GET", "/", &[ID])).await;
    assert_told(
        &reply,
        503,
        r#"{"type":"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity","title":"Service Unavailable","status":503,"detail":"The limiter cannot decide at the moment. Try again in 1 second.","correlationId":"abc-1","violated-policies":[]}"#,
    );
    assert_eq!(stand.page().await.outcomes("refused_connection"), 0);
}

/// An invalid correlation id is replaced by a generated one.
#[tokio::test]
async fn an_invalid_id_is_not_repeated() {
    let (stand, _mute, _place) = troubled().await;
    for sent in ["x-correlation-id: \"><script>", "x-correlation-id: a b"] {
        let reply = ask(stand.address, request("GET", "/elsewhere", &[sent])).await;
        assert_problem(&reply, 404, "no route matches this host, path and method");
    }
}
