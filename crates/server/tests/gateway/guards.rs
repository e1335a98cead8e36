//! Guards: denied clients reach no upstream, on any route.

use crate::kit::gate::Gate;
use crate::kit::upstream::Upstream;
use crate::kit::{Client, Reply};
use std::net::IpAddr;

/// Returns two routes, one of them without limits, and a list of two addresses and a robot.
fn config(upstream: &str, proxies: &str) -> String {
    format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
client: {{ trusted_proxies: [{proxies}] }}
guards:
  - {{ name: blacklist, deny: ip, list: [127.0.0.5, 192.0.2.7] }}
  - {{ name: robots, deny: 'header:user-agent', list: [robot], respond: {{ status: 403 }} }}
routes:
  - {{ name: open, match: {{ path: /open }}, upstreams: ['{upstream}'], policy: none }}
  - {{ name: all, upstreams: ['{upstream}'] }}
policies: [{{ name: api, limits: [{{ name: all, rate: 1000/s }}] }}]
"
    )
}

async fn get(gate: &Gate, source: &str, target: &str, lines: &[&str]) -> Reply {
    let source: IpAddr = source.parse().unwrap();
    let mut client = Client::connect_from(gate.address, source).await;
    client.get(target, lines).await
}

#[tokio::test]
async fn only_listed_clients_are_refused_and_on_every_route() {
    let upstream = Upstream::start().await;
    let gate = Gate::start(&config(
        &format!("http://{}", upstream.address),
        "10.0.0.0/8",
    ))
    .await;
    for target in ["/limited", "/open"] {
        let refused = get(&gate, "127.0.0.5", target, &[]).await;
        assert_eq!(refused.status(), 429, "{target}");
        assert_eq!(refused.head.get("retry-after"), None);
        let robot = get(&gate, "127.0.0.6", target, &["user-agent: robot"]).await;
        assert_eq!(robot.status(), 403, "{target}");
        let twice = ["user-agent: browser", "user-agent: robot"];
        assert_eq!(get(&gate, "127.0.0.6", target, &twice).await.status(), 403);
        assert_eq!(get(&gate, "127.0.0.6", target, &[]).await.status(), 200);
    }
    assert_eq!(upstream.seen().len(), 2);
}

#[tokio::test]
async fn a_forged_address_neither_helps_nor_harms_a_client() {
    let upstream = Upstream::start().await;
    let gate = Gate::start(&config(
        &format!("http://{}", upstream.address),
        "10.0.0.0/8",
    ))
    .await;
    for forged in [
        "x-forwarded-for: 198.51.100.1",
        "forwarded: for=198.51.100.1",
        "x-real-ip: 198.51.100.1",
    ] {
        let refused = get(&gate, "127.0.0.5", "/", &[forged]).await;
        assert_eq!(refused.status(), 429, "{forged}");
    }
    let other = get(&gate, "127.0.0.6", "/", &["x-forwarded-for: 192.0.2.7"]).await;
    assert_eq!(other.status(), 200);
    // A trusted proxy names the client.
    let behind = Gate::start(&config(
        &format!("http://{}", upstream.address),
        "127.0.0.6",
    ))
    .await;
    let told = get(
        &behind,
        "127.0.0.6",
        "/",
        &["x-forwarded-for: 1.2.3.4, 192.0.2.7"],
    )
    .await;
    assert_eq!(told.status(), 429);
}

/// Regression: two projects, or two API keys, counted as none, so a denied client passed.
#[tokio::test]
async fn a_listed_client_evaded_a_guard_with_a_second_value() {
    let upstream = Upstream::start().await;
    let gate = Gate::start(&format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
client:
  api_key: {{ header: X-Api-Key }}
  attributes: {{ project: [{{ header: X-Project }}, {{ query: project }}, {{ cookie: project }}] }}
guards:
  - {{ name: projects, deny: 'attr:project', list: [blocked] }}
  - {{ name: keys, deny: api-key, list: [stolen], respond: {{ status: 401 }} }}
  - {{ name: staff, allow: api-key, list: [ours] }}
routes: [{{ name: all, upstreams: ['http://{}'] }}]
policies: [{{ name: api, limits: [{{ name: all, key: 'attr:project', rate: 1000/s }}] }}]
",
        upstream.address
    ))
    .await;
    let ask = async |target: &str, lines: &[&str]| {
        let reply = get(&gate, "127.0.0.6", target, lines).await;
        reply.status()
    };
    let (blocked, other) = ("x-project: blocked", "x-project: other");
    for lines in [&[blocked][..], &[blocked, other], &[other, blocked]] {
        assert_eq!(ask("/", lines).await, 429, "{lines:?}");
    }
    assert_eq!(ask("/", &[other, other]).await, 200);
    assert_eq!(ask("/?project=other&project=blocked", &[]).await, 429);
    assert_eq!(ask("/", &["cookie: project=a; project=blocked"]).await, 429);
    // Of very many values, the last is denied.
    let many = format!("/?{}project=blocked", "project=x&".repeat(200));
    assert_eq!(ask(&many, &[]).await, 429);
    let keys = ["x-api-key: stolen", "x-api-key: mine"];
    assert_eq!(ask("/", &keys).await, 401);
    // A client with an ambiguous identity is not exempt.
    let keys = ["x-api-key: ours", "x-api-key: stolen"];
    assert_eq!(ask("/", &keys).await, 401);
}

#[tokio::test]
async fn in_shadow_mode_every_client_reaches_the_upstream() {
    let upstream = Upstream::start().await;
    let config = config(&format!("http://{}", upstream.address), "10.0.0.0/8");
    let gate = Gate::start(&format!("mode: shadow{}", config.replace("1000/s", "1/h"))).await;
    for target in ["/limited", "/limited", "/open"] {
        let passed = get(&gate, "127.0.0.5", target, &["user-agent: robot"]).await;
        assert_eq!(passed.status(), 200, "{target}");
    }
    assert_eq!(upstream.seen().len(), 3);
}
