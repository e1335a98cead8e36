//! Forged addresses.

use super::{ONCE, statuses};
use crate::kit::{Cuttable, Server, ask};
use std::net::{Ipv4Addr, SocketAddr};

/// Missing: whoever reaches the port is anybody whom it names, and empties others' buckets.
#[tokio::test]
async fn a_stranger_cannot_say_for_whom_it_asks() {
    let it = Cuttable::start(ONCE).await;
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

/// Missing: each request invents another address on the left, and has a new bucket every time.
#[tokio::test]
async fn what_stands_left_of_the_first_untrusted_address_does_not_count() {
    let it = Cuttable::start(ONCE).await;
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
    // On lines of their own, which are one list.
    let lines = ask("/v1/auth/ip")
        .from("198.51.100.3")
        .header("x-forwarded-for", "192.0.2.1");
    assert_eq!(lines.at(it.server.http).await.status, 429);
}

/// Missing: behind a proxy that appends an address it does not have, the client's own word is the last.
#[tokio::test]
async fn where_the_proxy_has_nothing_to_say_the_client_has_not_either() {
    let it = Cuttable::start(ONCE).await;
    let forged = ["198.51.100.1, ", "198.51.100.2,", "198.51.100.3, , "];
    let seen = statuses(&it.server, forged.map(|list| ask("/v1/auth/ip").from(list))).await;
    assert_eq!(seen, [200, 429, 429], "all of them are the proxy");
}

/// Missing: a list so long that the walk reaches what the client wrote, or takes for ever.
#[tokio::test]
async fn a_list_of_too_many_hops_leads_nowhere() {
    let it = Cuttable::start(ONCE).await;
    let hops = ", 10.0.0.7".repeat(40);
    let forged = |nth: u32| ask("/v1/auth/ip").from(&format!("198.51.100.{nth}{hops}"));
    let seen = statuses(&it.server, [1, 2, 3].map(forged)).await;
    assert_eq!(seen, [200, 429, 429]);
}

/// Missing: an element that is no address gives a bucket of its own, or ends with nobody's.
#[tokio::test]
async fn what_is_no_address_is_nobodys_bucket_but_the_proxys() {
    let it = Cuttable::start(ONCE).await;
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

/// Missing: a client writes the header that the proxy does not set, and it is believed.
#[tokio::test]
async fn other_headers_do_not_outdo_the_one_that_the_proxy_sets() {
    let it = Cuttable::start(ONCE).await;
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

/// Missing: an address in two spellings has two buckets, and a proxy on a socket for both families
/// is a stranger.
#[tokio::test]
async fn ipv4_in_the_clothes_of_ipv6_is_ipv4() {
    let it = Cuttable::start(ONCE).await;
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
    // A trusted hop in that spelling is trusted, and walked past.
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

/// Missing: one machine has as many buckets as its network has addresses.
#[tokio::test]
async fn ipv6_counts_by_network() {
    let it = Cuttable::start(ONCE).await;
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
