//! Properties that hold for every request head.

use proptest::collection::vec;
use proptest::prelude::*;
use std::net::IpAddr;
use tidegate_policy::client::{Client, RequestFacts};

const CONFIG: &str = "
trusted_proxies: [10.0.0.0/8, \"fd00::/8\"]
user: [{ cookie: uid }, { header: X-User-Id }]
api_key: [{ header: X-API-Key }, { query: key }]
attributes: { project: { segment: 2 }, plan: { query: plan } }
cost: { header: X-Cost, max: 100 }
";

fn client() -> Client {
    tidegate_config::client_from_yaml(CONFIG).unwrap_or_else(|errors| panic!("{errors}"))
}

fn address(headers: &[(&str, &str)], peer: IpAddr) -> Option<IpAddr> {
    let client = client();
    let asking = RequestFacts {
        peer: Some(peer),
        headers,
        path: None,
        now: &|| 0,
    };
    client.identify(&asking).ip
}

/// Trusted or not, of either family, some IPv4-mapped.
fn any_address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<[u8; 3]>().prop_map(|[a, b, c]| IpAddr::from([10, a, b, c])),
        any::<[u8; 4]>().prop_map(IpAddr::from),
        any::<[u16; 8]>().prop_map(IpAddr::from),
        any::<[u16; 7]>()
            .prop_map(|[a, b, c, d, e, f, g]| { IpAddr::from([0xfd00, a, b, c, d, e, f, g]) }),
        any::<[u8; 4]>().prop_map(|v4| IpAddr::from(std::net::Ipv4Addr::from(v4).to_ipv6_mapped())),
    ]
}

/// Text in which quotes, commas, escapes and addresses are likely.
fn odd_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any_address().prop_map(|address| address.to_string()),
        Just("for=".to_owned()),
        Just("uid=".to_owned()),
        "[\"\\\\,;=\\[\\]: a1%?&+-]{0,4}",
        "\\PC{0,6}",
    ];
    vec(piece, 0..8).prop_map(|pieces| pieces.concat())
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("x-forwarded-for"),
        Just("forwarded"),
        Just("x-real-ip"),
        Just("cookie"),
        Just("x-user-id"),
        Just("x-api-key"),
        Just("x-cost"),
    ]
}

proptest! {
    #[test]
    fn headers_of_an_untrusted_client_never_change_its_address(
        peer in any_address(),
        lines in vec((name(), odd_text()), 0..6),
    ) {
        prop_assume!(!client().trusts(peer));
        let headers: Vec<(&str, &str)> = lines.iter().map(|(n, v)| (*n, v.as_str())).collect();
        prop_assert_eq!(address(&headers, peer), Some(peer.to_canonical()));
    }

    #[test]
    fn both_forwarding_headers_give_the_same_address(
        peer in any_address(),
        chain in vec((any_address(), any::<Option<u16>>()), 1..6),
    ) {
        let plain: Vec<String> = chain.iter().map(|(address, port)| match (address, port) {
            (IpAddr::V4(v4), Some(port)) => format!("{v4}:{port}"),
            (IpAddr::V6(v6), Some(port)) => format!("[{v6}]:{port}"),
            (address, None) => address.to_string(),
        }).collect();
        let quoted: Vec<String> = plain.iter().map(|node| format!("for=\"{node}\";proto=https")).collect();
        let told = address(&[("x-forwarded-for", &plain.join(", "))], peer);
        prop_assert_eq!(told, address(&[("forwarded", &quoted.join(","))], peer));
        // One line for each is the same list.
        let lines: Vec<(&str, &str)> = plain.iter().map(|node| ("x-forwarded-for", node.as_str())).collect();
        prop_assert_eq!(told, address(&lines, peer));
    }

    #[test]
    fn chain_entries_before_an_untrusted_address_are_ignored(
        stranger in any_address(),
        before in odd_text(),
    ) {
        prop_assume!(!client().trusts(stranger));
        let proxy = IpAddr::from([10, 0, 0, 1]);
        let told = Some(stranger.to_canonical());
        let forwarded = format!("{before}, {stranger}");
        prop_assert_eq!(address(&[("x-forwarded-for", &forwarded)], proxy), told);
        let forwarded = format!("{before}, for=\"{stranger}\"");
        prop_assert_eq!(address(&[("forwarded", &forwarded)], proxy), told);
    }

    #[test]
    fn any_headers_are_parsed_without_a_panic(
        peer in proptest::option::of(any_address()),
        lines in vec((name(), odd_text()), 0..6),
        path in odd_text(),
    ) {
        let client = client();
        let headers: Vec<(&str, &str)> = lines.iter().map(|(n, v)| (*n, v.as_str())).collect();
        let asking = RequestFacts { peer, headers: &headers[..], path: Some(&path), now: &|| 0 };
        let identity = client.identify(&asking);
        let cost = identity.cost.cost().number();
        prop_assert!(cost.is_some_and(|cost| (1..=100).contains(&cost)));
        prop_assert_eq!(identity.ip.is_some(), peer.is_some());
        let texts = identity.attributes.iter().map(|(_, value)| value);
        for text in texts.chain(&identity.user).chain(&identity.api_key) {
            prop_assert!(!text.is_empty() && !text.chars().any(char::is_control));
        }
    }
}
