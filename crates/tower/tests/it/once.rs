//! How often a client is identified, its limits are matched, and the store is called.

use crate::world::{Hello, call, config, get_with};
use tidegate::Limiter;
use tidegate_policy::work::WorkCounts;
use tidegate_testkit::redis::Server;
use tidegate_tower::RateLimitLayer;
use tower::Layer as _;

/// `{"sub": "ann"}`, signed with the secret of the configuration.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4ifQ.\
                     auSjAiLeVXLWCMJ7rCv_1dd8pUcovoDAxrahrwmPQ7Q";

#[tokio::test]
async fn a_request_is_verified_matched_and_decided_once_whichever_store_decides() {
    let redis = Server::start();
    for store in [
        "memory".to_owned(),
        format!("redis://127.0.0.1:{}", redis.port()),
    ] {
        for waiting in ["", ", on_refusal: wait, max_wait: 5s"] {
            let config = config(&format!(
                "
store: {{ url: '{store}' }}
client: {{ user: {{ claim: sub }}, jwt: {{ secret: thirty-two bytes of no importance }} }}
policies: [{{ name: api, limits: [{{ name: all, key: user, rate: 1000/s{waiting} }}] }}]"
            ));
            let limiter = Limiter::builder().config(config).start().await;
            let layer = RateLimitLayer::new(limiter.expect("a limiter"));
            let service = layer.layer(Hello::default());
            let before = WorkCounts::of_this_thread();
            let bearer = format!("Bearer {TOKEN}");
            let answer = call(&service, get_with(&[("authorization", &bearer)])).await;
            assert_eq!(answer.status(), 200);
            let after = WorkCounts::of_this_thread();
            let expected = WorkCounts {
                tokens: before.tokens + 1,
                matchings: before.matchings + 1,
                store_calls: before.store_calls + 1,
            };
            assert_eq!(after, expected, "{store}{waiting}");
        }
    }
}
