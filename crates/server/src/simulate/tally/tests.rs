//! Requests are decided by an engine with a small configuration, and its tally is checked.

use crate::simulate::engine::Engine;
use crate::simulate::event::Event;
use crate::simulate::formats::trace;
use tidegate_config::NoEnvironment;

fn run(config: &str, lines: &[&str]) -> String {
    let engine = Engine::new(config, "test", &NoEnvironment, None);
    let mut engine = engine.expect("a valid config");
    for line in lines {
        let mut event = Event::default();
        trace::read(line.as_bytes(), &mut event).expect("a valid line");
        engine.decide(&event, |_| {}).expect("memory answers");
    }
    engine.tally().to_string()
}

#[test]
fn every_limit_is_counted_by_its_own_key() {
    let config = "
policies:
  - name: api
    limits:
      - { name: per-user, key: user, rate: 2/min }
      - { name: all, rate: 4/min }
      - { name: watched, key: ip, rate: 1/min, mode: shadow }
";
    let lines = [
        r#"{"at_ms": 1000, "user": "ann", "ip": "192.0.2.1"}"#,
        r#"{"at_ms": 1000, "user": "ann", "ip": "192.0.2.2"}"#,
        r#"{"at_ms": 1000, "user": "ann", "ip": "192.0.2.2"}"#,
        r#"{"at_ms": 1000, "user": "bob", "ip": "192.0.2.1"}"#,
        r#"{"at_ms": 500, "user": "bob", "ip": "192.0.2.3"}"#,
        r#"{"at_ms": 2000, "user": "cat", "ip": "192.0.2.3"}"#,
    ];
    let expected = "\
6 requests: 4 allowed (0 matched no limit), 2 refused
3 would have been refused if not in shadow mode
from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:02.000Z: 1.000 s

  policy  limit             asked  allowed  refused          keys
  api     per-user              6        5        1  16.6 %     3
  api     all                   6        5        1  16.6 %     1
  api     watched (shadow)      6        3        3  50.0 %     3

  refused most          key           refused
  api/per-user          user:ann            1
  api/all               global              1
  api/watched (shadow)  ip:192.0.2.1        1
  api/watched (shadow)  ip:192.0.2.2        1
  api/watched (shadow)  ip:192.0.2.3        1
";
    assert_eq!(run(config, &lines), expected);
}

#[test]
fn a_missing_identity_is_no_key_but_counts_as_refused() {
    let config = "
policies:
  - name: api
    limits:
      - { name: per-user, key: user, missing: refuse, rate: 2/min }
";
    let lines = [r#"{"at_ms": 1000}"#, r#"{"at_ms": 1000, "user": "ann"}"#];
    let expected = "\
2 requests: 1 allowed (0 matched no limit), 1 refused
from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:01.000Z: 0.000 s

  policy  limit     asked  allowed  refused          keys
  api     per-user      2        1        1  50.0 %     1

  refused most  key            refused
  api/per-user  (no identity)        1
";
    assert_eq!(run(config, &lines), expected);
}

#[test]
fn a_request_without_limits_is_counted_once() {
    let config = "
policies:
  - name: api
    limits:
      - { name: posts, match: [{ method: POST }], rate: 2/min }
";
    let shown = run(config, &[r#"{"at_ms": 1000, "method": "GET"}"#]);
    assert!(
        shown.starts_with("1 request: 1 allowed (1 matched no limit), 0 refused\n"),
        "{shown}"
    );
}

#[test]
fn a_joined_limit_is_listed_and_counted_once() {
    let config = "
routes: [{ name: all, upstreams: 'http://127.0.0.1:9', policy: [web, api] }]
policies:
  - { name: api, limits: [{ name: per-user, key: user, rate: 2/min }] }
  - { name: web, limits: [{ name: all, rate: 9/min }, { name: posts, match: [{ method: POST }], rate: 9/min }] }
";
    let lines = [
        r#"{"at_ms": 1000, "user": "ann", "policy": "api"}"#,
        r#"{"at_ms": 1000, "user": "ann", "policy": "web+api"}"#,
        r#"{"at_ms": 1000, "user": "ann", "policy": "web+api"}"#,
        r#"{"at_ms": 1000, "user": "bob", "policy": "api"}"#,
    ];
    let expected = "\
4 requests: 3 allowed (0 matched no limit), 1 refused
from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:01.000Z: 0.000 s

  policy  limit     asked  allowed  refused          keys
  api     per-user      4        3        1  25.0 %     2
  web     all           2        2        0   0.0 %     1
  web     posts         0        0        0             0

  refused most  key       refused
  api/per-user  user:ann        1
";
    assert_eq!(run(config, &lines), expected);
}

#[test]
fn guard_refusals_were_missing_from_the_summary() {
    let config = "
guards:
  - { name: staff, allow: user, list: [root] }
  - { name: closed, deny: user, list: [eve] }
  - { name: soon, deny: ip, list: [192.0.2.7], mode: shadow }
policies: [{ name: api, limits: [{ name: all, rate: 9/min }] }]
";
    let lines = [
        r#"{"at_ms": 1000, "user": "eve"}"#,
        r#"{"at_ms": 1000, "user": "eve"}"#,
        r#"{"at_ms": 1000, "user": "root"}"#,
        r#"{"at_ms": 1000, "ip": "192.0.2.7"}"#,
    ];
    let expected = "\
4 requests: 2 allowed (1 matched no limit), 2 refused
1 would have been refused if not in shadow mode
from 1970-01-01T00:00:01.000Z to 1970-01-01T00:00:01.000Z: 0.000 s

  guard          refused  exempt
  staff                        1
  closed               2
  soon (shadow)        1

  policy  limit  asked  allowed  refused         keys
  api     all        1        1        0  0.0 %     1
";
    assert_eq!(run(config, &lines), expected);
}
