//! Forwarding headers for upstreams: correct for any client headers.

use crate::kit::certificates::Certificates;
use crate::kit::message::Head;
use crate::kit::modern::{H2, body, secure};
use crate::kit::{Client, Gate, Upstream, gate};
use http::Request;
use std::net::IpAddr;

/// The address of a trusted proxy.
const PROXY: &str = "127.0.0.9";
/// The address of an untrusted client.
const STRANGER: &str = "127.0.0.7";

const NAMES: [&str; 9] = [
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-port",
    "x-forwarded-prefix",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
];

/// Returns a gateway that trusts one proxy.
async fn gateway(upstream: &Upstream, tls: &str) -> Gate {
    gateway_with(upstream, tls, "").await
}

/// Returns the same gateway with `more` fields of the route.
async fn gateway_with(upstream: &Upstream, tls: &str, more: &str) -> Gate {
    let address = upstream.address;
    let routes = format!("{{ name: all, upstreams: ['http://{address}']{more} }}");
    let config = gate::config(&routes, "rate: 1000000/s");
    let address = "'127.0.0.1:0'";
    let with_tls = format!("{{ address: {address}{tls} }}");
    let config = config.replacen(address, &with_tls, 1);
    Gate::start(&format!(
        "{config}client: {{ trusted_proxies: [{PROXY}] }}\n"
    ))
    .await
}

