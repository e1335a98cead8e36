use super::{Local, limiter, passes};
use tidegate::{ManualClock, Request};
use tidegate_import::{SourceFile, gateway};

fn files(files: &[(&str, &str)]) -> (Local, ManualClock) {
    let files: Vec<SourceFile> = files
        .iter()
        .map(|(name, text)| SourceFile {
            name: (*name).to_owned(),
            text: (*text).to_owned(),
        })
        .collect();
    let imported = gateway(&files).unwrap_or_else(|errors| panic!("{errors}"));
    limiter(&imported.to_yaml())
}

fn policy(rate: u32, burst: u32) -> (Local, ManualClock) {
    let text = format!(
        r#"{{ "items": [{{ "id": "1", "name": "orders", "requestsPerSecond": {rate}, "burstSize": {burst} }}] }}"#
    );
    files(&[("rate-limits.json", &text)])
}

fn client() -> Request<'static> {
    let client = "192.168.1.100".parse().expect("an address");
    Request::new().route("550e8400").ip(client)
}

#[test]
fn the_first_request_finds_a_full_bucket() {
    let (limiter, _) = policy(10, 15);
    let decision = limiter.check_now(&client()).unwrap();
    assert!(decision.is_allowed());
    assert_eq!(decision.binding().unwrap().remaining(), 14);
}

#[test]
fn requests_beyond_the_burst_are_refused() {
    let (limiter, _) = policy(10, 3);
    for _ in 0..3 {
        assert!(passes(&limiter, &client()));
    }
    assert!(!passes(&limiter, &client()));
    assert!(passes(&limiter, &client().route("another")));
}

#[test]
fn tokens_refill_over_time() {
    let (limiter, clock) = policy(10, 15);
    assert!(passes(&limiter, &client().cost(15)));
    clock.advance_micros(550_000);
    assert!(passes(&limiter, &client().cost(5)));
    assert!(!passes(&limiter, &client()));
}

#[test]
fn a_route_and_a_consumer_must_both_allow_and_a_refusal_charges_neither() {
    let policies = r#"[{ "id": "1", "name": "standard", "requestsPerSecond": 1, "burstSize": 2 }]"#;
    let routes = r#"[{ "id": "orders", "path": "/api/orders", "upstreamUrl": "http://127.0.0.1:9001", "status": "published", "rateLimitId": "1" }]"#;
    let consumers = r#"[{ "consumerId": "company-a", "requestsPerSecond": 1, "burstSize": 3 }]"#;
    let (limiter, _) = files(&[
        ("policies.json", policies),
        ("routes.json", routes),
        ("consumers.json", consumers),
    ]);
    let company = [("consumer", "company-a")];
    let asked = || client().policy("standard+consumers").attributes(&company);
    assert!(passes(&limiter, &asked()));
    assert!(passes(&limiter, &asked()));
    for _ in 0..5 {
        let refused = limiter.check_now(&asked()).unwrap();
        assert_eq!(refused.binding().unwrap().limit(), "route");
    }
    let elsewhere = || asked().ip("192.0.2.1".parse().unwrap());
    assert!(passes(&limiter, &elsewhere()), "the consumer has one left");
    let refused = limiter.check_now(&elsewhere()).unwrap();
    assert_eq!(refused.binding().unwrap().limit(), "company-a");
    let nobody = [("consumer", "company-b")];
    assert!(passes(&limiter, &elsewhere().attributes(&nobody)));
}

#[test]
fn a_consumer_limit_was_reported_as_a_route_limit() {
    let consumers = r#"[{ "consumerId": "company-a", "requestsPerSecond": 1, "burstSize": 3 }]"#;
    let (limiter, _) = files(&[("consumers.json", consumers)]);
    let company = [("consumer", "company-a")];
    let decision = limiter
        .check_now(&client().policy("consumers").attributes(&company))
        .unwrap();
    let binding = decision.binding().unwrap();
    assert!(binding.uses_attribute("consumer"));
    assert!(!binding.uses_attribute("project"));
    let (limiter, _) = policy(10, 3);
    let decision = limiter.check_now(&client()).unwrap();
    assert!(!decision.binding().unwrap().uses_attribute("consumer"));
}
