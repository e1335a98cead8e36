//! Forged addresses.

use super::{ONCE, statuses};
use crate::kit::{CuttableServer, Server, ask};
use std::net::{Ipv4Addr, SocketAddr};

/// Attack: any client that reaches the port names another address, and drains its bucket.
#[tokio::test]
async fn an_untrusted_client_cannot_choose_the_client_address() {
    let it = CuttableServer::start(ONCE).await;
    let asked = ask("/v1/auth/ip").from("192.0.2.1");
    for source in ["127.0.0.2", "127.0.0.3"] {
        let reply = asked.at_from(it.server.http, source).await;
        assert_eq!(reply.status, 403, "{source}");
    }
    assert_eq!(
        asked.at(it.server.http).await.status,
        200,
        "its victim pays nothing"
    );
}

/// Attack: each request invents another address on the left, and has a new bucket every time.
#[tokio::test]
async fn addresses_left_of_the_first_untrusted_one_are_ignored() {
    let it = CuttableServer::start(ONCE).await;
    let forged = |left: &str| ask("/v1/auth/ip").from(&format!("{left}, 192.0.2.1, 10.0.0.7"));
    let asked = [
        "198.51.100.1",
        "198.51.100.2, 10.0.0.1",
        "127.0.0.1",
        "::1",
        "nonsense",
    ];
    let seen = statuses(&it.server, asked.map(forged)).await;
    assert_eq!(seen, [200, 429, 429, 429, 429]);
    // Separate lines form one list.
    let lines = ask("/v1/auth/ip")
        .from("198.51.100.3")
        .header("x-forwarded-for", "192.0.2.1");
    assert_eq!(lines.at(it.server.http).await.status, 429);
}

/// Attack: a proxy without an address appends nothing, so the client's own entry is the last.
#[tokio::test]
async fn without_a_proxy_value_the_clients_own_value_is_ignored() {
    let it = CuttableServer::start(ONCE).await;
    let forged = ["198.51.100.1, ", "198.51.100.2,", "198.51.100.3, , "];
    let seen = statuses(&it.server, forged.map(|list| ask("/v1/auth/ip").from(list))).await;
    assert_eq!(seen, [200, 429, 429], "all count as the proxy");
}

/// Attack: the list is so long that the search reaches the client's entries, or never ends.
#[tokio::test]
async fn an_overlong_list_of_hops_is_ignored() {
    let it = CuttableServer::start(ONCE).await;
    let hops = ", 10.0.0.7".repeat(40);
    let forged = |nth: u32| ask("/v1/auth/ip").from(&format!("198.51.100.{nth}{hops}"));
    let seen = statuses(&it.server, [1, 2, 3].map(forged)).await;
    assert_eq!(seen, [200, 429, 429]);
}

/// Attack: an invalid address gets a separate bucket, or none.
#[tokio::test]
async fn an_invalid_address_uses_the_bucket_of_the_proxy() {
    let it = CuttableServer::start(ONCE).await;
    let asked = [
        "198.51.100.1, unknown",
        "198.51.100.2, _hidden",
        "198.51.100.3, 1.2.3",
        "",
    ];
    let forged = |list: &str| ask("/v1/auth/ip").from(list);
    assert_eq!(
        statuses(&it.server, asked.map(forged)).await,
        [200, 429, 429, 429]
    );
}

/// Attack: a client sends the header that the proxy does not set, and it is trusted.
#[tokio::test]
async fn other_headers_do_not_override_that_of_the_proxy() {
    let it = CuttableServer::start(ONCE).await;
    let plain = ask("/v1/auth/ip");
    let asked = [
        plain.clone(),
        plain.clone().header("x-real-ip", "198.51.100.1"),
        plain.clone().header("forwarded", "for=198.51.100.2"),
        plain.clone().header("client-ip", "198.51.100.3"),
        plain.clone().header("true-client-ip", "198.51.100.4"),
        plain.header("cf-connecting-ip", "198.51.100.5"),
    ];
    assert_eq!(
        statuses(&it.server, asked).await,
        [200, 429, 429, 429, 429, 429]
    );
}

/// Attack: two notations of an address have two buckets, and a proxy on a dual-stack socket is not
/// trusted.
#[tokio::test]
async fn ipv4_mapped_ipv6_is_ipv4() {
    let it = CuttableServer::start(ONCE).await;
    let spelled = |address: &str| ask("/v1/auth/ip").from(address);
    let asked = [
        "192.0.2.1",
        "::ffff:192.0.2.1",
        "::FFFF:c000:201",
        "[::ffff:192.0.2.1]:4711",
    ];
    assert_eq!(
        statuses(&it.server, asked.map(spelled)).await,
        [200, 429, 429, 429]
    );
    // A trusted hop in that notation is trusted and skipped.
    let hop = ask("/v1/auth/ip").from("192.0.2.1, ::ffff:10.0.0.7");
    assert_eq!(hop.at(it.server.http).await.status, 429);

    let both = Server::start(&format!(
        "listen: {{ http: '[::]:0', admin: '127.0.0.1:0' }}\n{ONCE}"
    ))
    .await;
    let port = both.http.port();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    assert_eq!(ask("/v1/auth/ip").at(address).await.status, 200);
    let stranger = ask("/v1/auth/ip").at_from(address, "127.0.0.2").await;
    assert_eq!(stranger.status, 403);
}

/// Attack: one machine has as many buckets as its network has addresses.
#[tokio::test]
async fn ipv6_counts_by_network() {
    let it = CuttableServer::start(ONCE).await;
    let from = |address: &str| ask("/v1/auth/ip").from(address);
    let asked = [
        "2001:db8::1",
        "2001:db8::2",
        "2001:db8::ffff:0:0:1",
        "2001:db8:0:1::1",
    ];
    assert_eq!(
        statuses(&it.server, asked.map(from)).await,
        [200, 429, 429, 200]
    );
}
