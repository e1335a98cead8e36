//! The upstreams and limits of a gateway.

use crate::good::everything;
use std::time::Duration;
use tidegate_config::Config;
use tidegate_config::{NoEnvironment, explain};
use tidegate_core::{LimitMode, Quota};
use tidegate_policy::matching::KeyRules;
use tidegate_policy::route::{
    Balance, HostHeader, Http2Use, MessageBounds, RefundRule, RoutePolicy, UpstreamScheme,
};
use tidegate_policy::{Request, Scratch};

const POLICIES: &str = "
policies:
  - name: api
    respond: { status: 430 }
    limits: [{ name: per-route, key: route, rate: 100/s }]
  - name: consumers
    limits: [{ name: per-consumer, key: consumer, rate: 10/s }, { name: all, rate: 1000/s }]
  - name: other
    limits: [{ name: others, key: ip, rate: 10/s }]
";

fn config(routes: &str) -> Config {
    let text = format!("{routes}\n{POLICIES}");
    Config::from_yaml(&text).unwrap_or_else(|errors| panic!("{errors}"))
}

fn carried(config: &Config, id: &str) -> Option<RoutePolicy> {
    let route = config.routes.iter().find(|route| route.name == id);
    route.unwrap().policy.clone()
}

/// Returns the names of the buckets that a consumer's request matches.
fn buckets(config: &Config, policy: &str) -> Vec<String> {
    let attributes = [("consumer", "acme")];
    let request = Request::new().route("orders").attributes(&attributes);
    let mut scratch = Scratch::default();
    let policy = config.policy(Some(policy)).unwrap();
    let meeting = policy.meet(&request, &KeyRules::default(), &mut scratch);
    let buckets = meeting.met.iter().map(|met| meeting.bucket(met).to_vec());
    buckets.map(|it| String::from_utf8(it).unwrap()).collect()
}

#[test]
fn every_field_of_a_route_is_parsed() {
    let config = everything();
    let [orders, rest] = [0, 1].map(|index| config.routes.get(index).unwrap());
    assert_eq!(orders.patterns, ["/api/orders", "/api/carts$"]);
    let [first, second] = orders.upstreams.as_slice() else {
        panic!("{:?}", orders.upstreams)
    };
    assert_eq!((first.scheme, first.weight), (UpstreamScheme::Http, 1));
    assert_eq!(first.authority(), "127.0.0.1:9001");
    assert_eq!(second.to_string(), "https://b.internal:9443/v1");
    assert_eq!((second.prefix.as_str(), second.weight), ("/v1", 2));
    assert_eq!(second.http2, Http2Use::Auto);
    assert_eq!(orders.tls.ca.as_ref().unwrap().expose(), "from a file");
    assert_eq!(orders.tls.server_name.as_deref(), Some("orders.internal"));
    assert!(orders.tls.identity.is_some());
    assert_eq!(orders.balance, Balance::LeastRequests);
    let health = orders.health.as_ref().unwrap();
    assert_eq!(
        (health.path.as_str(), health.healthy, health.unhealthy),
        ("/healthz", 3, 4)
    );
    assert_eq!(
        (health.interval.as_secs(), health.timeout.as_secs()),
        (10, 2)
    );
    let eject = orders.eject.unwrap();
    assert_eq!((eject.failures, eject.lasts.as_secs()), (7, 20));
    assert_eq!(orders.timeouts.connect, Duration::from_secs(1));
    assert_eq!(orders.timeouts.response, Duration::from_secs(30));
    assert_eq!(orders.timeouts.idle, Duration::from_secs(120));
    assert_eq!(orders.refund, RefundRule::Unreached);
    assert_eq!((orders.retries, orders.body_bytes), (2, Some(1 << 20)));
    assert_eq!(orders.host, HostHeader::Upstream);
    assert_eq!(orders.strip_prefix.as_deref(), Some("/api"));
    let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    assert_eq!(orders.request_headers.set, pair("x-env", "prod"));
    assert_eq!(orders.request_headers.add, pair("x-via", "tidegate"));
    assert_eq!(orders.response_headers.remove, ["server"]);
    assert_eq!(orders.upgrades, ["websocket"]);
    let messages = orders.messages.as_ref().unwrap();
    assert_eq!(messages.policy.as_ref().unwrap().name, "consumers");
    assert_eq!(messages.bounds.message_bytes, Some(10 << 20));

    assert_eq!(rest.upstreams[0].scheme, UpstreamScheme::H2c);
    assert_eq!(
        (rest.upstreams[0].host.as_str(), rest.upstreams[0].port),
        ("::1", 9002)
    );
    assert_eq!((rest.eject, rest.body_bytes), (None, None));
    assert!(rest.upgrades.is_empty() && rest.health.is_none());
}

