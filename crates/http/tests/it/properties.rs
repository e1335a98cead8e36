//! For every decision, the response is well-formed and true.

use crate::kit::AT;
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use sfv::{BareItem, Item, ListEntry, Parser};
use std::collections::BTreeSet;
use tidegate::{
    Algorithm, Decision, LimitSpec, Limiter, ManualClock, MemoryStore, Request, Respond,
};
use tidegate_http::answer::{self, Correlation};

/// All header formats at once.
const TALKATIVE: &str = "{ headers: [x-ratelimit, draft-03, draft-11], reset: delta }";

/// All placeholders, in JSON.
const EVERYTHING: &str = r#"{ headers: [draft-11], content_type: application/json,
    message: '{limit} {correlation_id} {retry_after}',
    body: '{"a":"{policy}{limit}{band}{correlation_id}{message}{type}{title}{now_rfc3339}{reset_rfc3339}","v":{violated_policies},"n":[{status},{capacity},{remaining},{retry_after},{retry_after_ms},{reset},{reset_epoch}]}' }"#;

type Memory = Limiter<MemoryStore<ManualClock>>;

/// Generates limits with one or two bands, under any names.
fn limits() -> impl Strategy<Value = Vec<LimitSpec>> {
    let band = (
        1_u64..200,
        prop::sample::select(vec!["s", "7s", "min", "1500ms", "day"]),
    );
    let bands = prop::collection::vec(band, 1..3);
    let algorithm = prop::sample::select(vec![
        Algorithm::TokenBucket,
        Algorithm::FixedWindow(tidegate::Align::FirstRequest),
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
        Algorithm::BucketedWindow,
    ]);
    let limit = (any::<String>(), bands, algorithm, any::<bool>());
    let limit = limit.prop_map(|(name, bands, algorithm, shadow)| {
        let mut seen = BTreeSet::new();
        let mut spec = LimitSpec::new(name).algorithm(algorithm);
        for (amount, period) in bands {
            if seen.insert(period) {
                spec = spec.band(format!("{amount}/{period}"));
            }
        }
        if shadow { spec.shadow() } else { spec }
    });
    prop::collection::vec(limit, 1..4)
}

/// Returns a limiter with these limits, unless two have the same name.
fn limiter(limits: Vec<LimitSpec>, clock: &ManualClock, settings: &str) -> Option<Memory> {
    let builder = Limiter::builder().clock(clock.clone());
    let builder = builder.respond(tidegate::respond_from_yaml(settings).unwrap());
    limits
        .into_iter()
        .fold(builder, tidegate::LimiterBuilder::limit)
        .build()
        .ok()
}

fn items(headers: &HeaderMap, name: &str) -> Vec<Item> {
    let value = headers[name].to_str().unwrap();
    let list: sfv::List = Parser::new(value)
        .parse()
        .unwrap_or_else(|e| panic!("{e}: {value}"));
    list.into_iter()
        .map(|entry| match entry {
            ListEntry::Item(item) => item,
            ListEntry::InnerList(_) => panic!("a list in {name}: {value}"),
        })
        .collect()
}

fn name(item: &Item) -> String {
    let BareItem::String(name) = &item.bare_item else {
        panic!("not a string: {item:?}")
    };
    name.as_str().to_owned()
}

fn integer(item: &Item, parameter: &str) -> u64 {
    let BareItem::Integer(number) = item.params[parameter] else {
        panic!("no integer {parameter}: {item:?}")
    };
    u64::try_from(i64::from(number)).unwrap()
}

fn number(headers: &HeaderMap, name: &str) -> u64 {
    headers[name].to_str().unwrap().parse().unwrap()
}

/// Compares the header fields with the decision.
fn check_fields(decision: &Decision, headers: &HeaderMap) {
    let Some(binding) = decision.binding() else {
        assert!(
            !headers
                .keys()
                .any(|name| name.as_str().contains("ratelimit"))
        );
        return;
    };
    for value in headers.values() {
        assert!(!value.is_empty() && value.to_str().is_ok(), "{value:?}");
    }
    let policies = items(headers, "ratelimit-policy");
    let names: BTreeSet<String> = policies.iter().map(name).collect();
    assert_eq!(names.len(), policies.len(), "names differ: {names:?}");
    let state = items(headers, "ratelimit");
    let [state] = state.as_slice() else {
        panic!("one band is reported: {state:?}")
    };
    let of_state = policies
        .iter()
        .find(|item| name(item) == name(state))
        .unwrap();
    assert_eq!(integer(of_state, "q"), binding.capacity());
    assert!(integer(of_state, "w") > 0);
    assert_eq!(integer(state, "r"), binding.remaining());
    assert_eq!(number(headers, "ratelimit-remaining"), binding.remaining());
    assert_eq!(number(headers, "ratelimit-reset"), integer(state, "t"));

    let exact_us = binding.wait().as_micros();
    let told = answer::retry_after_seconds(decision);
    match exact_us {
        _ if decision.is_allowed() => assert_eq!(told, None),
        None => assert_eq!(told, None),
        Some(exact_us) => {
            let told = told.unwrap();
            assert!(told * 1_000_000 >= exact_us && told * 1_000_000 < exact_us + 1_000_000);
            assert!(told >= integer(state, "t"));
            assert!(
                told <= number(headers, "x-ratelimit-reset"),
                "full after it passes"
            );
        }
    }
}

