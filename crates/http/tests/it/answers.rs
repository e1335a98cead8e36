//! Every header format and every profile, exactly.
//!
//! `tests/goldens/NAME.txt` contains the responses with the settings in its first line, in every
//! case. After a change, `TIDEGATE_BLESS=1 cargo test -p tidegate-http` rewrites them; review the
//! difference.

use crate::kit::{head, limiter, whole, without_store};
use http::{HeaderMap, HeaderValue};
use std::fmt::Write as _;
use std::path::Path;
use tidegate::{Decision, Request};
use tidegate_http::answer::{self, Correlation};
use tidegate_policy::respond::Profile;
use tidegate_testkit::golden;

const POLICIES: &str = "
store: { on_failure: deny }
policies:
  - name: api
    limits:
      - name: per-client
        key: ip
        bands: [1/s burst 5, { rate: 100/h, label: hourly }]
      - name: watched
        key: ip
        rate: 1/h
        mode: shadow
      - name: consumers
        match: { path: /consumers }
        key: [attr:consumer, ip]
        missing: skip
        rate: 20/min burst 4
      - name: uploads
        match: { path: /uploads }
        key: user
        missing: refuse
        rate: 3/min
      - name: paid
        match: { path: /paid }
        key: ip
        rate: 1/30s
        respond: { status: 402 }
  - name: none
    limits: [{ name: l, match: { path: /nowhere }, rate: 1/s }]
";

fn config(settings: &str) -> String {
    format!("respond: {settings}\n{POLICIES}")
}

/// Returns the responses of every case.
fn answers(settings: &str) -> String {
    let yaml = config(settings);
    let limiter = limiter(&yaml);
    let check = |request: &Request<'_>| limiter.check_now(request).unwrap();
    let somebody = Request::new().ip("192.0.2.1".parse().unwrap());
    let consumer = [("consumer", "acme")];
    let mut text = format!("respond: {settings}\n");
    let mut section = |title: &str, answer: &str| {
        write!(text, "\n=== {title}\n{answer}\n").unwrap();
    };

    section("allowed", &allowed(&check(&somebody)));
    section(
        "allowed, and the consumer's limit is the tighter",
        &allowed(&check(
            &Request::new()
                .ip("192.0.2.2".parse().unwrap())
                .path("/consumers")
                .attributes(&consumer),
        )),
    );
    assert!(check(&somebody.cost(4)).is_allowed());
    section("refused for a second", &refused(&check(&somebody)));
    section("refused for three", &refused(&check(&somebody.cost(3))));
    section("refused for ever", &refused(&check(&somebody.cost(6))));
    let paid = Request::new()
        .ip("192.0.2.3".parse().unwrap())
        .path("/paid");
    assert!(check(&paid).is_allowed());
    section(
        "refused by a limit with its own status",
        &refused(&check(&paid)),
    );
    section(
        "identity missing",
        &timeless(&refused(&check(&somebody.path("/uploads")))),
    );
    section("store away", &refused(&without_store(&yaml, &somebody)));
    let respond = check(&somebody).respond().clone();
    section(
        "no decision",
        &timeless(&whole(&answer::unavailable(
            Some(&respond),
            &correlation(&respond),
        ))),
    );
    section("no limit", &allowed(&check(&somebody.policy("none"))));
    text
}

fn allowed(decision: &Decision) -> String {
    assert!(decision.is_allowed());
    let mut headers = HeaderMap::new();
    answer::inform(decision, &mut headers);
    head(&headers)
}

fn refused(decision: &Decision) -> String {
    assert!(!decision.is_allowed());
    let correlation = correlation(decision.respond());
    whole(&answer::refuse(decision, &correlation))
}

fn correlation(respond: &tidegate::Respond) -> Correlation {
    let mut headers = HeaderMap::new();
    headers.insert("x-correlation-id", HeaderValue::from_static("abc-123-def"));
    Correlation::of(&headers, respond)
}

/// Removes times: without a store call they come from the machine's clock.
fn timeless(answer: &str) -> String {
    let Some((before, after)) = answer.split_once("\"timestamp\":\"") else {
        return answer.to_owned();
    };
    let (time, after) = after.split_once('"').unwrap();
    assert!(
        time.len() == 20 && time.starts_with("20") && time.ends_with('Z'),
        "{time}"
    );
    format!("{before}\"timestamp\":\"(now)\"{after}")
}

