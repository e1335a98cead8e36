//! `POST /v1/check`: everything but decisions, word for word.

use crate::kit::client::question;
use crate::kit::{Client, Reply, Server, TWO_A_MINUTE};
use tidegate_server::wire::question::LIST_MAX;

/// What comes back for `request`, which is sent as it is.
async fn reply(request: &str) -> Reply {
    let server = Server::start(TWO_A_MINUTE).await;
    Client::connect(server.http).await.ask(request).await
}

/// Sends `request`, and expects a problem with this status, title and detail.
async fn check(request: &str, status: u16, title: &str, detail: &str) {
    let reply = reply(request).await;
    let expected = format!(
        r#"{{"type":"about:blank","title":"{title}","status":{status},"detail":{}}}"#,
        serde_json::to_string(detail).unwrap()
    );
    assert_eq!(
        (reply.status, &reply.body),
        (status, &expected),
        "{request}"
    );
    assert_eq!(
        reply.header("content-type"),
        Some("application/problem+json")
    );
    assert_eq!(reply.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn bad_questions_say_what_is_wrong_and_where() {
    let fields = "there are policy, ip, user, api_key, method, host, path, route, headers, attributes, cost, descriptors";
    for (body, detail) in [
        ("", "expected an object, found the end"),
        (
            "nonsense",
            "expected an object, found something that is not JSON",
        ),
        (
            r#"{"ip": "192.0.2.1""#,
            "expected `,` or `}`, found the end",
        ),
        (
            r#"{"cots": 1}"#,
            &format!("cots: there is no such field; {fields}"),
        ),
        (
            r#"{"cost": "1"}"#,
            "cost: expected a whole number, found a string",
        ),
        (r#"{"ip": "nowhere"}"#, "ip: `nowhere` is not an IP address"),
        (
            r#"{"policy": "apj"}"#,
            "policy: there is no policy `apj`; there is `api`",
        ),
        (
            r#"[{}, {"policy": "apj"}]"#,
            "[1].policy: there is no policy `apj`; there is `api`",
        ),
        (
            r#"[{}, {"cost": "1"}]"#,
            "[1].cost: expected a whole number, found a string",
        ),
    ] {
        check(&question(body), 400, "Bad Request", detail).await;
    }
}

#[tokio::test]
async fn a_list_may_have_a_hundred_questions_and_no_more() {
    let list = |count| format!("[{}]", vec!["{}"; count].join(","));
    let full = reply(&question(&list(LIST_MAX))).await;
    assert_eq!(full.status, 200);
    assert_eq!(full.json().as_array().unwrap().len(), LIST_MAX);
    assert_eq!(reply(&question(&list(LIST_MAX + 1))).await.status, 400);
}

#[tokio::test]
async fn a_wrong_path_says_which_is_right() {
    let detail =
        "there is nothing at `/v2`; decisions are at POST /v1/check, and for proxies at /v1/auth";
    check(
        "POST /v2 HTTP/1.1\r\nhost: a\r\n\r\n",
        404,
        "Not Found",
        detail,
    )
    .await;
}

#[tokio::test]
async fn a_wrong_method_says_which_is_right() {
    for method in ["GET", "PUT", "OPTIONS", "BREW"] {
        let request = format!("{method} /v1/check HTTP/1.1\r\nhost: a\r\n\r\n");
        check(&request, 405, "Method Not Allowed", "only POST here").await;
        assert_eq!(reply(&request).await.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn a_body_that_is_not_json_by_its_own_account_is_refused() {
    let detail = "questions are JSON, not compressed: send `Content-Type: application/json`";
    let request = question("{}");
    let xml = request.replace("application/json", "text/xml");
    check(&xml, 415, "Unsupported Media Type", detail).await;
    let gzip = request.replace("host: test", "content-encoding: gzip");
    check(&gzip, 415, "Unsupported Media Type", detail).await;
}

#[tokio::test]
async fn what_curl_says_unless_told_is_taken() {
    let request = question("{}").replace("application/json", "application/x-www-form-urlencoded");
    assert!(reply(&request).await.is_allowed());
}

#[tokio::test]
async fn what_is_not_http_is_told_so() {
    assert_eq!(reply("HELO example.com\r\n\r\n").await.status, 400);
}

#[tokio::test]
async fn what_a_client_wrote_is_repeated_only_in_part() {
    let name = "x".repeat(50_000);
    let reply = reply(&question(&format!(r#"{{"policy": "{name}"}}"#))).await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.len() < 300, "{}", reply.body);
}
