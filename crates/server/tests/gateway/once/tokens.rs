//! A rejected token is counted once at every frontend, wherever the request continues without its claims.

use super::{AllListeners, EXEMPTING, NO_GUARDS, TOKEN, everywhere};
use crate::kit::Client;

/// A signature that no secret made.
const FORGED: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4ifQ.\
                      AuSjAiLeVXLWCMJ7rCv_1dd8pUcovoDAxrahrwmPQ7Q";

impl AllListeners {
    /// Returns the number of tokens that were rejected for their signature so far.
    async fn rejected(&self) -> u64 {
        let mut client = Client::connect(self.admin).await;
        let metrics = client.get("/metrics", &[]).await;
        let name = r#"tidegate_tokens_rejected_total{reason="signature"} "#;
        let line = metrics.text().lines().find_map(|it| it.strip_prefix(name));
        line.map_or(0, |count| count.parse().unwrap())
    }

    /// Asserts that `doing` rejects so many tokens.
    async fn assert_rejected(&self, doing: impl Future<Output = ()>, count: u64, what: &str) {
        let before = self.rejected().await;
        doing.await;
        assert_eq!(self.rejected().await - before, count, "{what}");
    }
}

#[tokio::test]
async fn a_rejected_token_is_counted_once_at_every_frontend() {
    assert_ne!(FORGED, TOKEN);
    let bearer = format!("authorization: Bearer {FORGED}");
    let question =
        format!(r#"{{"policy": "api", "headers": {{"authorization": "Bearer {FORGED}"}}}}"#);
    let reserving = question.replace("api", "calls");
    everywhere(&[NO_GUARDS, EXEMPTING], async |all, with| {
        for (path, question) in [("/v1/check", &question), ("/v1/reserve", &reserving)] {
            for (body, count) in [
                (question.clone(), 1),
                (format!("[{question}, {question}]"), 2),
            ] {
                let posted = async {
                    all.post(path, &body).await;
                };
                let what = format!("{count} at {path}, {with}");
                all.assert_rejected(posted, count, &what).await;
            }
        }
        let checked = async {
            let token = format!("Bearer {FORGED}");
            let words = ["TG.CHECK", "api", "header:authorization", &token];
            assert_eq!(&all.command(&words).await[4..], b":0\r\n");
        };
        let what = format!("TG.CHECK, {with}");
        all.assert_rejected(checked, 1, &what).await;
        let asked = async {
            let headers = [&*bearer, "x-forwarded-method: GET", "x-forwarded-uri: /"];
            let mut client = Client::connect(all.http).await;
            assert_eq!(client.get("/v1/auth/api", &headers).await.status(), 429);
        };
        let what = format!("/v1/auth, {with}");
        all.assert_rejected(asked, 1, &what).await;
        let passed = async {
            let mut client = Client::connect(all.gateway).await;
            assert_eq!(client.get("/", &[&bearer]).await.status(), 429);
        };
        let what = format!("gateway, {with}");
        all.assert_rejected(passed, 1, &what).await;
        // Without guards, nothing reads the token of a route without a policy.
        let count = u64::from(with.contains("guards"));
        let what = format!("gateway with guards alone, {with}");
        let passed = all.pass("/open", &bearer);
        all.assert_rejected(passed, count, &what).await;
        // Its messages are limited by user, so the handshake reads it.
        let opened = async {
            assert!(all.open_websocket("/open", FORGED).await.is_some());
        };
        let what = format!("WebSocket, {with}");
        all.assert_rejected(opened, 1, &what).await;
    })
    .await;
}