#[test]
fn a_route_has_defaults() {
    let config = config("routes: [{ name: a, upstreams: 'https://a' }]");
    assert!(config.warnings().is_empty());
    let route = config.routes.get(0).unwrap();
    assert_eq!(route.patterns, ["/"]);
    assert_eq!(
        (route.upstreams[0].port, route.upstreams[0].prefix.as_str()),
        (443, "")
    );
    assert_eq!(route.upstreams[0].authority(), "a");
    assert_eq!(
        (route.balance, route.refund),
        (Balance::RoundRobin, RefundRule::Never)
    );
    assert_eq!((route.retries, route.body_bytes), (1, Some(10 << 20)));
    assert_eq!(route.host, HostHeader::Keep);
    assert_eq!(route.eject.unwrap().failures, 5);
    assert_eq!(route.upgrades, ["websocket"]);
    assert_eq!(route.timeouts.connect.as_secs(), 2);
    let first = RoutePolicy {
        name: "api".to_owned(),
        index: 0,
    };
    assert_eq!(route.policy.as_ref(), Some(&first));
}

#[test]
fn routes_open_the_gateway_and_no_other_listener() {
    let routes = "routes: [{ name: a, upstreams: 'http://a' }]";
    let listen = config(routes).listen;
    assert_eq!(
        listen.gateway.unwrap().address.to_string(),
        "127.0.0.1:8000"
    );
    assert!(listen.http.is_none());
    let listen = config(&format!("listen: {{ http: 127.0.0.1:0 }}\n{routes}")).listen;
    assert!(listen.gateway.is_some() && listen.http.is_some());
    let listen = config(&format!("listen: {{ gateway: 127.0.0.1:9 }}\n{routes}")).listen;
    assert_eq!(listen.gateway.unwrap().address.tcp().unwrap().port(), 9);
    assert!(config("").routes.is_empty());
    assert!(config("").listen.gateway.is_none());
}

#[test]
fn policies_of_a_route_are_decided_atomically() {
    let config = config(
        "routes:
  - { name: orders, match: { path: /orders }, upstreams: 'http://a', policy: [api, consumers] }
  - { name: carts, match: { path: /carts }, upstreams: 'http://a', policy: [api, consumers] }
  - { name: users, match: { path: /users }, upstreams: 'http://a', policy: [other, consumers] }
  - { name: rest, upstreams: 'http://a', policy: consumers }",
    );
    let both = carried(&config, "orders").unwrap();
    assert_eq!(both.name, "api+consumers");
    assert_eq!(carried(&config, "carts"), Some(both.clone()), "joined once");
    let names: Vec<&str> = config.policies.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "api",
            "consumers",
            "other",
            "api+consumers",
            "other+consumers"
        ]
    );

    let joined = &config.policies[both.index];
    assert_eq!(joined.name, both.name);
    assert!(joined.is_joined() && !config.policies[0].is_joined());
    assert_eq!(
        joined.respond().refusal.status,
        430,
        "the first one answers"
    );
    assert_eq!(
        [0, 1, 2].map(|it| joined.origin(it)),
        ["api", "consumers", "consumers"]
    );
    assert_eq!(config.policies[0].origin(0), "api");

    // A client that is counted on one route is counted on every other.
    let expected = [
        "api/per-route/route:orders",
        "consumers/per-consumer/attr.consumer:acme",
        "consumers/all/global",
    ];
    assert_eq!(buckets(&config, "api+consumers"), expected);
    assert_eq!(buckets(&config, "consumers"), expected[1..]);
    assert_eq!(buckets(&config, "other+consumers")[1..], expected[1..]);
}

#[test]
fn policies_that_share_buckets_are_refundable_together() {
    let config = config(
        "routes:
  - { name: a, match: { path: /a }, upstreams: 'http://a', policy: [api, consumers], refund: unreached }
  - { name: b, match: { path: /b }, upstreams: 'http://a', policy: [other, consumers] }",
    );
    let refundable = |policy: &str| -> Vec<bool> {
        let limits = config.policy(Some(policy)).unwrap().limits.iter();
        let bands = limits.flat_map(|limit| &limit.bands);
        bands.map(|band| band.quota.is_refundable()).collect()
    };
    assert_eq!(refundable("api+consumers"), [true, true, true]);
    assert_eq!(refundable("consumers"), [true, true]);
    // Joined with a refundable one, although on a route without refunds.
    assert_eq!(refundable("other"), [true]);
    assert_eq!(refundable("other+consumers"), [true, true, true]);
}

