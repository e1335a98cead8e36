//! Units at the HTTP listener: check requests, reservations, forward-auth, `tidegate check`, metrics.

/// Costs that are no costs, at every frontend that reads them by unit.
mod bad_costs;

use crate::admin::samples;
use crate::kit::process::{run, tidegate};
use crate::kit::{Client, Reply, Server, ask as forwarded, get, post};
use serde_json::{Value, json};
use std::net::SocketAddr;

const LLM: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
client:
  trusted_proxies: [127.0.0.1]
  user: { header: X-User }
  cost: { tokens: { header: X-Tokens, default: 5, max: 600 } }
policies:
  - name: llm
    reserve: 60s
    respond: { headers: [draft-11] }
    limits:
      - { name: calls, key: user, rate: 10/min, algorithm: fixed-window }
      - { name: tokens, key: user, unit: tokens, rate: 1000/h, algorithm: fixed-window }
      - { name: money, key: user, unit: microusd, rate: 5000/h, algorithm: fixed-window }
  - name: plain
    limits: [{ name: all, rate: 10/h }]
";

async fn ask(address: SocketAddr, path: &str, body: &Value) -> Reply {
    let body = body.to_string();
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    Client::connect(address).await.ask(&request).await
}

async fn check(server: &Server, cost: Value) -> Value {
    let question = json!({"user": "ann", "cost": cost});
    ask(server.http, "/v1/check", &question).await.json()
}

/// Returns the used requests, tokens and microdollars: each is the scarcest of a request for it alone.
async fn left(server: &Server) -> [u64; 3] {
    let mut left = [0; 3];
    for (unit, left) in ["requests", "tokens", "microusd"]
        .into_iter()
        .zip(&mut left)
    {
        let mut cost = json!({"requests": 0});
        cost[unit] = json!(1);
        let id = ask(
            server.http,
            "/v1/reserve",
            &json!({"user": "ann", "cost": cost}),
        )
        .await;
        let id = id.json();
        assert_eq!(
            id.get("unit").map_or("requests", |it| it.as_str().unwrap()),
            unit
        );
        *left = id["remaining"].as_u64().unwrap() + 1;
        let refund = json!({"reservation": id["reservation"]});
        assert_eq!(
            ask(server.http, "/v1/refund", &refund).await.json()["state"],
            "settled"
        );
    }
    left
}

#[tokio::test]
async fn a_check_has_a_cost_by_unit_and_names_the_unit_of_its_band() {
    let server = Server::start(LLM).await;
    let decision = check(&server, json!({"tokens": 800, "microusd": 120})).await;
    assert_eq!(
        (
            &decision["limit"],
            &decision["unit"],
            &decision["remaining"]
        ),
        (&json!("tokens"), &json!("tokens"), &json!(200))
    );
    let refused = check(&server, json!({"tokens": 201})).await;
    assert_eq!(
        (&refused["allowed"], &refused["unit"]),
        (&json!(false), &json!("tokens"))
    );
    let request = check(&server, json!({})).await;
    assert_eq!(
        (&request["limit"], request.get("unit")),
        (&json!("calls"), None)
    );
    let number = check(&server, json!(3)).await;
    assert_eq!(
        (&number["limit"], &number["remaining"]),
        (&json!("calls"), &json!(5))
    );
    assert_eq!(left(&server).await, [5, 200, 4_880]);
}