fn check_golden(name: &str, settings: &str) {
    let answers = answers(settings);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens");
    golden::compare(&folder.join(name).with_extension("txt"), &answers);
}

#[test]
fn every_profile_responds_exactly_as_documented() {
    for (name, _) in Profile::ALL {
        check_golden(
            &format!("profile-{name}"),
            &format!("{{ profile: {name} }}"),
        );
    }
}

#[test]
fn every_header_format_is_exact() {
    for (name, settings) in [
        ("x-ratelimit", "{ headers: x-ratelimit }"),
        (
            "x-ratelimit-delta",
            "{ headers: x-ratelimit, reset: delta }",
        ),
        (
            "x-ratelimit-rfc3339",
            "{ headers: x-ratelimit, reset: rfc3339 }",
        ),
        ("draft-03", "{ headers: draft-03 }"),
        ("draft-11", "{ headers: draft-11 }"),
        ("all", "{ headers: [x-ratelimit, draft-03, draft-11] }"),
        ("none", "{ headers: [], retry_after: false }"),
        ("hidden", "{ headers: [draft-03, draft-11], names: hidden }"),
    ] {
        check_golden(&format!("dialect-{name}"), settings);
    }
}

#[test]
fn every_content_type_is_escaped_exactly() {
    for (name, settings) in [
        (
            "html",
            "{ content_type: text/html, message: 'Wait \"{retry_after}\" s & rest <now>', body: '<p title=\"{message}\">{title}: {violated_policies} {retry_after_ms}</p>' }",
        ),
        (
            "text",
            "{ content_type: text/plain, body: '{status} {title} {policy}/{limit}/{band} {remaining} of {capacity}, {reset} {reset_epoch} {reset_rfc3339} [{retry_after}] {violated_policies}' }",
        ),
        (
            "json",
            "{ content_type: application/vnd.api+json, body: '{\"l\":\"{policy}/{limit}/{band}\",\"n\":[{remaining},{capacity},{reset},{reset_epoch},{retry_after},{retry_after_ms}],\"v\":{violated_policies},\"m\":\"{message}\"}', names: hidden }",
        ),
    ] {
        check_golden(&format!("body-{name}"), settings);
    }
}

#[test]
fn a_client_counted_by_address_was_shown_a_consumer_limit() {
    let limiter = limiter(
        "respond: { profile: gateway }
policies:
  - { name: one, limits: [{ name: each, key: attr:consumer, rate: 1/s }] }
  - { name: two, limits: [{ name: each, key: [path, attr:consumer], rate: 1/s }] }
",
    );
    let told = |policy: &str, consumers: &[(&str, &str)]| {
        let request = Request::new().policy(policy).path("/a,b~c:d");
        let request = request.ip("2001:db8::1".parse().unwrap());
        let request = request.attributes(consumers);
        let answer = allowed(&limiter.check_now(&request).unwrap());
        let mut lines = answer.lines();
        let told = lines.find_map(|line| line.strip_prefix("x-ratelimit-type: "));
        told.map(str::to_owned)
    };
    for policy in ["one", "two"] {
        let known = told(policy, &[("consumer", "~ip:a,b")]);
        assert_eq!(known.as_deref(), Some("consumer"), "{policy}");
        assert_eq!(told(policy, &[]).as_deref(), Some("route"), "{policy}");
    }
}

#[test]
fn a_consumer_limit_was_reported_as_a_route_limit() {
    let limiter = limiter(
        "respond: { profile: gateway }
policies:
  - name: consumers
    limits:
      - { name: acme, match: [{ attributes: { consumer: acme } }], rate: 1/s }
      - { name: mixed, match: [{ attributes: { consumer: other } }, { path: /other }], rate: 1/s }
",
    );
    let told = |consumer: &str| {
        let consumer = [("consumer", consumer)];
        let request = Request::new().attributes(&consumer);
        let answer = allowed(&limiter.check_now(&request).unwrap());
        let mut lines = answer.lines();
        let told = lines.find_map(|line| line.strip_prefix("x-ratelimit-type: "));
        told.map(str::to_owned)
    };
    assert_eq!(told("acme").as_deref(), Some("consumer"));
    // A limit by path names no client.
    assert_eq!(told("other").as_deref(), Some("route"));
}
