//! A limit that requests match through its own policy and through a joined policy.

use crate::{InMemory, RuntimeClock, settle};
use std::time::Duration;
use tidegate::{Config, Decision, Limiter, Request};
use tokio::task::JoinHandle;

/// Returns two policies, of which one route has both and another the first.
fn text(algorithm: &str) -> String {
    format!(
        "
routes:
  - {{ name: both, match: {{ path: /both }}, upstreams: 'http://a', policy: [a, b] }}
  - {{ name: rest, upstreams: 'http://a', policy: a }}
policies:
  - name: a
    limits:
      - {{ name: few, rate: 1/s, algorithm: {algorithm}, on_refusal: wait, max_wait: 1h, max_waiting: 3 }}
  - name: b
    limits:
      - {{ name: many, rate: 100/s, on_refusal: wait, max_wait: 1h }}
"
    )
}

fn config(algorithm: &str) -> Config {
    Config::from_yaml(&text(algorithm)).unwrap_or_else(|errors| panic!("{errors}"))
}

fn limiter(algorithm: &str) -> InMemory {
    let builder = Limiter::builder().config(config(algorithm));
    builder.clock(RuntimeClock::start()).build().unwrap()
}

fn ask(limiter: &InMemory, policy: &'static str) -> JoinHandle<Decision> {
    let limiter = limiter.clone();
    tokio::spawn(async move { limiter.check(&Request::new().policy(policy)).await.unwrap() })
}

/// Returns the number of requests that wait, by policy and limit.
fn waiting(limiter: &InMemory) -> Vec<(String, u32)> {
    let waiting = limiter.waiting().into_iter();
    let named = waiting.map(|at| (format!("{}/{}", at.policy, at.limit), at.count));
    named.collect()
}

fn counts(few: u32, many: u32) -> Vec<(String, u32)> {
    vec![("a/few".to_owned(), few), ("b/many".to_owned(), many)]
}

#[tokio::test(start_paused = true)]
async fn the_queue_bound_of_a_limit_holds_across_its_policies() {
    for (algorithm, many) in [("token-bucket", 2), ("fixed-window", 0)] {
        let limiter = limiter(algorithm);
        let first = ask(&limiter, "a");
        assert!(first.await.unwrap().is_allowed(), "{algorithm}");
        let mut waiters = Vec::new();
        for policy in ["a", "a+b", "a+b"] {
            waiters.push(ask(&limiter, policy));
            settle().await;
        }
        // A request with a place in one token bucket has one in each.
        assert_eq!(waiting(&limiter), counts(3, many), "{algorithm}");
        for policy in ["a", "a+b"] {
            let refused = ask(&limiter, policy).await.unwrap();
            assert!(!refused.is_allowed(), "{algorithm} {policy}");
        }
        let mut last = Duration::ZERO;
        for waiter in waiters {
            let decision = waiter.await.unwrap();
            assert!(decision.is_allowed(), "{algorithm}");
            assert!(decision.waited() > last, "{algorithm}: in order of arrival");
            last = decision.waited();
        }
        assert_eq!(waiting(&limiter), counts(0, 0), "{algorithm}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_waiters_even_if_policies_are_no_longer_joined() {
    let limiter = limiter("token-bucket");
    ask(&limiter, "a+b").await.unwrap();
    let waiters = [ask(&limiter, "a+b"), ask(&limiter, "a")];
    settle().await;
    assert_eq!(waiting(&limiter), counts(2, 1));

    let text = text("token-bucket");
    let (_, alone) = text.split_once("policies:").unwrap();
    let alone = Config::from_yaml(&format!("policies:{alone}")).unwrap();
    for config in [alone, config("token-bucket")] {
        limiter.reload(config).unwrap();
        assert_eq!(waiting(&limiter), counts(2, 1));
    }
    let third = ask(&limiter, "a");
    settle().await;
    assert!(!ask(&limiter, "a+b").await.unwrap().is_allowed());
    for waiter in waiters {
        assert!(waiter.await.unwrap().is_allowed());
    }
    assert!(third.await.unwrap().is_allowed());
}
