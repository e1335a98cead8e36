//! Client identification: addresses behind proxies, identities from all sources, and trust.

use tidegate_config::Config;
use tidegate_policy::client::{Client, ClientIdentity, RequestFacts};
use tidegate_policy::matching::KeyRules;
use tidegate_policy::{Cost, Request, Scratch};

fn client(yaml: &str) -> Client {
    tidegate_config::client_from_yaml(yaml).unwrap_or_else(|errors| panic!("{errors}"))
}

fn asking<'a>(
    peer: &str,
    headers: &'a [(&'a str, &'a str)],
    path: &'a str,
) -> RequestFacts<'a, &'a [(&'a str, &'a str)]> {
    RequestFacts {
        peer: peer.parse().ok(),
        headers,
        path: Some(path),
        now: &|| 0,
    }
}

fn address(client: &Client, peer: &str, headers: &[(&str, &str)]) -> String {
    let identity = client.identify(&asking(peer, headers, "/"));
    identity
        .ip
        .map_or_else(|| "unknown".to_owned(), |ip| ip.to_string())
}

fn attribute<'i>(identity: &'i ClientIdentity<'_>, name: &str) -> Option<&'i str> {
    let found = identity.attributes.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| &**value)
}

#[test]
fn forwarded_addresses_count_only_from_trusted_proxies() {
    let client = Client::default();
    for (peer, forwarded, expected) in [
        ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::1", "198.51.100.1:4711", "198.51.100.1"),
        ("127.0.0.1", "[2001:db8::1]:4711", "2001:db8::1"),
        ("127.0.0.1", "::ffff:198.51.100.1", "198.51.100.1"),
        (
            "127.0.0.1",
            "203.0.113.9, 198.51.100.1, 127.0.0.9",
            "198.51.100.1",
        ),
        (
            "127.0.0.1",
            "203.0.113.9,198.51.100.1,::ffff:127.0.0.9",
            "198.51.100.1",
        ),
        ("127.0.0.1", "127.0.0.3, 127.0.0.2", "127.0.0.3"),
        ("127.0.0.1", "198.51.100.1, nonsense", "127.0.0.1"),
        ("127.0.0.1", "198.51.100.1, unknown, 127.0.0.2", "127.0.0.2"),
        ("127.0.0.1", "198.51.100.1, , 127.0.0.2", "127.0.0.2"),
        ("127.0.0.1", "198.51.100.1, ", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("::ffff:192.0.2.1", "198.51.100.1", "192.0.2.1"),
        ("", "198.51.100.1", "unknown"),
    ] {
        let found = address(&client, peer, &[("X-Forwarded-For", forwarded)]);
        assert_eq!(found, expected, "{peer}: {forwarded}");
    }
    assert_eq!(address(&client, "127.0.0.1", &[]), "127.0.0.1");
    let nobody = client.trusting([]);
    let forwarded = [("x-forwarded-for", "198.51.100.1")];
    assert_eq!(address(&nobody, "127.0.0.1", &forwarded), "127.0.0.1");
}

#[test]
fn several_header_lines_form_one_list() {
    let client = Client::default();
    let lines = [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-for", "198.51.100.1, 127.0.0.3"),
        ("x-forwarded-for", "127.0.0.2"),
    ];
    assert_eq!(address(&client, "127.0.0.1", &lines), "198.51.100.1");
    let lines = [
        ("forwarded", "for=203.0.113.9"),
        ("forwarded", "for=198.51.100.1, for=127.0.0.3;proto=http"),
    ];
    assert_eq!(address(&client, "127.0.0.1", &lines), "198.51.100.1");
}

#[test]
fn only_a_bounded_part_of_a_long_chain_is_read() {
    let client = Client::default();
    let chain = |hops: usize| format!("192.0.2.1{}", ", 127.0.0.2".repeat(hops));
    let found = |chain: &str| address(&client, "127.0.0.1", &[("x-forwarded-for", chain)]);
    assert_eq!(found(&chain(31)), "192.0.2.1");
    assert_eq!(found(&chain(32)), "127.0.0.2");
    assert_eq!(found(&chain(10_000)), "127.0.0.2");
}

#[test]
fn forwarded_is_read_from_its_end() {
    let client = Client::default();
    for (forwarded, expected) in [
        ("for=198.51.100.1", "198.51.100.1"),
        ("For=\"[2001:db8::1]:4711\";proto=https", "2001:db8::1"),
        ("for=203.0.113.9, for=198.51.100.1", "198.51.100.1"),
        (
            "for=203.0.113.9;host=\"a,b\", for=\"198.51.100.1\"",
            "198.51.100.1",
        ),
        // An unterminated quote of the client does not swallow the proxy's entry.
        ("for=\"203.0.113.9, for=198.51.100.1", "198.51.100.1"),
        ("\", for=198.51.100.1", "198.51.100.1"),
        ("for=203.0.113.9, for=unknown", "127.0.0.1"),
        ("for=203.0.113.9, for=_proxy", "127.0.0.1"),
        ("for=203.0.113.9, proto=https", "127.0.0.1"),
        ("for=203.0.113.9, for=\"", "127.0.0.1"),
        ("198.51.100.1", "127.0.0.1"),
        ("", "127.0.0.1"),
    ] {
        let found = address(&client, "127.0.0.1", &[("forwarded", forwarded)]);
        assert_eq!(found, expected, "{forwarded}");
        let stranger = address(&client, "192.0.2.1", &[("forwarded", forwarded)]);
        assert_eq!(stranger, "192.0.2.1", "{forwarded}");
    }
}

#[test]
fn x_real_ip_is_one_address() {
    let client = Client::default();
    for (sent, expected) in [
        (&["198.51.100.1"][..], "198.51.100.1"),
        (&[" 198.51.100.1 "], "198.51.100.1"),
        (&["198.51.100.1, 203.0.113.9"], "127.0.0.1"),
        (&["198.51.100.1", "198.51.100.1"], "127.0.0.1"),
        (&["nonsense"], "127.0.0.1"),
        (&[""], "127.0.0.1"),
    ] {
        let headers: Vec<(&str, &str)> = sent.iter().map(|value| ("X-Real-IP", *value)).collect();
        assert_eq!(
            address(&client, "127.0.0.1", &headers),
            expected,
            "{sent:?}"
        );
        assert_eq!(address(&client, "192.0.2.1", &headers), "192.0.2.1");
    }
}

#[test]
fn the_first_present_header_gives_the_address() {
    let headers = [
        ("x-real-ip", "192.0.2.3"),
        ("forwarded", "for=192.0.2.2"),
        ("x-forwarded-for", "192.0.2.1"),
    ];
    for (yaml, expected) in [
        ("{}", "192.0.2.1"),
        ("address: forwarded", "192.0.2.2"),
        ("address: [X-Real-IP, forwarded]", "192.0.2.3"),
    ] {
        assert_eq!(address(&client(yaml), "127.0.0.1", &headers), expected);
    }
    // An empty header still counts: another one may be the client's own.
    let empty = [("x-forwarded-for", ""), ("x-real-ip", "192.0.2.3")];
    assert_eq!(address(&Client::default(), "::1", &empty), "::1");
    let only = client("address: x-real-ip");
    let other = [("x-forwarded-for", "192.0.2.1")];
    assert_eq!(address(&only, "::1", &other), "::1");
}

#[test]
fn identities_are_read_from_every_source() {
    let client = client(
        "
user: { cookie: uid }
api_key: [{ header: X-Key }, { query: key }]
consumer: { header: X-Consumer-ID, trust: anyone }
token: { header: API_KEY }
attributes:
  project: { segment: 2 }
  plan: { query: plan }
",
    );
    let headers = [
        ("Cookie", "a=b; uid=\"ann\""),
        ("x-consumer-id", "shop"),
        ("api_key", "t1"),
    ];
    let identity = client.identify(&asking(
        "192.0.2.1",
        &headers,
        "/projects/%61pollo/?plan=go+ld&key=k1",
    ));
    assert_eq!(identity.user.as_deref(), Some("ann"));
    assert_eq!(identity.api_key.as_deref(), Some("k1"));
    assert_eq!(identity.cost.cost(), Cost::ONE_REQUEST);
    let found: Vec<(&str, &str)> = identity
        .attributes
        .iter()
        .map(|(n, v)| (*n, &**v))
        .collect();
    assert_eq!(
        found,
        [
            ("consumer", "shop"),
            ("token", "t1"),
            ("project", "apollo"),
            ("plan", "go ld")
        ]
    );
}

#[test]
fn duplicate_and_malformed_identities_are_absent() {
    let client = client(
        "
user: { header: X-User-Id, trust: anyone }
api_key: { cookie: key }
attributes: { plan: { query: plan } }
",
    );
    for headers in [
        &[("x-user-id", "ann"), ("X-User-Id", "ann")][..],
        &[("x-user-id", "")],
        &[("x-user-id", " \t")],
        &[("x-user-id", "a\0b")],
        &[("x-user-id", "a\u{7f}b")],
        &[("cookie", "key=a; key=b")],
        &[("cookie", "key=a"), ("cookie", "key=a")],
        &[("cookie", "key=")],
        &[("cookie", "key=\"\"")],
        &[("cookie", "KEY=a")],
    ] {
        let identity = client.identify(&asking("192.0.2.1", headers, "/"));
        assert_eq!(identity.user, None, "{headers:?}");
        assert_eq!(identity.api_key, None, "{headers:?}");
    }
    for path in ["/?plan=", "/?plan=%0a", "/?plan=%f", "/"] {
        let identity = client.identify(&asking("192.0.2.1", &[], path));
        assert!(identity.attributes.is_empty(), "{path}");
    }
    // A repeated attribute has two values: missing for limits, and not for guards that deny.
    let identity = client.identify(&asking("192.0.2.1", &[], "/?plan=a&plan=b"));
    let attributes = identity.attributes.iter();
    let attributes: Vec<_> = attributes
        .map(|(name, value)| (*name, value.as_ref()))
        .collect();
    assert_eq!(attributes, [("plan", "a"), ("plan", "b")]);
    let text =
        "policies: [{ name: p, limits: [{ name: l, key: attr:plan, missing: skip, rate: 1/s }] }]";
    let config = Config::from_yaml(text).expect("a valid config");
    let (mut scratch, request) = (Scratch::default(), Request::new().attributes(&attributes));
    let meeting = config.policies[0].meet(&request, &KeyRules::default(), &mut scratch);
    assert!(meeting.met.is_empty(), "for limits");
}

#[test]
fn names_need_a_trusted_proxy_and_credentials_do_not() {
    let client = client(
        "
user: { header: X-User-Id }
consumer: { header: X-Consumer-ID }
token: { header: X-Token }
attributes:
  tier: { header: X-Tier }
  tenant: { header: X-Tenant, trust: proxies }
",
    );
    let headers = [
        ("x-user-id", "ann"),
        ("x-consumer-id", "shop"),
        ("x-token", "t"),
        ("x-tier", "gold"),
        ("x-tenant", "acme"),
        ("x-api-key", "k"),
    ];
    for (peer, is_proxy) in [("127.0.0.1", true), ("192.0.2.1", false), ("", false)] {
        let asking = asking(peer, &headers, "/");
        let identity = client.identify(&asking);
        assert_eq!(identity.user.is_some(), is_proxy, "{peer}");
        assert_eq!(attribute(&identity, "consumer").is_some(), is_proxy);
        assert_eq!(attribute(&identity, "tenant").is_some(), is_proxy);
        assert_eq!(attribute(&identity, "token"), Some("t"));
        assert_eq!(attribute(&identity, "tier"), Some("gold"));
        assert_eq!(identity.api_key.as_deref(), Some("k"));
        // A caller of the check API may set any header, but states the address elsewhere.
        let told = client.identify_reported(&asking);
        assert_eq!(told.user.as_deref(), Some("ann"));
        assert_eq!(attribute(&told, "tenant"), Some("acme"));
        assert_eq!(told.ip, None);
    }
}

#[test]
fn the_first_source_with_a_value_wins() {
    let client =
        client("user: [{ header: X-User-Id }, { cookie: uid }, { query: user }]\napi_key: []");
    let headers = [
        ("x-user-id", "by-header"),
        ("cookie", "uid=by-cookie"),
        ("x-api-key", "k"),
    ];
    for (peer, headers, user) in [
        ("127.0.0.1", &headers[..], "by-header"),
        ("192.0.2.1", &headers[..], "by-cookie"),
        ("192.0.2.1", &headers[..1], "by-query"),
    ] {
        let identity = client.identify(&asking(peer, headers, "/?user=by-query"));
        assert_eq!(identity.user.as_deref(), Some(user));
        assert_eq!(identity.api_key, None, "there is no source of it");
    }
}

#[test]
fn a_cost_of_zero_counts_as_one() {
    let client = client("cost: { header: X-Cost, max: 100, default: 2 }");
    for (sent, cost) in [("0", 1), ("-1", 2), ("7", 7), ("1000", 100), ("", 2)] {
        let headers = [("x-cost", sent)];
        let identity = client.identify(&asking("192.0.2.1", &headers, "/"));
        assert_eq!(identity.cost.cost(), cost, "{sent}");
    }
    let identity = client.identify(&asking("192.0.2.1", &[], "/"));
    assert_eq!(identity.cost.cost(), 2);
}

#[test]
fn each_unit_has_its_own_header() {
    let client = client(
        "cost: { tokens: { header: X-Tokens, max: 100, default: 5 }, bytes: { header: X-Bytes, max: 9 } }",
    );
    for (headers, tokens, bytes) in [
        (&[("x-tokens", "70"), ("x-bytes", "3")][..], 70, 3),
        (&[("x-tokens", "700"), ("x-bytes", "0")], 100, 1),
        (&[("x-tokens", "-1"), ("x-tokens", "7")], 5, 1),
        (&[], 5, 1),
    ] {
        let identity = client.identify(&asking("192.0.2.1", headers, "/"));
        let units: Vec<_> = identity.cost.cost().units().collect();
        assert_eq!(units, [("tokens", tokens), ("bytes", bytes)], "{headers:?}");
    }
}

#[test]
fn a_client_config_knows_if_it_reads_headers_or_the_path() {
    for (yaml, headers, path) in [
        ("{}", true, false),
        ("api_key: []", false, false),
        ("{ api_key: [], user: { cookie: a } }", true, false),
        ("{ api_key: { query: a } }", false, true),
        (
            "{ api_key: [], attributes: { a: { segment: 1 } } }",
            false,
            true,
        ),
    ] {
        let client = client(yaml);
        assert_eq!(client.learns_from(true, false), headers, "{yaml}");
        assert_eq!(client.learns_from(false, true), path, "{yaml}");
        assert!(!client.learns_from(false, false), "{yaml}");
    }
    let cost = client("{ api_key: [], cost: { header: X-Cost, max: 2 } }");
    assert!(cost.learns_from(false, false), "the default may be learnt");
}

#[test]
fn identities_do_not_show_secrets() {
    let client = client("token: { header: X-Token }");
    let headers = [("x-api-key", "hunter2"), ("x-token", "hunter2")];
    let asking = asking("192.0.2.1", &headers, "/?key=hunter2");
    let shown = format!("{:?} {:?}", asking, client.identify(&asking));
    assert!(
        shown.contains("token") && !shown.contains("hunter2"),
        "{shown}"
    );
}
