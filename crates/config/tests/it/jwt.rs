//! Tokens: which are accepted, and their claims. `tests/keys` contains keys and tokens that were
//! made by other programs.

use crate::good::{Files, key_file};
use serde_json::Value;
use std::net::IpAddr;
use tidegate_config::Config;
use tidegate_policy::Request;
use tidegate_policy::client::{Client, RequestFacts};
use tidegate_policy::guard::{GuardMembers, GuardOutcome, GuardScratch, ListOrigin};
use tidegate_policy::limit::AddressRules;

/// Between `nbf` and `exp` of the tokens.
const NOW: u64 = 1_500_000_000;

/// Returns a client with user and attributes from the claims of tokens that `jwt` accepts.
fn client(jwt: &str) -> Client {
    let text = format!(
        "
client:
  trusted_proxies: 10.0.0.1
  user: {{ claim: sub }}
  attributes:
    number: {{ claim: number }}
    fraction: {{ claim: fraction }}
    flag: {{ claim: flag }}
    nothing: {{ claim: nothing }}
    list: {{ claim: list }}
    role: {{ claim: realm.role }}
    team: {{ claim: realm.team.name }}
    map: {{ claim: realm.team }}
    literal: {{ claim: a.b }}
    deep: {{ claim: sub.name }}
    blank: {{ claim: blank }}
    control: {{ claim: control }}
    absent: {{ claim: absent }}
  jwt: {jwt}
policies: [{{ name: p, limits: [{{ name: l, rate: 1/s }}] }}]
"
    );
    let config = Config::parse(&text, "x", &Files).unwrap_or_else(|errors| panic!("{errors}"));
    config.client
}

fn token(name: &str) -> String {
    let tokens: Value = serde_json::from_str(&key_file("tokens.json").unwrap()).unwrap();
    tokens.get(name).and_then(Value::as_str).unwrap().to_owned()
}

/// Returns the user, or `!` and the reason for the rejection.
fn ask(client: &Client, headers: &[(&str, &str)], peer: &str, now: u64) -> String {
    let now = || now;
    let identity = client.identify(&RequestFacts {
        peer: peer.parse::<IpAddr>().ok(),
        headers,
        path: None,
        now: &now,
    });
    match (identity.user, identity.token_refused) {
        (Some(user), None) => user.into_owned(),
        (None, Some(why)) => refused(why),
        (None, None) => refused("none"),
        (user, refused) => panic!("{user:?} and {refused:?}"),
    }
}

fn user(jwt: &str, name: &str) -> String {
    at(jwt, name, NOW)
}

fn at(jwt: &str, name: &str, now: u64) -> String {
    let value = format!("Bearer {}", token(name));
    let headers = [("authorization", value.as_str())];
    ask(&client(jwt), &headers, "192.0.2.1", now)
}

fn refused(why: &str) -> String {
    format!("!{why}")
}

fn ann() -> String {
    "ann".to_owned()
}

#[test]
fn every_algorithm_is_verified_with_the_matching_key() {
    for (jwt, algorithms) in [
        ("{ secret_file: secret }", &["HS256", "HS384", "HS512"][..]),
        (
            "{ key_file: rsa.pem }",
            &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
        ),
        ("{ key_file: rsa-pkcs1.pem }", &["RS256", "PS512"]),
        ("{ key_file: p256.pem }", &["ES256"]),
        ("{ key_file: p384.pem }", &["ES384"]),
        ("{ key_file: ed25519.pem }", &["EdDSA"]),
        (
            "{ jwks_file: jwks.json }",
            &["kid-rsa", "kid-p256", "kid-p384", "kid-ed25519"],
        ),
    ] {
        for algorithm in algorithms {
            assert_eq!(user(jwt, algorithm), ann(), "{jwt} {algorithm}");
        }
    }
}