#[test]
fn a_disabled_route_matches_no_request_and_keeps_its_position() {
    let text = |mode: &str| {
        format!(
            "routes:
  - {{ name: all, mode: {mode}, upstreams: 'http://a' }}
  - {{ name: shop, match: {{ path: /shop, host: a.org }}, upstreams: 'http://b' }}
  - {{ name: rest, upstreams: 'http://c' }}"
        )
    };
    let taken = |config: &Config, host, path| {
        let found = config.routes.find("GET", Some(host), path);
        found.map(|found| (found.route.name.clone(), found.index))
    };
    let off = config(&text("off"));
    assert!(off.warnings().is_empty(), "{:?}", off.warnings());
    let shop = Some(("shop".to_owned(), 1));
    let rest = Some(("rest".to_owned(), 2));
    assert_eq!(taken(&off, "a.org", "/shop/7"), shop);
    assert_eq!(taken(&off, "b.org", "/shop/7"), rest);
    assert_eq!(off.routes.len(), 3);

    let on = config(&text("enforce"));
    assert_eq!(
        taken(&on, "a.org", "/shop/7"),
        Some(("all".to_owned(), 0)),
        "{:?}",
        on.warnings()
    );
    assert_eq!(on.warnings().len(), 2, "two are never taken");

    let last = config("routes: [{ name: a, upstreams: 'http://a', mode: off }]");
    assert_eq!(taken(&last, "a.org", "/"), None);
    assert!(!last.routes.reads_host());
}

#[test]
fn a_route_in_shadow_mode_puts_its_limits_in_shadow_mode() {
    let config = config(
        "routes:
  - { name: a, mode: shadow, match: { path: /a }, upstreams: 'http://a', policy: api }
  - { name: b, mode: shadow, match: { path: /b }, upstreams: 'http://a', policy: [api, other] }
  - { name: c, mode: shadow, match: { path: /c }, upstreams: 'http://a', policy: api, messages: api }
  - { name: d, upstreams: 'http://a', policy: api }",
    );
    let modes = |route: &str| {
        let carried = carried(&config, route).unwrap();
        let policy = &config.policies[carried.index];
        assert_eq!(policy.name, carried.name);
        let modes: Vec<LimitMode> = policy.limits.iter().map(|limit| limit.mode).collect();
        (carried.name, modes)
    };
    let enforced = modes("d");
    assert!(enforced.1.iter().all(|mode| *mode == LimitMode::Enforce));
    for (route, name) in [
        ("a", "api (shadow)"),
        ("b", "api+other (shadow)"),
        ("c", "api (shadow)"),
    ] {
        let (carried, modes) = modes(route);
        assert_eq!(carried, name);
        assert!(
            modes.iter().all(|mode| *mode == LimitMode::Shadow),
            "{route}"
        );
    }
    let shadow = config
        .policies
        .iter()
        .find(|it| it.name == "api (shadow)")
        .unwrap();
    assert!(shadow.is_joined());
    assert_eq!(
        shadow.origin(0),
        "api",
        "the buckets are those of the written policy"
    );
    let messages = config
        .routes
        .iter()
        .find(|it| it.name == "c")
        .unwrap()
        .messages
        .clone();
    assert_eq!(messages.unwrap().policy.unwrap().name, "api (shadow)");
    assert!(explain(&config).contains("Route `a` (shadow"));
}

#[test]
fn a_disabled_route_still_makes_its_policies_refundable() {
    let config = config(
        "routes: [{ name: a, mode: off, upstreams: 'http://a', policy: [api, other], refund: unreached }]",
    );
    let limits = &config.policy(Some("api+other")).unwrap().limits;
    let mut bands = limits.iter().flat_map(|limit| &limit.bands);
    assert!(bands.all(|band| band.quota.is_refundable()));
}

#[test]
fn a_route_without_limits_carries_no_policy() {
    let config = config("routes: [{ name: a, upstreams: 'http://a', policy: none }]");
    assert_eq!(carried(&config, "a"), None);
    assert!(config.warnings()[0].message().contains("not limited"));
}

#[test]
fn values_of_configured_headers_are_never_shown() {
    let config = config(
        "routes: [{ name: a, upstreams: 'http://a', request_headers: { set: { Authorization: 'Bearer hunter2' } } }]",
    );
    assert!(!format!("{config:?}").contains("hunter2"));
    assert!(!explain(&config).contains("hunter2"));
    let route = config.routes.get(0).unwrap();
    assert_eq!(route.request_headers.set[0].1, "Bearer hunter2");
}

