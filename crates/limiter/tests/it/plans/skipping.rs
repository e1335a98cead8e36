//! Limits that do not apply to subjects unknown to their plan.

use super::limiter;
use std::net::IpAddr;
use tidegate::{Limiter, ManualClock, MemoryStore, Request};

/// Known tokens have their own numbers; all other clients are counted by address.
const TOKEN_OVER_ADDRESS: &str = "
plans: [{ name: events, file: tokens.json }]
policies:
  - name: api
    evaluate: first
    limits:
      - name: per-token
        key: api-key
        missing: skip
        rate: { plan: events, subject: api-key, default: skip }
        algorithm: sliding-log
      - { name: per-address, key: ip, rate: 2/h, algorithm: sliding-log }
";

const TOKENS: &str = r#"{"subjects": {"abc123": {"amount": 4, "period": 60}}}"#;

/// Returns the limit that decides, and true if the request passes.
fn ask(
    limiter: &Limiter<MemoryStore<ManualClock>>,
    address: &str,
    key: Option<&str>,
) -> (String, bool) {
    let address: IpAddr = address.parse().expect("an address");
    let request = Request::new().ip(address);
    let request = match key {
        Some(key) => request.api_key(key),
        None => request,
    };
    let decision = limiter.check_now(&request).expect("a decision");
    let limit = decision.binding().expect("one limit decides");
    (limit.limit().to_owned(), decision.is_allowed())
}

#[test]
fn unknown_tokens_share_the_bucket_of_their_address() {
    let (limiter, _) = limiter(TOKEN_OVER_ADDRESS, TOKENS);
    let by = |limit: &str, passes| (limit.to_owned(), passes);
    for _ in 0..4 {
        let known = ask(&limiter, "192.0.2.1", Some("abc123"));
        assert_eq!(known, by("per-token", true));
    }
    let fifth = ask(&limiter, "192.0.2.9", Some("abc123"));
    assert_eq!(fifth, by("per-token", false), "from any address");

    // The address was not charged for that; and a new token is not a new bucket.
    for (key, passes) in [
        (Some("random-1"), true),
        (None, true),
        (Some("random-2"), false),
        (Some("abc123:block"), false),
        (None, false),
    ] {
        assert_eq!(
            ask(&limiter, "192.0.2.1", key),
            by("per-address", passes),
            "{key:?}"
        );
    }
}

#[test]
fn before_tokens_are_loaded_all_clients_count_by_address() {
    let (limiter, _) = limiter(TOKEN_OVER_ADDRESS, "");
    let (limit, passes) = ask(&limiter, "192.0.2.1", Some("abc123"));
    assert_eq!((limit.as_str(), passes), ("per-address", true));
}

#[test]
fn an_absent_identity_is_refused_if_configured() {
    let text = TOKEN_OVER_ADDRESS.replace("missing: skip", "missing: refuse");
    let (limiter, _) = limiter(&text, TOKENS);
    let address: IpAddr = "192.0.2.1".parse().unwrap();
    let nobody = limiter.check_now(&Request::new().ip(address)).unwrap();
    assert!(!nobody.is_allowed());
    let (limit, passes) = ask(&limiter, "192.0.2.1", Some("random"));
    assert_eq!((limit.as_str(), passes), ("per-address", true));
}

#[test]
fn an_empty_value_does_not_replace_the_address() {
    let text = TOKEN_OVER_ADDRESS.replace("missing: skip", "missing: address");
    let (limiter, _) = limiter(&text, TOKENS);
    let (limit, passes) = ask(&limiter, "192.0.2.1", None);
    assert_eq!((limit.as_str(), passes), ("per-address", true));
}
