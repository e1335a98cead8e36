//! Units: the cost of each comes from its own header.

use crate::kit::{Gate, Upstream, get};

#[tokio::test]
async fn the_gateway_reads_the_cost_of_each_unit_from_its_header() {
    let upstream = Upstream::start().await;
    let config = format!(
        "
listen: {{ gateway: '127.0.0.1:0', admin: '127.0.0.1:0' }}
client: {{ cost: {{ tokens: {{ header: X-Tokens, default: 1, max: 600 }} }} }}
routes: [{{ name: all, upstreams: ['http://{}'] }}]
policies:
  - name: api
    limits:
      - {{ name: calls, rate: 10/min }}
      - {{ name: tokens, unit: tokens, rate: 1000/h, algorithm: fixed-window }}
",
        upstream.address
    );
    let gate = Gate::start(&config).await;
    let reply = get(gate.address, "/", &["x-tokens: 500"]).await;
    assert_eq!(reply.status(), 200);
    let policy = reply.head.get("ratelimit-policy").unwrap();
    assert_eq!(
        policy,
        "\"calls\";q=10;w=60, \"tokens\";q=1000;qu=\"tokens\";w=3600"
    );
    let refused = get(gate.address, "/", &["x-tokens: 501"]).await;
    assert_eq!(refused.status(), 429);
    assert!(
        refused
            .head
            .get("ratelimit")
            .unwrap()
            .starts_with("\"tokens\";r=500;")
    );
    // Without the header, one token.
    let reply = get(gate.address, "/", &[]).await;
    assert_eq!(reply.status(), 200);
    let refused = get(gate.address, "/", &["x-tokens: 500"]).await;
    assert_eq!(refused.status(), 429, "499 are left");
}
