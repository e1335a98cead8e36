//! The number of identifications, limit matches and store calls per request.

use crate::world::{Hello, call, config, get_with};
use tidegate::Limiter;
use tidegate_policy::work::WorkCounts;
use tidegate_testkit::redis::Server;
use tidegate_tower::RateLimitLayer;
use tower::Layer as _;

/// `{"sub": "ann"}`, signed with the secret of the configuration.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4ifQ.\
                     auSjAiLeVXLWCMJ7rCv_1dd8pUcovoDAxrahrwmPQ7Q";

const WAITING: [&str; 2] = ["", ", on_refusal: wait, max_wait: 5s"];

/// Guards, each with true if it refuses the request: none, one that lists its user, one that lists
/// another.
const GUARDS: [(&str, bool); 3] = [
    ("", false),
    ("guards: [{ name: listed, deny: user, list: [ann] }]", true),
    (
        "guards: [{ name: staff, allow: user, list: [root] }]",
        false,
    ),
];

fn with_guards(waiting: &str) -> impl Iterator<Item = (&str, (&'static str, bool))> {
    GUARDS.into_iter().map(move |guards| (waiting, guards))
}

#[tokio::test]
async fn a_request_is_verified_matched_and_decided_once_whichever_store_decides() {
    let redis = Server::start();
    for store in [
        "memory".to_owned(),
        format!("redis://127.0.0.1:{}", redis.port()),
    ] {
        for (waiting, (guards, is_refused)) in WAITING.into_iter().flat_map(with_guards) {
            let config = config(&format!(
                "
store: {{ url: '{store}' }}
{guards}
client: {{ user: {{ claim: sub }}, jwt: {{ secret: thirty-two bytes of no importance }} }}
policies: [{{ name: api, limits: [{{ name: all, key: user, rate: 1000/s{waiting} }}] }}]"
            ));
            let limiter = Limiter::builder().config(config).start().await;
            let layer = RateLimitLayer::new(limiter.expect("a limiter"));
            let service = layer.layer(Hello::default());
            let before = WorkCounts::of_this_thread();
            let bearer = format!("Bearer {TOKEN}");
            let answer = call(&service, get_with(&[("authorization", &bearer)])).await;
            assert_eq!(answer.status(), if is_refused { 429 } else { 200 });
            let after = WorkCounts::of_this_thread();
            let asked = u64::from(!is_refused);
            let expected = WorkCounts {
                tokens: before.tokens + 1,
                matchings: before.matchings + asked,
                store_calls: before.store_calls + asked,
            };
            assert_eq!(after, expected, "{store}{waiting}, {guards}");
        }
    }
}