/// Compares the body with the header fields.
fn check_body(body: &[u8], headers: &HeaderMap) {
    let json: serde_json::Value = serde_json::from_slice(body)
        .unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(body)));
    let names: BTreeSet<String> = if headers.contains_key("ratelimit-policy") {
        let policies = items(headers, "ratelimit-policy");
        policies.iter().map(name).collect()
    } else {
        BTreeSet::new()
    };
    let violated = json.get("violated-policies").or(json.get("v")).unwrap();
    for violated in violated.as_array().unwrap() {
        assert!(
            names.contains(violated.as_str().unwrap()),
            "{violated} of {names:?}"
        );
    }
}

/// Returns a correlation id as sent by a client.
fn correlation(sent: &[u8]) -> Correlation {
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_bytes(sent) {
        headers.insert("x-correlation-id", value);
    }
    Correlation::of(&headers, Respond::standard())
}

proptest! {
    #[test]
    fn header_fields_are_well_formed_and_correct(
        limits in limits(),
        steps in prop::collection::vec((0_u64..250, 0_u64..3_000_000), 1..20),
    ) {
        let clock = ManualClock::at(AT);
        let Some(limiter) = limiter(limits, &clock, TALKATIVE) else {
            return Ok(());
        };
        for (cost, micros) in steps {
            clock.advance_micros(micros);
            let decision = limiter.check_now(&Request::new().cost(cost)).unwrap();
            let mut headers = HeaderMap::new();
            answer::inform(&decision, &mut headers);
            check_fields(&decision, &headers);
            if decision.is_allowed() {
                continue;
            }
            let answer = answer::refuse(&decision, &Correlation::made());
            check_fields(&decision, answer.headers());
            check_body(answer.body(), answer.headers());
            prop_assert_eq!(
                answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned()),
                answer::retry_after_seconds(&decision).map(|wait| wait.to_string())
            );
        }
    }

    #[test]
    fn a_json_body_is_valid_json_with_any_values(
        limits in limits(),
        cost in 1_u64..500,
        sent in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let Some(limiter) = limiter(limits, &ManualClock::at(AT), EVERYTHING) else {
            return Ok(());
        };
        let correlation = correlation(&sent);
        for _ in 0..4 {
            let decision = limiter.check_now(&Request::new().cost(cost)).unwrap();
            if !decision.is_allowed() {
                let answer = answer::refuse(&decision, &correlation);
                check_body(answer.body(), answer.headers());
                prop_assert_eq!(&answer.headers()["x-correlation-id"], correlation.as_str());
            }
            let answer = answer::unavailable(Some(decision.respond()), &correlation);
            check_body(answer.body(), answer.headers());
        }
    }
}

/// Generates fragments that often form JSON.
fn fragments() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\"",
        "\\",
        "\\\\",
        "\\u00",
        "[",
        "]",
        "{\"k\":",
        "}",
        ":",
        ",",
        "1",
        "-",
        "1e",
        ".",
        "null",
        " ",
        "{title}",
        "{limit}",
        "{correlation_id}",
        "{detail}",
        "{status}",
        "{capacity}",
        "{remaining}",
        "{retry_after}",
        "{reset_epoch}",
        "{violated_policies}",
    ]);
    let pieces = prop::collection::vec(piece, 1..5).prop_map(|pieces| pieces.concat());
    (pieces, 0..4).prop_map(|(text, around)| match around {
        0 => text,
        1 => format!("\"{text}\""),
        2 => format!("[{text}]"),
        _ => format!("{{\"k\":{text}}}"),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(tidegate_testkit::cases(4_000)))]

    #[test]
    fn an_accepted_json_template_always_renders_json(body in fragments()) {
        let settings = serde_json::json!({ "content_type": "application/json", "body": body });
        let Ok(respond) = tidegate::respond_from_yaml(&settings.to_string()) else {
            return Ok(());
        };
        let limit = LimitSpec::new("a\"\\\u{1}").band("3/s").band("10/min");
        let builder = Limiter::builder().clock(ManualClock::at(AT));
        let limiter = builder.respond(respond.clone()).limit(limit).build().unwrap();
        let id = correlation(b"a-b");
        let check = |cost| limiter.check_now(&Request::new().cost(cost)).unwrap();
        prop_assert!(check(2).is_allowed());
        for answer in [
            answer::refuse(&check(2), &id),
            answer::refuse(&check(11), &id),
            answer::unavailable(Some(&respond), &id),
        ] {
            let parsed = serde_json::from_slice::<serde_json::Value>(answer.body());
            prop_assert!(parsed.is_ok(), "{body}: {}", String::from_utf8_lossy(answer.body()));
        }
    }
}