#[test]
fn the_key_decides_on_the_algorithm_not_the_token() {
    for (jwt, name, why) in [
        // A public key used as a secret.
        ("{ key_file: rsa.pem }", "confused", "algorithm"),
        ("{ jwks_file: jwks.json }", "confused", "algorithm"),
        ("{ key_file: rsa.pem }", "none", "algorithm"),
        ("{ secret_file: secret }", "none", "algorithm"),
        ("{ key_file: rsa.pem }", "HS256", "algorithm"),
        ("{ key_file: p256.pem }", "RS256", "algorithm"),
        ("{ key_file: p256.pem }", "ES384", "algorithm"),
        (
            "{ key_file: rsa.pem, algorithms: PS256 }",
            "RS256",
            "algorithm",
        ),
        // The key is for RS256 only.
        ("{ jwks_file: jwks.json }", "kid-rsa-as-PS256", "algorithm"),
    ] {
        assert_eq!(user(jwt, name), refused(why), "{jwt} {name}");
    }
}

#[test]
fn keys_of_a_set_are_found_by_id() {
    let jwks = "{ jwks_file: jwks.json }";
    assert_eq!(user(jwks, "kid-unknown"), refused("unknown-key"));
    assert_eq!(user(jwks, "kid-enc"), refused("unknown-key"));
    assert_eq!(user(jwks, "kid-number"), refused("malformed"));
    // Only one key of the set fits, so no key id is needed.
    assert_eq!(user(jwks, "RS256"), ann());
    // A single key has no id, and matches all.
    assert_eq!(user("{ key_file: rsa.pem }", "kid-unknown"), ann());
}

#[test]
fn a_token_that_was_tampered_with_is_refused() {
    let client = client("{ key_file: rsa.pem }");
    let good = token("RS256");
    let parts: Vec<&str> = good.split('.').collect();
    let other = token("kid-rsa");
    let other: Vec<&str> = other.split('.').collect();
    let ask = |text: &str| {
        let value = format!("Bearer {text}");
        ask(&client, &[("authorization", &value)], "192.0.2.1", NOW)
    };
    assert_eq!(ask(&good), ann());
    let with = |head, payload, signature| format!("{head}.{payload}.{signature}");
    // {"sub":"eve"}
    let eve = "eyJzdWIiOiJldmUifQ";
    for (text, why) in [
        (with(parts[0], eve, parts[2]), "signature"),
        (with(other[0], parts[1], parts[2]), "signature"),
        (with(parts[0], parts[1], ""), "signature"),
        (with(parts[0], parts[1], "AAAA"), "signature"),
        (with(parts[0], parts[1], "=="), "malformed"),
        (with("", parts[1], parts[2]), "malformed"),
        (with("AAAA", parts[1], parts[2]), "malformed"),
        (format!("{good}."), "malformed"),
        (format!("{good}.x"), "malformed"),
        (format!("{}.{}", parts[0], parts[1]), "malformed"),
        ("nonsense".to_owned(), "malformed"),
        ("..".to_owned(), "malformed"),
        ("x".repeat(16 * 1024 + 1), "too-long"),
    ] {
        assert_eq!(ask(&text), refused(why), "{text}");
    }
    assert_eq!(
        user("{ key_file: rsa.pem }", "crit"),
        refused("malformed"),
        "a critical header that is not supported"
    );
}

#[test]
fn a_token_is_valid_between_nbf_and_exp_plus_leeway() {
    let jwt = "{ secret_file: secret }";
    for (now, then) in [
        (999_999_939, refused("not-yet-valid")),
        (999_999_940, ann()),
        (2_000_000_059, ann()),
        (2_000_000_060, refused("expired")),
        (u64::MAX, refused("expired")),
    ] {
        assert_eq!(at(jwt, "HS256", now), then, "{now}");
    }
    let exact = "{ secret_file: secret, leeway: 0s }";
    assert_eq!(at(exact, "HS256", 999_999_999), refused("not-yet-valid"));
    assert_eq!(at(exact, "HS256", 1_000_000_000), ann());
    assert_eq!(at(exact, "HS256", 1_999_999_999), ann());
    assert_eq!(at(exact, "HS256", 2_000_000_000), refused("expired"));
    assert_eq!(at(exact, "exp-fraction", 1_999_999_999), ann());
    for (name, then) in [
        ("no-times", ann()),
        ("exp-text", refused("malformed")),
        ("exp-huge", refused("malformed")),
        ("exp-negative", refused("expired")),
        ("no-map", refused("malformed")),
    ] {
        assert_eq!(user(jwt, name), then, "{name}");
    }
}