#[tokio::test]
async fn a_bad_cost_is_a_400_and_charges_nothing() {
    let server = Server::start(LLM).await;
    let many: serde_json::Map<String, Value> = (0..1_000)
        .map(|nth| (format!("u{nth:03}"), json!(1)))
        .collect();
    for (cost, detail) in [
        (
            json!({"tokens": 1, "tokenz": 1}),
            "cost: unknown unit `tokenz`; expected `requests`, `tokens`, `microusd`",
        ),
        (json!(many), "cost.u016: more than 16 units"),
        (
            json!({"tokens": -1}),
            "cost.tokens: expected a whole number from 0 to 18446744073709551615, found -1",
        ),
        (
            json!({"tokens": 1e30}),
            "cost.tokens: expected a whole number from 0 to 18446744073709551615, found 1e+30",
        ),
    ] {
        for path in ["/v1/check", "/v1/reserve"] {
            let question = json!({"user": "ann", "cost": cost});
            let reply = ask(server.http, path, &question).await;
            assert_eq!(reply.status, 400, "{path} {detail}");
            assert_eq!(
                reply.header("content-type"),
                Some("application/problem+json")
            );
            assert_eq!(reply.json()["detail"], detail);
        }
        let list = json!([{"user": "bob"}, {"user": "ann", "cost": cost}]);
        let reply = ask(server.http, "/v1/check", &list).await;
        assert_eq!(reply.json()["detail"], format!("[1].{detail}"));
    }
    assert_eq!(left(&server).await[1..], [1_000, 5_000]);
}

#[tokio::test]
async fn a_reservation_is_settled_by_unit() {
    let server = Server::start(LLM).await;
    let question = json!({"user": "ann", "cost": {"tokens": 800}});
    let reserved = ask(server.http, "/v1/reserve", &question).await.json();
    assert_eq!(
        (&reserved["unit"], &reserved["remaining"]),
        (&json!("tokens"), &json!(200))
    );
    let id = &reserved["reservation"];
    let wrong = json!({"reservation": id, "actual": {"tokenz": 1}});
    let reply = ask(server.http, "/v1/commit", &wrong).await;
    let detail = "actual: unknown unit `tokenz`; expected `requests`, `tokens`, `microusd`";
    assert_eq!(
        (reply.status, &reply.json()["detail"]),
        (400, &json!(detail))
    );
    let both = json!([wrong, {"reservation": id, "actual": {"tokens": 150, "microusd": 70}}]);
    let settled = ask(server.http, "/v1/commit", &both).await.json();
    let detail = "unknown unit `tokenz`; expected `requests`, `tokens`, `microusd`";
    assert_eq!(settled[0], json!({"state": "invalid", "detail": detail}));
    assert_eq!(
        settled[1],
        json!({
            "state": "settled",
            "estimate": {"requests": 1, "tokens": 800, "microusd": 0},
            "actual": {"requests": 1, "tokens": 150, "microusd": 70},
        })
    );
    assert_eq!(left(&server).await, [9, 850, 4_930]);
}

#[tokio::test]
async fn a_number_settles_the_only_other_unit_or_is_ambiguous() {
    let server = Server::start(LLM).await;
    let reserve = async |cost: Value| {
        let question = json!({"user": "ann", "cost": cost});
        let reserved = ask(server.http, "/v1/reserve", &question).await.json();
        reserved["reservation"].clone()
    };
    let id = reserve(json!({"tokens": 800})).await;
    let commit = json!({"reservation": id, "actual": 150});
    assert_eq!(
        ask(server.http, "/v1/commit", &commit).await.json()["state"],
        "settled"
    );
    assert_eq!(left(&server).await, [9, 850, 5_000]);
    let id = reserve(json!({"tokens": 8, "microusd": 3})).await;
    let commit = json!({"reservation": id, "actual": 2});
    let reply = ask(server.http, "/v1/commit", &commit).await;
    let detail = "actual: a number can mean several units; name one of `tokens`, `microusd`";
    assert_eq!(
        (reply.status, &reply.json()["detail"]),
        (400, &json!(detail))
    );
}