/// Returns the forwarding headers of a request.
fn forwarding_headers(head: &Head) -> Vec<String> {
    let told = NAMES
        .iter()
        .filter_map(|name| Some((name, head.get(name)?)));
    told.map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

/// Returns the forwarding headers of a request from `source` with these lines.
async fn forwarded_from(source: &str, line: &str, lines: &[&str]) -> Vec<String> {
    let upstream = Upstream::start().await;
    let gate = gateway(&upstream, "").await;
    let source: IpAddr = source.parse().unwrap();
    let mut client = Client::connect_from(gate.address, source).await;
    let head = format!(
        "{line}\r\nhost: shop.example:8000\r\n{}\r\n",
        lines.concat()
    );
    assert_eq!(client.ask(head).await.status(), 200);
    forwarding_headers(&upstream.saw().head)
}

const FORGED: [&str; 10] = [
    "x-forwarded-for: 192.0.2.1\r\n",
    "X-Forwarded-For: 192.0.2.2\r\n",
    "x-forwarded-host: bank.example\r\n",
    "x-forwarded-port: 443\r\n",
    "x-forwarded-prefix: /admin\r\n",
    "x-forwarded-proto: https\r\n",
    "x-forwarded-server: edge\r\n",
    "x-real-ip: 192.0.2.1\r\n",
    "forwarded: for=192.0.2.1;proto=https\r\n",
    "via: 1.0 edge\r\n",
];

#[tokio::test]
async fn untrusted_clients_get_correct_forwarding_headers() {
    let expected = [
        "forwarded: for=127.0.0.7;host=\"shop.example:8000\";proto=http",
        "via: 1.1 tidegate",
        "x-forwarded-for: 127.0.0.7",
        "x-forwarded-host: shop.example:8000",
        "x-forwarded-proto: http",
        "x-real-ip: 127.0.0.7",
    ];
    assert_eq!(
        forwarded_from(STRANGER, "GET / HTTP/1.1", &[]).await,
        expected
    );
    let mut expected = expected;
    // `Via` is informational only and never trusted, so it stays a list.
    expected[1] = "via: 1.0 edge, 1.1 tidegate";
    let told = forwarded_from(STRANGER, "GET / HTTP/1.1", &FORGED).await;
    assert_eq!(told, expected);
}

#[tokio::test]
async fn forwarding_headers_of_a_trusted_proxy_are_kept_and_extended() {
    let expected = [
        "forwarded: for=192.0.2.1;proto=https, for=127.0.0.9;host=\"shop.example:8000\";proto=http",
        "via: 1.0 edge, 1.1 tidegate",
        "x-forwarded-for: 192.0.2.1, 192.0.2.2, 127.0.0.9",
        "x-forwarded-host: bank.example",
        "x-forwarded-port: 443",
        "x-forwarded-prefix: /admin",
        "x-forwarded-proto: https",
        "x-forwarded-server: edge",
        "x-real-ip: 192.0.2.1",
    ];
    let told = forwarded_from(PROXY, "GET / HTTP/1.1", &FORGED).await;
    assert_eq!(told, expected);
    let expected = [
        "forwarded: for=127.0.0.9;host=\"shop.example:8000\";proto=http",
        "via: 1.1 tidegate",
        "x-forwarded-for: 127.0.0.9",
        "x-forwarded-host: shop.example:8000",
        "x-forwarded-proto: http",
        "x-real-ip: 127.0.0.9",
    ];
    assert_eq!(forwarded_from(PROXY, "GET / HTTP/1.1", &[]).await, expected);
}

#[tokio::test]
async fn requests_of_one_connection_are_distinguished_by_host() {
    let upstream = Upstream::start().await;
    let gate = gateway(&upstream, "").await;
    let mut client = Client::connect_from(gate.address, STRANGER.parse().unwrap()).await;
    for host in ["a.example", "b.example", "b.example", "a.example"] {
        let request = format!("GET / HTTP/1.1\r\nhost: {host}\r\n\r\n");
        assert_eq!(client.ask(request).await.status(), 200);
        let head = upstream.saw().head;
        let forwarded = format!("for=127.0.0.7;host=\"{host}\";proto=http");
        assert_eq!(head.get("forwarded"), Some(&*forwarded));
        assert_eq!(head.get("x-forwarded-host"), Some(host));
    }
}

#[tokio::test]
async fn an_http_1_0_client_is_forwarded_as_one() {
    let told = forwarded_from(STRANGER, "GET / HTTP/1.0", &[]).await;
    assert!(told.contains(&"via: 1.0 tidegate".to_owned()), "{told:?}");
}

#[tokio::test]
async fn an_http2_client_over_tls_is_forwarded_as_one() {
    let certificates = Certificates::make();
    let [cert, key] = ["cert.pem", "key.pem"].map(|name| certificates.path(name));
    let upstream = Upstream::start().await;
    let tls = format!(", tls: {{ cert: '{cert}', key: '{key}' }}");
    let gate = gateway(&upstream, &tls).await;
    let stream = secure(gate.address, &certificates, &["h2"]).await;
    let request = Request::get("https://shop.example/").body(body("", &[]));
    let answered = H2::over(stream).await.ask(request.unwrap()).await;
    assert_eq!(answered.head.status, 200);
    let expected = [
        "forwarded: for=127.0.0.1;host=\"shop.example\";proto=https",
        "via: 2.0 tidegate",
        "x-forwarded-for: 127.0.0.1",
        "x-forwarded-host: shop.example",
        "x-forwarded-proto: https",
        "x-real-ip: 127.0.0.1",
    ];
    let head = upstream.saw().head;
    assert_eq!(forwarding_headers(&head), expected);
    assert_eq!(head.get("host"), Some("shop.example"));
}

/// Headers that applications trust although any client can send them.
const CLAIMS: [&str; 18] = [
    "CF-Connecting-IP: 192.0.2.1",
    "CF-Connecting-IPv6: 2001:db8::1",
    "Client-IP: 192.0.2.1",
    "Fastly-Client-IP: 192.0.2.1",
    "Forwarded-For: 192.0.2.1",
    "Proxy: http://192.0.2.1",
    "True-Client-IP: 192.0.2.1",
    "X-Client-IP: 192.0.2.1",
    "X-Cluster-Client-IP: 192.0.2.1",
    "X-Forwarded: for=192.0.2.1",
    "X-HTTP-Method: DELETE",
    "X-HTTP-Method-Override: DELETE",
    "X-Method-Override: DELETE",
    "X-Original-Forwarded-For: 192.0.2.1",
    "X-Original-Host: bank.example",
    "X-Original-URI: /admin",
    "X-Original-URL: /admin",
    "X-Rewrite-URL: /admin",
];

/// Sends all claims from `source`, and returns those that reached the upstream.
async fn claims_from(source: &str, upstream: &Upstream, gate: &Gate) -> Vec<&'static str> {
    let mut client = Client::connect_from(gate.address, source.parse().unwrap()).await;
    assert_eq!(client.get("/", &CLAIMS).await.status(), 200);
    let head = upstream.saw().head;
    let names = CLAIMS.map(|line| line.split(':').next().unwrap());
    let names = names.into_iter().filter(|name| head.get(name).is_some());
    names.collect()
}

#[tokio::test]
async fn headers_that_any_client_can_write_and_applications_obey_do_not_reach_the_upstream() {
    let upstream = Upstream::start().await;
    let gate = gateway(&upstream, "").await;
    let none: [&str; 0] = [];
    assert_eq!(claims_from(STRANGER, &upstream, &gate).await, none);
    let passed = claims_from(PROXY, &upstream, &gate).await;
    assert_eq!(passed.len(), CLAIMS.len(), "{passed:?}");
}

#[tokio::test]
async fn a_route_forwards_only_its_listed_claims() {
    let upstream = Upstream::start().await;
    let more = ", pass_headers: [X-HTTP-Method-Override, x-original-url]";
    let gate = gateway_with(&upstream, "", more).await;
    let passed = claims_from(STRANGER, &upstream, &gate).await;
    assert_eq!(passed, ["X-HTTP-Method-Override", "X-Original-URL"]);
}
