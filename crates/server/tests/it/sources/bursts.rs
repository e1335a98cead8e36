//! A client that has used up its quota gets nothing back by a change.

use super::kit::Program;
use super::origin::{Origin, Rate};
use crate::kit::post;
use futures_util::future::join_all;
use tidegate_testkit::redis::Server as Redis;

async fn passes(program: &Program, policy: &str) -> bool {
    let question = format!(r#"{{"policy": "{policy}", "path": "/"}}"#);
    post(program.http, &question).await.is_allowed()
}

async fn gives_no_fresh_burst(origin: &Origin, store: &str) {
    let (name, first) = (origin.name(), Rate::an_hour(5));
    let mut program = origin.start(first, store).await;
    for nth in 0..first.amount {
        assert!(passes(&program, name).await, "{name}, {store}: {nth}");
    }
    assert!(!passes(&program, name).await, "{name}, {store}");
    // More, much more, less, and the initial amount.
    for (nth, amount) in (2..).zip([6, 12, 2, 5]) {
        let rate = Rate::an_hour(amount);
        origin.change(&mut program, nth, rate, store).await;
        assert!(!passes(&program, name).await, "{name}, {store}: {rate}");
    }
}

#[tokio::test]
async fn an_exhausted_client_gets_no_fresh_burst_from_any_source() {
    let (mut origins, redis) = (Origin::all().await, Redis::start());
    // Limits of the Traefik plugin are per second, and refill during this test.
    origins.retain(|it| !matches!(it, Origin::Limits(_)));
    for store in [
        "store: { max_keys: 1000 }".to_owned(),
        format!("store: {{ url: '{}', timeout: 10s }}", redis.url()),
    ] {
        join_all(origins.iter().map(|it| gives_no_fresh_burst(it, &store))).await;
    }
}