#[test]
fn issuer_and_audience_are_checked_if_configured() {
    for (jwt, name, then) in [
        ("issuer: https://issuer.example", "HS256", ann()),
        ("issuer: [a, https://issuer.example]", "HS256", ann()),
        ("issuer: https://issuer.exampl", "HS256", refused("issuer")),
        (
            "issuer: https://issuer.example",
            "no-times",
            refused("issuer"),
        ),
        ("audience: api", "HS256", ann()),
        ("audience: [web, other]", "HS256", ann()),
        ("audience: web", "HS256", refused("audience")),
        ("audience: api", "aud-text", ann()),
        ("audience: ap", "aud-text", refused("audience")),
        ("audience: api", "no-times", refused("audience")),
    ] {
        let jwt = format!("{{ secret_file: secret, {jwt} }}");
        assert_eq!(user(&jwt, name), then, "{jwt} {name}");
    }
}

#[test]
fn claims_are_text_numbers_and_flags() {
    let client = client("{ secret_file: secret }");
    let value = format!("bearer  {}", token("HS256"));
    let headers = [("Authorization", value.as_str())];
    let identity = client.identify(&RequestFacts {
        peer: None,
        headers: &headers[..],
        path: None,
        now: &|| NOW,
    });
    let found: Vec<(&str, &str)> = identity
        .attributes
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    assert_eq!(
        found,
        [
            ("number", "42"),
            ("flag", "true"),
            ("role", "admin"),
            ("team", "blue"),
            ("literal", "literal"),
        ]
    );
}

#[test]
fn a_token_must_appear_exactly_once() {
    let text = token("HS256");
    let bearer = format!("Bearer {text}");
    let cookie = format!("a=b; access={text}");
    let twice = format!("access={text}; access={text}");
    let secret = |place: &str| client(&format!("{{ secret_file: secret, {place} }}"));
    for (place, headers, then) in [
        ("leeway: 1s", &[("authorization", &*bearer)][..], ann()),
        (
            "leeway: 1s",
            &[("authorization", &bearer), ("authorization", &bearer)],
            refused("none"),
        ),
        ("leeway: 1s", &[("authorization", &text)], refused("none")),
        (
            "leeway: 1s",
            &[("authorization", "Basic YTpi")],
            refused("none"),
        ),
        (
            "leeway: 1s",
            &[("authorization", "Bearer ")],
            refused("none"),
        ),
        ("leeway: 1s", &[], refused("none")),
        ("header: X-Token", &[("x-token", &text)], ann()),
        ("header: X-Token", &[("x-token", &bearer)], ann()),
        ("cookie: access", &[("cookie", &cookie)], ann()),
        ("cookie: access", &[("cookie", &twice)], refused("none")),
        (
            "cookie: access",
            &[("cookie", &cookie), ("cookie", &cookie)],
            refused("none"),
        ),
    ] {
        let found = ask(&secret(place), headers, "192.0.2.1", NOW);
        assert_eq!(found, then, "{place} {}", headers.len());
    }
}

#[test]
fn claims_verified_by_a_proxy_count_only_from_trusted_proxies() {
    let client = client("{ verified_by: proxy, audience: api }");
    for (name, peer, now, then) in [
        ("RS256", "10.0.0.1", NOW, ann()),
        ("RS256", "::ffff:10.0.0.1", NOW, ann()),
        ("RS256", "10.0.0.2", NOW, refused("not-from-proxy")),
        ("RS256", "", NOW, refused("not-from-proxy")),
        ("RS256", "10.0.0.1", u64::MAX, refused("expired")),
        ("no-times", "10.0.0.1", NOW, refused("audience")),
    ] {
        let value = format!("Bearer {}", token(name));
        let found = ask(&client, &[("authorization", &value)], peer, now);
        assert_eq!(found, then, "{name} {peer}");
    }
}