#[tokio::test]
async fn forward_auth_reads_the_cost_of_each_unit_from_its_header() {
    let server = Server::start(LLM).await;
    let request = || forwarded("/v1/auth/llm").header("x-user", "ann");
    let reply = request().header("x-tokens", "500").at(server.http).await;
    assert_eq!(reply.status, 200);
    let policy = reply.header("ratelimit-policy").unwrap();
    let expected = "\"calls\";q=10;w=60, \"tokens\";q=1000;qu=\"tokens\";w=3600, \
                    \"money\";q=5000;qu=\"microusd\";w=3600";
    assert_eq!(policy, expected);
    assert!(
        reply
            .header("ratelimit")
            .unwrap()
            .starts_with("\"tokens\";r=500;")
    );
    // Without the header, the default.
    assert_eq!(request().at(server.http).await.status, 200);
    assert_eq!(left(&server).await, [8, 495, 5_000]);
    // More than `max` is lowered to it, and does not fit.
    let refused = request().header("x-tokens", "100000").at(server.http).await;
    assert_eq!(refused.status, 429);
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        detail.starts_with("Rate limit of tokens exceeded. Try again in "),
        "{detail}"
    );
    assert_eq!(left(&server).await, [8, 495, 5_000]);
    // A policy that counts no tokens ignores the header.
    let plain = forwarded("/v1/auth/plain").header("x-tokens", "500");
    let reply = plain.at(server.http).await;
    assert_eq!(reply.status, 200);
}

#[tokio::test]
async fn hits_of_a_descriptor_may_be_a_map() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: edge
    limits:
      - { name: calls, match: { descriptor: [user] }, key: descriptor:user, rate: 10/min }
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 100/min }
",
    )
    .await;
    let question = |hits: Value| {
        let entries = json!([{"key": "user", "value": "ann"}]);
        json!({"descriptors": [{"entries": entries, "hits": hits}]})
    };
    let reply = post(server.http, &question(json!({"tokens": 70})).to_string())
        .await
        .json();
    let descriptor = &reply["descriptors"][0];
    assert_eq!(
        (&descriptor["unit"], &descriptor["remaining"]),
        (&json!("tokens"), &json!(30))
    );
    let reply = post(server.http, &question(json!(4)).to_string())
        .await
        .json();
    assert_eq!(reply["descriptors"][0]["remaining"], 5);
    let wrong = post(server.http, &question(json!({"bytes": 1})).to_string()).await;
    assert_eq!(wrong.status, 400);
}

#[tokio::test]
async fn the_command_sends_units_and_shows_them() {
    let server = Server::start(LLM).await;
    let url = format!("http://{}", server.http);
    let check = async |cost: &str| {
        run(tidegate(&[
            "check", "--url", &url, "--user", "ann", "--cost", cost,
        ]))
        .await
    };
    let allowed = check("tokens=800,microusd=9").await;
    let expected = "allowed: limit tokens, band 1000/h, 200 tokens left, ";
    assert!(allowed.stdout.starts_with(expected), "{}", allowed.stdout);
    let refused = check("tokens=201").await;
    assert_eq!(refused.status.code(), Some(4));
    let unknown = check("tokenz=1").await;
    assert_eq!(unknown.status.code(), Some(2));
    assert!(
        unknown.stderr.contains("unknown unit `tokenz`"),
        "{}",
        unknown.stderr
    );
    let wrong = check("tokens=-1").await;
    assert_eq!(wrong.status.code(), Some(2));
    assert!(
        wrong.stderr.contains("`-1` is not a whole number"),
        "{}",
        wrong.stderr
    );
}

#[tokio::test]
async fn hits_are_counted_in_the_limits_own_unit() {
    let server = Server::start(LLM).await;
    check(&server, json!({"tokens": 800, "requests": 2})).await;
    let metrics = samples(&get(server.admin, "/metrics").await.body);
    for (limit, hits) in [("calls", 2.0), ("tokens", 800.0)] {
        let labels = [
            "tidegate_limit_hits_total{",
            "policy=\"llm\"",
            &format!("limit=\"{limit}\""),
            "outcome=\"allowed\"",
        ];
        let counted = metrics
            .iter()
            .find(|(name, _)| labels.iter().all(|label| name.contains(label)));
        assert_eq!(counted.map(|(_, count)| *count), Some(hits), "{limit}");
    }
}
