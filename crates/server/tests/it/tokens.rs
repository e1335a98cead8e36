//! Bearer tokens.

use crate::kit::client::question;
use crate::kit::{Client, Server};

const GUARDED: &str = "
listen:
  http: { address: '127.0.0.1:0', token: hunter2 }
  admin: { address: '127.0.0.1:0', token: hunter3 }
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, rate: 10/s }
";

fn with_token(request: &str, token: &str) -> String {
    request.replacen("\r\n", &format!("\r\nauthorization: Bearer {token}\r\n"), 1)
}

#[tokio::test]
async fn only_the_listeners_own_token_is_accepted() {
    let server = Server::start(GUARDED).await;
    let mut client = Client::connect(server.http).await;
    let refused = client.post("{}").await;
    assert_eq!(
        (refused.status, refused.body.as_str()),
        (
            401,
            r#"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"authentication required: send `Authorization: Bearer TOKEN`"}"#
        )
    );
    assert_eq!(
        refused.header("www-authenticate"),
        Some("Bearer realm=\"tidegate\"")
    );
    for (token, status) in [
        ("hunter2", 200),
        ("hunter3", 401),
        ("", 401),
        ("hunter22", 401),
    ] {
        let reply = client.ask(&with_token(&question("{}"), token)).await;
        assert_eq!(reply.status, status, "{token}");
    }
}

#[tokio::test]
async fn only_forward_auth_is_public_on_the_http_listener() {
    let server = Server::start(GUARDED).await;
    for path in ["/", "/livez", "/v1/check", "/metrics"] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        let reply = Client::connect(server.http).await.ask(&request).await;
        assert_eq!(reply.status, 401, "{path}");
    }
}

#[tokio::test]
async fn health_is_public_and_metrics_are_not() {
    let server = Server::start(GUARDED).await;
    for (path, status) in [
        ("/livez", 200),
        ("/readyz", 200),
        ("/metrics", 401),
        ("/x", 401),
    ] {
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
        let reply = Client::connect(server.admin).await.ask(&request).await;
        assert_eq!(reply.status, status, "{path}");
    }
    let request = with_token("GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n", "hunter3");
    assert_eq!(
        Client::connect(server.admin)
            .await
            .ask(&request)
            .await
            .status,
        200
    );
}
