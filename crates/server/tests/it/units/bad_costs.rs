use super::{LLM, ask, left};
use crate::kit::process::{run, tidegate};
use crate::kit::{Server, ask as forwarded, simulation};
use serde_json::json;
use tidegate_control::failure::Failure;

/// Invalid costs as JSON, and the message of the problem after the name of the member.
fn wrong() -> Vec<(String, String)> {
    let many: Vec<String> = (0..1_000).map(|nth| format!("\"u{nth:03}\":1")).collect();
    let beyond = |found: &str| {
        format!(".tokens: expected a whole number from 0 to 18446744073709551615, found {found}")
    };
    [
        (
            r#"{"tokens":1,"tokenz":1}"#,
            ": unknown unit `tokenz`; expected `requests`, `tokens`, `microusd`".to_owned(),
        ),
        (r#"{"tokens":-1}"#, beyond("-1")),
        (r#"{"tokens":1.5}"#, beyond("1.5")),
        (
            r#"{"tokens":18446744073709551616}"#,
            beyond("18446744073709551616"),
        ),
        (r#"{"tokens":1e30}"#, beyond("1e30")),
        (
            r#"{"tokens":"9"}"#,
            ".tokens: expected a whole number, found a string".to_owned(),
        ),
        (
            r#"{"tokens":{"in":1}}"#,
            ".tokens: expected a whole number, found an object".to_owned(),
        ),
        (
            r#"{"tokens":null}"#,
            ".tokens: expected a whole number, found null".to_owned(),
        ),
        (
            r#"{"tokens":1,"tokens":2}"#,
            ".tokens: duplicate unit".to_owned(),
        ),
        (
            &format!("{{{}}}", many.join(",")),
            ".u016: more than 16 units".to_owned(),
        ),
    ]
    .map(|(cost, detail)| (cost.to_owned(), detail))
    .to_vec()
}

/// Posts a body that is no valid value of `serde_json`: it may have a member twice.
async fn post(server: &Server, path: &str, body: &str) -> crate::kit::Reply {
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    );
    let mut client = crate::kit::Client::connect(server.http).await;
    client.ask(&request).await
}

#[tokio::test]
async fn no_json_request_with_a_bad_cost_charges_anything() {
    let server = Server::start(LLM).await;
    let reserved = json!({"user": "ann", "cost": {"tokens": 8, "microusd": 3}});
    let reserved = ask(server.http, "/v1/reserve", &reserved).await.json();
    let id = &reserved["reservation"];
    let before = left(&server).await;
    for (cost, detail) in wrong() {
        for (path, body, member) in [
            (
                "/v1/check",
                format!(r#"{{"user":"ann","cost":{cost}}}"#),
                "cost",
            ),
            (
                "/v1/reserve",
                format!(r#"{{"user":"ann","cost":{cost}}}"#),
                "cost",
            ),
            (
                "/v1/check",
                format!(r#"[{{"user":"ann","cost":9}},{{"user":"ann","cost":{cost}}}]"#),
                "[1].cost",
            ),
            (
                "/v1/commit",
                format!(r#"{{"reservation":{id},"actual":{cost}}}"#),
                "actual",
            ),
        ] {
            let reply = post(&server, path, &body).await;
            let cut = body.get(..200).unwrap_or(&body);
            assert_eq!(reply.status, 400, "{path} {cut}: {}", reply.body);
            assert_eq!(
                reply.json()["detail"],
                format!("{member}{detail}"),
                "{path} {cut}"
            );
        }
    }
    let ambiguous = json!({"reservation": id, "actual": 2});
    let reply = ask(server.http, "/v1/commit", &ambiguous).await;
    let detail = "actual: a number can mean several units; name one of `tokens`, `microusd`";
    assert_eq!(
        (reply.status, &reply.json()["detail"]),
        (400, &json!(detail))
    );
    assert_eq!(left(&server).await, before);
    // The reservation is still open: nothing of the above has settled it.
    let commit = json!({"reservation": id, "actual": {"tokens": 0, "microusd": 0}});
    let settled = ask(server.http, "/v1/commit", &commit).await.json();
    assert_eq!(settled["state"], "settled");
    assert_eq!(left(&server).await[1..], [1_000, 5_000]);
}

#[tokio::test]
async fn the_largest_amount_is_refused_for_ever_and_charges_no_other_unit() {
    let server = Server::start(LLM).await;
    let cost = json!({"requests": 1, "tokens": u64::MAX, "microusd": 1});
    for path in ["/v1/check", "/v1/reserve"] {
        let question = json!({"user": "ann", "cost": cost});
        let refused = ask(server.http, path, &question).await.json();
        let told = [
            &refused["allowed"],
            &refused["unit"],
            &refused["retry_after_ms"],
        ];
        assert_eq!(
            told,
            [&json!(false), &json!("tokens"), &json!(null)],
            "{path}"
        );
    }
    assert_eq!(left(&server).await, [10, 1_000, 5_000]);
    // A commit of it charges what is left, and no more.
    let question = json!({"user": "ann", "cost": {"tokens": 8}});
    let reserved = ask(server.http, "/v1/reserve", &question).await.json();
    let actual = json!({"tokens": u64::MAX});
    let commit = json!({"reservation": reserved["reservation"], "actual": actual});
    let settled = ask(server.http, "/v1/commit", &commit).await.json();
    assert_eq!(settled["state"], "settled");
    let look = json!({"user": "ann", "cost": {"requests": 0, "tokens": 1}});
    let empty = ask(server.http, "/v1/check", &look).await.json();
    assert_eq!(
        (&empty["allowed"], &empty["remaining"]),
        (&json!(false), &json!(0))
    );
}

#[tokio::test]
async fn bad_hits_of_a_descriptor_charge_nothing() {
    let server = Server::start(
        "
listen: { http: '127.0.0.1:0' }
policies:
  - name: edge
    limits:
      - { name: calls, match: { descriptor: [user] }, key: descriptor:user, rate: 10/h }
      - { name: tokens, match: { descriptor: [user] }, key: descriptor:user, unit: tokens, rate: 1000/h }
      - { name: money, match: { descriptor: [user] }, key: descriptor:user, unit: microusd, rate: 1000/h }
",
    )
    .await;
    let body = |hits: &str| {
        format!(
            r#"{{"descriptors":[{{"entries":[{{"key":"user","value":"ann"}}],"hits":{hits}}}]}}"#
        )
    };
    for (hits, detail) in wrong() {
        let reply = post(&server, "/v1/check", &body(&hits)).await;
        assert_eq!(reply.status, 400, "{hits:.200}: {}", reply.body);
        let told = reply.json()["detail"].as_str().unwrap().to_owned();
        let detail = detail.trim_start_matches([':', ' ']);
        assert!(told.contains(detail), "{hits:.200}: {told}");
    }
    for (limit, hits, left) in [
        (0, r#"{"tokens":0}"#, 9),
        (1, r#"{"requests":0,"tokens":1}"#, 999),
    ] {
        let reply = post(&server, "/v1/check", &body(hits)).await.json();
        assert_eq!(
            reply["descriptors"][0]["remaining"], left,
            "{limit}: {reply}"
        );
    }
}

/// Headers come from clients: what is no cost is the default, and more than `max` is `max`.
#[tokio::test]
async fn a_bad_header_is_the_default_of_its_unit() {
    let server = Server::start(LLM).await;
    let mut tokens = 1_000;
    for (header, charged) in [
        ("-1", 5),
        ("1.5", 5),
        ("tokens=9", 5),
        ("", 5),
        ("300", 300),
        // More than any number, and so more than `max`.
        ("18446744073709551616", 600),
    ] {
        let request = forwarded("/v1/auth/llm").header("x-user", "ann");
        let reply = request.header("x-tokens", header).at(server.http).await;
        assert_eq!(reply.status, 200, "{header:?}");
        tokens -= charged;
        assert_eq!(left(&server).await[1], tokens, "{header:?}");
    }
    let request = forwarded("/v1/auth/llm").header("x-user", "ann");
    let refused = request.header("x-tokens", &u64::MAX.to_string());
    assert_eq!(refused.at(server.http).await.status, 429);
    assert_eq!(left(&server).await[1..], [tokens, 5_000]);
}

#[tokio::test]
async fn the_command_refuses_a_bad_cost_before_it_calls() {
    let server = Server::start(LLM).await;
    let url = format!("http://{}", server.http);
    let many: Vec<String> = (0..1_000).map(|nth| format!("u{nth}=1")).collect();
    for (cost, told) in [
        ("tokens=-1", "`-1` is not a whole number"),
        ("tokens=18446744073709551616", "is not a whole number"),
        ("tokens=1,tokens=2", "names the unit `tokens` twice"),
        (&many.join(","), "at most 16 units"),
    ] {
        let words = ["check", "--url", &url, "--user", "ann", "--cost", cost];
        let ended = run(tidegate(&words)).await;
        assert_eq!(ended.status.code(), Some(2), "{cost:.40}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{cost:.40}: {}", ended.stderr);
    }
    assert_eq!(left(&server).await, [10, 1_000, 5_000]);
}

#[test]
fn a_trace_with_a_bad_cost_ends_with_its_line() {
    let config = "policies: [{ name: api, limits: [{ name: tokens, unit: tokens, rate: 10/h }, \
                  { name: calls, rate: 10/h }] }]";
    for (cost, _) in wrong() {
        let trace = format!("{{\"at_ms\":1,\"cost\":1}}\n{{\"at_ms\":2,\"cost\":{cost}}}\n");
        let simulated = simulation::run(config, trace.as_bytes());
        match simulated.ended {
            Err(Failure::Input(told)) => assert!(told.starts_with("input:2:"), "{told}"),
            other => panic!("{cost:.200}: {other:?}"),
        }
    }
}