#[test]
fn a_gateway_needs_no_file() {
    let upstreams = ["http://127.0.0.1:9001", " h2c://b:9002/x "];
    let config = Config::gateway(&upstreams, Some("100/s burst 200"), &NoEnvironment).unwrap();
    assert!(config.warnings().is_empty());
    assert_eq!(
        config
            .listen
            .gateway
            .as_ref()
            .unwrap()
            .address
            .tcp()
            .unwrap()
            .port(),
        8000
    );
    assert!(config.listen.http.is_none());
    let found = config.routes.find("BREW", Some("x"), "/any").unwrap();
    assert_eq!((found.route.name.as_str(), found.pattern()), ("all", "/"));
    assert_eq!(found.route.upstreams.len(), 2);
    let limits = &config.policy(None).unwrap().limits;
    assert_eq!(limits[0].bands[0].text, "100/s burst 200");

    let config = Config::gateway(&["http://a"], None, &NoEnvironment).unwrap();
    assert_eq!(config.routes.get(0).unwrap().policy, None);
}

#[test]
fn a_gateway_without_a_file_reads_the_same_variables() {
    let environment =
        |name: &str| (name == "TIDEGATE_LISTEN_GATEWAY").then(|| "127.0.0.1:7".to_owned());
    let config = Config::gateway(&["http://a"], Some("1/s"), &environment).unwrap();
    assert_eq!(
        config.listen.gateway.unwrap().address.tcp().unwrap().port(),
        7
    );
}

#[test]
fn a_bad_flag_of_the_gateway_is_named() {
    let none: [&str; 0] = [];
    let said = |upstreams: &[&str], limit| {
        let errors = Config::gateway(upstreams, limit, &NoEnvironment).unwrap_err();
        errors.to_string()
    };
    assert!(said(&none, None).contains("no upstream is set"));
    let both = said(&["localhost:9001", "http://b:x"], Some("fast"));
    assert_eq!(both.matches("--upstream:1:1:").count(), 2, "{both}");
    assert_eq!(both.matches("--limit:1:1:").count(), 1, "{both}");
    assert!(both.ends_with("command line: 3 errors"), "{both}");
    assert!(said(&["http://a", "http://A:80"], None).contains("duplicate"));
    let secret = said(&["http://ann:hunter2@a"], None);
    assert!(!secret.contains("hunter2"), "{secret}");
    let structure = said(&["http://a\"], policy: none"], None);
    assert!(structure.starts_with("--upstream:1:1:"), "{structure}");
}

const MIB: u64 = 1 << 20;

#[test]
fn messages_are_bounded_by_default_and_as_written() {
    let bounds = |messages: &str| {
        let route = format!("routes: [{{ name: a, upstreams: 'http://a', messages: {messages} }}]");
        let config = config(&route);
        let messages = config.routes.get(0).unwrap().messages.clone().unwrap();
        let rate = |quota: Quota| (quota.amount(), quota.period_us(), quota.capacity());
        let MessageBounds {
            message_bytes,
            bytes,
            frames,
        } = messages.bounds;
        (message_bytes, bytes.map(rate), frames.map(rate))
    };
    let frames = Some((1_000, 1_000_000, 10_000));
    let bytes = Some((10 * MIB, 1_000_000, 100 * MIB));
    let standard = (Some(10 * MIB), bytes, frames);
    assert_eq!(bounds("api"), standard);
    assert_eq!(bounds("{ policy: api }"), standard);
    assert_eq!(
        bounds("{ message_bytes: unlimited, bytes: unlimited, frames: unlimited }"),
        (None, None, None)
    );
    // An allowed message fits into one frame, including its header.
    assert_eq!(
        bounds("{ message_bytes: 64KiB, bytes: 1KiB/min, frames: 5/h burst 50 }"),
        (
            Some(64 << 10),
            Some((1 << 10, 60_000_000, (64 << 10) + 14)),
            Some((5, 3_600_000_000, 50))
        )
    );
    let large = bounds("{ message_bytes: 1GiB }");
    assert_eq!(large.1, Some((10 * MIB, 1_000_000, (1 << 30) + 14)));
}

#[test]
fn the_first_matching_route_wins() {
    let text = "
routes:
  - name: orders
    match: { path: /api/orders, method: GET }
    upstreams: [http://127.0.0.1:9001]
  - name: rest
    upstreams: [http://127.0.0.1:9002]
policies:
  - name: api
    limits: [{ name: per-client, key: ip, rate: 10/s }]
";
    let config = Config::from_yaml(text).unwrap();
    let taken = |method, path| {
        let found = config.routes.find(method, Some("example.com"), path)?;
        Some(found.route.name.as_str())
    };
    assert_eq!(taken("GET", "/api/orders/7"), Some("orders"));
    assert_eq!(taken("PUT", "/api/orders/7"), Some("rest"));
}
