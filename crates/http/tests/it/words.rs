//! Messages, names, and the choice of a body.

use crate::kit::{limiter, without_store};
use http::{HeaderMap, HeaderValue};
use tidegate::{Decision, Request};
use tidegate_http::answer::{self, Correlation};

fn refused(yaml: &str) -> Decision {
    let limiter = limiter(yaml);
    let decision = limiter.check_now(&Request::new().cost(2)).unwrap();
    assert!(decision.is_allowed());
    limiter.check_now(&Request::new().cost(2)).unwrap()
}

fn body(decision: &Decision) -> String {
    let answer = answer::refuse(decision, &Correlation::made());
    String::from_utf8(answer.into_body()).unwrap()
}

fn policies(limit: &str) -> String {
    format!("policies: [{{ name: p, limits: [{{ name: l, rate: 2/s{limit} }}] }}]")
}

#[test]
fn a_collector_that_answers_429_says_so() {
    let plain = format!("respond: {{ profile: collector }}\n{}", policies(""));
    assert_eq!(
        body(&refused(&plain)),
        r#"{"code":402,"error":true,"message":"Rate limit exceeded"}"#
    );
    let own = format!(
        "respond: {{ profile: collector }}\n{}",
        policies(", respond: { status: 429 }")
    );
    assert_eq!(
        body(&refused(&own)),
        r#"{"code":429,"error":true,"message":"Too Many Requests"}"#
    );
}

#[test]
fn a_limit_has_its_own_response_body() {
    let yaml = policies(
        ", respond: { status: 402, content_type: text/plain, body: '{message}: {type}', message: 'Pay for more of {limit}', type: 'https://example.com/pay' }",
    );
    let decision = refused(&yaml);
    assert_eq!(
        body(&decision),
        "Pay for more of l: https://example.com/pay"
    );
    assert_eq!(decision.refusal().status, 402);
    assert_eq!(decision.respond().refusal.status, 429);
}

#[test]
fn a_message_replaces_the_default_sentence() {
    let yaml = format!(
        "respond: {{ message: 'Not so fast, \"you\"' }}\n{}",
        policies("")
    );
    let decision = refused(&yaml);
    assert!(body(&decision).contains(r#""detail":"Not so fast, \"you\"""#));
    assert_eq!(answer::detail(Some(&decision)), "Not so fast, \"you\"");
}

/// `body` states that a limit is exceeded, which would be wrong if the result is unknown.
#[test]
fn a_body_without_cases_applies_only_to_exceeded_limits() {
    let yaml = format!(
        "store: {{ on_failure: deny }}\nrespond: {{ content_type: text/plain, body: Too much }}\n{}",
        policies(", respond: { body: Far too much }")
    );
    assert_eq!(body(&refused(&yaml)), "Far too much");
    let unknown = without_store(&yaml, &Request::new());
    let answer = answer::refuse(&unknown, &Correlation::made());
    assert_eq!(answer.status(), 503);
    assert_eq!(answer.headers()["content-type"], "application/problem+json");
    assert!(body(&unknown).contains("#temporary-reduced-capacity"));
}

#[test]
fn the_body_of_a_limit_is_not_used_if_the_store_is_down() {
    let yaml = format!(
        "store: {{ on_failure: deny }}\n{}",
        policies(", respond: { status: 402, content_type: text/plain, body: 'Pay! {status}' }")
    );
    assert_eq!(body(&refused(&yaml)), "Pay! 402");
    let unknown = without_store(&yaml, &Request::new());
    assert_eq!(answer::refuse(&unknown, &Correlation::made()).status(), 503);
    assert!(!body(&unknown).contains("Pay"));
    assert_eq!(
        answer::detail(Some(&unknown)),
        "The limiter cannot decide at the moment. Try again in 1 second."
    );
    assert_eq!(answer::detail(None), answer::detail(Some(&unknown)));
}

#[test]
fn the_correlation_header_can_have_another_name() {
    let yaml = format!("respond: {{ correlation: X-Request-ID }}\n{}", policies(""));
    let decision = refused(&yaml);
    let mut headers = HeaderMap::new();
    headers.insert("x-correlation-id", HeaderValue::from_static("other"));
    headers.insert("x-request-id", HeaderValue::from_static("mine"));
    let id = Correlation::of(&headers, decision.respond());
    let answer = answer::refuse(&decision, &id);
    assert_eq!(answer.headers()["x-request-id"], "mine");
    assert!(!answer.headers().contains_key("x-correlation-id"));
}

#[test]
fn rate_limit_headers_of_the_application_are_replaced() {
    let limiter = limiter(&policies(""));
    let decision = limiter.check_now(&Request::new()).unwrap();
    let mut headers = HeaderMap::new();
    for value in ["7", "8"] {
        headers.append("x-ratelimit-limit", HeaderValue::from_static(value));
    }
    answer::inform(&decision, &mut headers);
    let all: Vec<_> = headers.get_all("x-ratelimit-limit").iter().collect();
    assert_eq!(all, ["2"]);
}

/// Proxies have limited room for response headers, and treat a larger response as an error.
#[test]
fn many_bands_do_not_make_long_headers() {
    let limits: Vec<String> = (0..300)
        .map(|nth| format!("{{ name: limit-number-{nth:03}, rate: {}/s }}", 1_000 - nth))
        .collect();
    let yaml = format!(
        "respond: {{ headers: [x-ratelimit, draft-03, draft-11] }}\npolicies: [{{ name: p, limits: [{}] }}]",
        limits.join(", ")
    );
    let decision = limiter(&yaml).check_now(&Request::new()).unwrap();
    let mut headers = HeaderMap::new();
    answer::inform(&decision, &mut headers);
    let bytes: usize = headers
        .iter()
        .map(|(name, value)| name.as_str().len() + value.len() + 4)
        .sum();
    assert!(bytes < 3 << 10, "{bytes}");
    let policies = headers["ratelimit-policy"].to_str().unwrap();
    assert!(policies.starts_with("\"limit-number-000\""), "{policies}");
    assert!(
        policies.ends_with("\"limit-number-299\";q=701;w=1"),
        "{policies}"
    );
    assert!(
        headers["ratelimit-limit"]
            .to_str()
            .unwrap()
            .ends_with(", 701;w=1")
    );
}
