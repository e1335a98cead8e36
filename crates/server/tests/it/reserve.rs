//! `POST /v1/reserve`, `/v1/commit`, `/v1/refund`: estimates, settled by the actual usage.

use crate::admin::samples;
use crate::kit::{Client, CuttableServer, Reply, Server, get};
use serde_json::{Value, json};
use std::net::SocketAddr;

const LLM: &str = "
listen: { http: '127.0.0.1:0', admin: '127.0.0.1:0' }
policies:
  - name: llm
    reserve: { default_ttl: 60s, max_ttl: 10min }
    limits:
      - { name: tokens, key: user, rate: 1000/h, overdraft: 200 }
  - name: plain
    limits:
      - { name: all, rate: 10/h }
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

async fn reserve(address: SocketAddr, cost: u64) -> String {
    let reply = ask(
        address,
        "/v1/reserve",
        &json!({"user": "ann", "cost": cost}),
    )
    .await;
    assert!(reply.is_allowed());
    reply.json()["reservation"].as_str().unwrap().to_owned()
}

async fn remaining(address: SocketAddr) -> u64 {
    let reply = ask(address, "/v1/check", &json!({"user": "ann", "cost": 0})).await;
    reply.json()["remaining"].as_u64().unwrap()
}

#[tokio::test]
async fn an_estimate_is_reserved_and_settled_by_usage() {
    let server = Server::start(LLM).await;
    let question = json!({"user": "ann", "cost": 800, "ttl_ms": 30_000});
    let reply = ask(server.http, "/v1/reserve", &question).await;
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let reserved = reply.json();
    assert_eq!(
        (&reserved["allowed"], &reserved["remaining"]),
        (&json!(true), &json!(200))
    );
    assert_eq!(reserved["expires_ms"], 30_000);
    let id = reserved["reservation"].as_str().unwrap();
    let refused = ask(server.http, "/v1/reserve", &question).await.json();
    assert_eq!(refused["allowed"], false);
    assert!(refused.get("reservation").is_none() && refused.get("expires_ms").is_none());
    let commit = json!({"reservation": id, "actual": 150});
    let settled = ask(server.http, "/v1/commit", &commit).await;
    assert_eq!(
        (settled.status, settled.body.as_str()),
        (200, r#"{"state":"settled","estimate":800,"actual":150}"#)
    );
    assert_eq!(remaining(server.http).await, 850);
    for (path, body) in [
        ("/v1/commit", json!({"reservation": id, "actual": 0})),
        ("/v1/refund", json!({"reservation": id})),
    ] {
        let again = ask(server.http, path, &body).await;
        assert_eq!(
            (again.status, &again.json()["state"]),
            (200, &json!("already"))
        );
    }
    assert_eq!(remaining(server.http).await, 850);
}

#[tokio::test]
async fn usage_beyond_the_estimate_is_charged_and_a_refund_returns_all() {
    let server = Server::start(LLM).await;
    let (more, none) = (
        reserve(server.http, 100).await,
        reserve(server.http, 500).await,
    );
    let commit = json!({"reservation": more, "actual": 300});
    assert_eq!(
        ask(server.http, "/v1/commit", &commit).await.json()["state"],
        "settled"
    );
    let refund = ask(server.http, "/v1/refund", &json!({"reservation": none})).await;
    assert_eq!(
        refund.json(),
        json!({"state": "settled", "estimate": 500, "actual": 0})
    );
    assert_eq!(remaining(server.http).await, 700);
}

#[tokio::test]
async fn a_ttl_is_cut_to_the_longest_and_has_a_default() {
    let server = Server::start(LLM).await;
    for (ttl_ms, expires_ms) in [
        (json!(null), 60_000),
        (json!(86_400_000), 600_000),
        (json!(1), 1),
    ] {
        let question = json!({"user": "ann", "ttl_ms": ttl_ms});
        let reserved = ask(server.http, "/v1/reserve", &question).await.json();
        assert_eq!(reserved["expires_ms"], expires_ms);
    }
}

/// Sends a call, and compares the problem in the response.
async fn is_problem(address: SocketAddr, (path, body): (&str, &Value), status: u16, detail: &str) {
    let reply = ask(address, path, body).await;
    let told = (reply.status, &reply.json()["detail"]);
    assert_eq!(told, (status, &json!(detail)), "{path} {body}");
    let kind = reply.header("content-type");
    assert_eq!(kind, Some("application/problem+json"));
}

#[tokio::test]
async fn an_invalid_reservation_gets_a_reason_and_no_charge() {
    let server = Server::start(LLM).await;
    let none =
        "policy `plain` cannot reserve this: it does not accept reservations; add `reserve: 60s`";
    for (body, detail) in [
        (json!({"policy": "plain"}), none),
        (
            json!([{"user": "ann"}, {"policy": "plain"}]),
            &format!("[1]: {none}"),
        ),
        (
            json!({"policy": "x"}),
            "policy: unknown policy `x`; expected `llm`, `plain`",
        ),
        (json!({"ttl_ms": 0}), "ttl_ms: expected at least 1, found 0"),
        (
            json!({"ttl_ms": "60s"}),
            "ttl_ms: expected a whole number, found a string",
        ),
    ] {
        is_problem(server.http, ("/v1/reserve", &body), 400, detail).await;
    }
    let detail = "ttl_ms: this field is only for reservations (/v1/reserve)";
    let check = json!({"ttl_ms": 1});
    is_problem(server.http, ("/v1/check", &check), 400, detail).await;
    assert_eq!(remaining(server.http).await, 1_000);
}

#[tokio::test]
async fn a_list_with_invalid_descriptors_is_rejected_without_a_charge() {
    let policy = LLM.replace(
        "key: user, ",
        "match: { descriptor: [user] }, key: descriptor:user, ",
    );
    let server = Server::start(&policy).await;
    let of = |user: &str| json!({"entries": [{"key": "user", "value": user}]});
    let ann = json!({"cost": 10, "descriptors": [of("ann")]});
    let mut bob = of("bob");
    bob["limit"] = json!({"amount": u64::MAX, "period_ms": 1});
    // More than an id can hold.
    let many: Vec<Value> = (0..64).map(|nth| of(&format!("{nth:060}"))).collect();
    for (wrong, detail) in [
        (
            json!([bob]),
            "[1].descriptors: the limit 18446744073709551615/1000us",
        ),
        (
            json!(many),
            "[1]: policy `llm` cannot reserve this: this request matches more limits",
        ),
    ] {
        let list = json!([ann, {"descriptors": wrong}]);
        let reply = ask(server.http, "/v1/reserve", &list).await;
        let told = reply.json()["detail"].as_str().unwrap().to_owned();
        assert_eq!(reply.status, 400, "{told}");
        assert!(told.starts_with(detail), "{told}");
    }
    let reserved = ask(server.http, "/v1/reserve", &json!([ann])).await.json();
    assert_eq!(reserved[0]["descriptors"][0]["remaining"], 990);
}

#[tokio::test]
async fn an_invalid_settlement_gets_a_reason_and_no_refund() {
    let server = Server::start(LLM).await;
    let id = reserve(server.http, 10).await;
    let unknown = "unknown reservation: its id is invalid, or from a server with a different \
        store or `key_secret`";
    for (path, body, status, detail) in [
        (
            "/v1/commit",
            json!({"reservation": id}),
            400,
            "actual: expected a whole number, found none",
        ),
        (
            "/v1/commit",
            json!({"actual": 1}),
            400,
            "reservation: expected the id of a reservation, found none",
        ),
        (
            "/v1/refund",
            json!({"reservation": id, "actual": 1}),
            400,
            "actual: a refund has no `actual`; use commit for a partial refund",
        ),
        (
            "/v1/commit",
            json!({"reservation": "r1AAAAAAAA", "actual": 1}),
            404,
            unknown,
        ),
        ("/v1/refund", json!({"reservation": ""}), 404, unknown),
    ] {
        is_problem(server.http, (path, &body), status, detail).await;
    }
    assert_eq!(remaining(server.http).await, 990);
    let wrong = "GET /v1/commit HTTP/1.1\r\nhost: test\r\n\r\n";
    let reply = Client::connect(server.http).await.ask(wrong).await;
    assert_eq!((reply.status, reply.header("allow")), (405, Some("POST")));
}

#[tokio::test]
async fn each_item_of_a_list_is_answered_separately() {
    let server = Server::start(LLM).await;
    let questions = json!([{"user": "ann", "cost": 600}, {"user": "ann", "cost": 600}, {"user": "bob", "cost": 600}]);
    let reserved = ask(server.http, "/v1/reserve", &questions).await.json();
    let ids: Vec<Option<&str>> = (0..3)
        .map(|nth| reserved[nth]["reservation"].as_str())
        .collect();
    assert_eq!(
        (ids[0].is_some(), ids[1], ids[2].is_some()),
        (true, None, true)
    );
    let commits = json!([
        {"reservation": ids[0], "actual": 100},
        {"reservation": "r1made-up", "actual": 100},
        {"reservation": ids[0], "actual": 600},
        {"reservation": ids[2], "actual": 600},
    ]);
    let settled = ask(server.http, "/v1/commit", &commits).await;
    assert_eq!(settled.status, 200);
    assert_eq!(
        settled.json(),
        json!([
            {"state": "settled", "estimate": 600, "actual": 100},
            {"state": "unknown"},
            {"state": "already", "estimate": 600, "actual": 600},
            {"state": "settled", "estimate": 600, "actual": 600},
        ])
    );
    assert_eq!(ask(server.http, "/v1/refund", &json!([])).await.body, "[]");
    assert_eq!(ask(server.http, "/v1/reserve", &json!([])).await.body, "[]");
}

#[tokio::test]
async fn metrics_count_reservations_and_their_outcomes() {
    let server = Server::start(LLM).await;
    let page = async || samples(&get(server.admin, "/metrics").await.body);
    let before = page().await;
    let zero = r#"tidegate_settlements_total{policy="llm",state="expired"}"#;
    assert_eq!(before.get(zero), Some(&0.0));
    assert!(
        !before
            .keys()
            .any(|it| it.contains("reservations_total{policy=\"plain\""))
    );
    let id = reserve(server.http, 900).await;
    ask(
        server.http,
        "/v1/reserve",
        &json!({"user": "ann", "cost": 900}),
    )
    .await;
    ask(server.http, "/v1/reserve", &json!({"policy": "plain"})).await;
    for id in [&*id, &id, "r1x"] {
        ask(server.http, "/v1/refund", &json!({"reservation": id})).await;
    }
    let after = page().await;
    for (sample, count) in [
        (
            r#"tidegate_reservations_total{policy="llm",outcome="allowed"}"#,
            1.0,
        ),
        (
            r#"tidegate_reservations_total{policy="llm",outcome="refused"}"#,
            1.0,
        ),
        (
            r#"tidegate_reservations_total{policy="llm",outcome="error"}"#,
            0.0,
        ),
        (
            r#"tidegate_settlements_total{policy="llm",state="settled"}"#,
            1.0,
        ),
        (
            r#"tidegate_settlements_total{policy="llm",state="already"}"#,
            1.0,
        ),
        (
            r#"tidegate_settlements_total{policy="",state="unknown"}"#,
            1.0,
        ),
    ] {
        assert_eq!(after.get(sample), Some(&count), "{sample}");
    }
}

#[tokio::test]
async fn a_settlement_during_an_outage_is_503_and_can_be_retried() {
    let policy =
        "policies: [{ name: llm, reserve: 60s, limits: [{ name: tokens, rate: 1000/h }] }]";
    let it = CuttableServer::start(policy).await;
    let id = reserve(it.server.http, 800).await;
    let commit = json!({"reservation": id, "actual": 150});
    it.cut();
    let away = ask(it.server.http, "/v1/commit", &commit).await;
    assert_eq!((away.status, away.header("retry-after")), (503, Some("1")));
    let listed = ask(it.server.http, "/v1/commit", &json!([commit])).await;
    assert_eq!(
        (listed.status, listed.body.as_str()),
        (200, r#"[{"state":"unavailable"}]"#)
    );
    it.mend();
    let settled = ask(it.server.http, "/v1/commit", &commit).await;
    assert_eq!(settled.json()["state"], "settled");
    assert_eq!(remaining(it.server.http).await, 850);
}
