//! `POST /v1/check`: responses other than decisions, word for word.

use crate::kit::client::question;
use crate::kit::{Client, Reply, Server, TWO_A_MINUTE};
use tidegate_frontends::wire::question::LIST_MAX;

/// Sends exactly `request`; returns the response.
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
async fn bad_requests_report_the_error_and_its_position() {
    let fields = "expected policy, ip, user, api_key, method, host, path, route, headers, attributes, cost, descriptors";
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
        (r#"{"cots": 1}"#, &format!("cots: unknown field; {fields}")),
        (
            r#"{"cost": "1"}"#,
            "cost: expected a whole number, found a string",
        ),
        (r#"{"ip": "nowhere"}"#, "ip: `nowhere` is not an IP address"),
        (
            r#"{"policy": "apj"}"#,
            "policy: unknown policy `apj`; expected `api`",
        ),
        (
            r#"[{}, {"policy": "apj"}]"#,
            "[1].policy: unknown policy `apj`; expected `api`",
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
async fn a_wrong_path_names_the_right_one() {
    let detail = "`/v2` does not exist; decisions are at POST /v1/check, for proxies at /v1/auth; see \
        /openapi.json";
    check(
        "POST /v2 HTTP/1.1\r\nhost: a\r\n\r\n",
        404,
        "Not Found",
        detail,
    )
    .await;
}

#[tokio::test]
async fn a_wrong_method_names_the_right_one() {
    for method in ["GET", "PUT", "OPTIONS", "BREW"] {
        let request = format!("{method} /v1/check HTTP/1.1\r\nhost: a\r\n\r\n");
        check(&request, 405, "Method Not Allowed", "allowed methods: POST").await;
        assert_eq!(reply(&request).await.header("allow"), Some("POST"));
    }
}

#[tokio::test]
async fn a_body_with_another_content_type_is_rejected() {
    let detail = "check requests are uncompressed JSON: send `Content-Type: application/json`";
    let request = question("{}");
    let xml = request.replace("application/json", "text/xml");
    check(&xml, 415, "Unsupported Media Type", detail).await;
    let gzip = request.replace("host: test", "content-encoding: gzip");
    check(&gzip, 415, "Unsupported Media Type", detail).await;
}

#[tokio::test]
async fn the_default_content_type_of_curl_is_accepted() {
    let request = question("{}").replace("application/json", "application/x-www-form-urlencoded");
    assert!(reply(&request).await.is_allowed());
}

#[tokio::test]
async fn invalid_http_gets_an_error() {
    assert_eq!(reply("HELO example.com\r\n\r\n").await.status, 400);
}

#[tokio::test]
async fn client_text_is_repeated_only_in_part() {
    let name = "x".repeat(50_000);
    let reply = reply(&question(&format!(r#"{{"policy": "{name}"}}"#))).await;
    assert_eq!(reply.status, 400);
    assert!(reply.body.len() < 300, "{}", reply.body);
}