#[test]
fn the_clock_is_read_only_for_tokens_with_a_time() {
    let client = client("{ secret_file: secret }");
    let value = format!("Bearer {}", token("no-times"));
    let headers = [("authorization", value.as_str())];
    let identity = client.identify(&RequestFacts {
        peer: None,
        headers: &headers[..],
        path: None,
        now: &|| panic!("secrets are not shown"),
    });
    assert_eq!(identity.user.as_deref(), Some("ann"));
}

#[test]
fn nothing_shows_the_secret() {
    let shown = format!("{:?}", client("{ secret_file: secret }"));
    assert!(shown.contains("a shared secret"), "{shown}");
    assert!(!shown.contains("an example of"), "{shown}");
}

/// Returns the outcome of guards for a request with these values of `Authorization`, and with a
/// query that counts if there is no token.
fn guarded(guards: &str, values: &[&str]) -> GuardOutcome {
    let text = format!(
        "
client:
  user: [{{ claim: sub }}, {{ query: user }}]
  attributes: {{ team: [{{ claim: realm.team.name }}, {{ query: team }}] }}
  jwt: {{ secret_file: secret }}
guards: [{guards}]
policies: [{{ name: p, limits: [{{ name: l, rate: 1/s }}] }}]
"
    );
    let config = Config::parse(&text, "x", &Files).unwrap_or_else(|errors| panic!("{errors}"));
    let headers: Vec<_> = values.iter().map(|it| ("authorization", *it)).collect();
    let identity = config.client.identify(&RequestFacts {
        peer: None,
        headers: &headers[..],
        path: Some("/?user=bob&team=red"),
        now: &|| NOW,
    });
    let attributes = identity.attributes.iter();
    let attributes: Vec<_> = attributes
        .map(|(name, value)| (*name, value.as_ref()))
        .collect();
    let request = Request {
        user: identity.user.as_deref(),
        ..Request::new().attributes(&attributes)
    };
    let lists: Vec<GuardMembers> = config
        .guards
        .iter()
        .map(|guard| match &guard.origin {
            ListOrigin::List(members) => {
                let rules = AddressRules::default();
                GuardMembers::new(&guard.subject, rules, members.iter())
            }
            other => panic!("{other:?}"),
        })
        .collect();
    let list = |nth: usize| lists.get(nth);
    let scratch = &mut GuardScratch::default();
    config.guards.ask(&request, list, scratch, None).outcome
}

#[test]
fn a_second_authorization_header_hid_a_token_from_claim_guards() {
    let good = format!("Bearer {}", token("HS256"));
    let bad = format!("Bearer {}", token("RS256"));
    let basic = "Basic YTpi";
    let by_user = "{ name: g, deny: user, list: [ann] }";
    let by_claim = "{ name: g, deny: 'attr:team', list: [blue] }";
    let many = [&[good.as_str()][..], &[bad.as_str(); 20]].concat();
    for guard in [by_user, by_claim] {
        for values in [
            &[good.as_str()][..],
            &[&good, &good],
            &[&good, &bad],
            &[&bad, &good],
            &[basic, &good],
            &[&good, ""],
            &many,
        ] {
            assert_eq!(guarded(guard, values), GuardOutcome::Refuse(0), "{guard}");
        }
        // A rejected token has no effect.
        for values in [&[bad.as_str(), &bad][..], &[basic, basic], &[]] {
            assert_eq!(guarded(guard, values), GuardOutcome::Pass, "{guard}");
        }
    }
    // A client with several identities is not exempt by one of them.
    for exempts in [
        "{ name: g, allow: user, list: [ann] }",
        "{ name: g, allow: 'attr:team', list: [blue] }",
    ] {
        assert_eq!(guarded(exempts, &[&good]), GuardOutcome::Exempt(0));
        for values in [[good.as_str(), &good], [&good, &bad]] {
            assert_eq!(guarded(exempts, &values), GuardOutcome::Pass, "{exempts}");
        }
    }
}
