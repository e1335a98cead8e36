//! Check requests are read by Tidegate's reader and, if both can, by `serde_json`, and compared.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate::CostMap;
use tidegate_policy::unit::UNITS_MAX;

/// Returns the fields that were read, in their order, without going by way of `Request`.
fn summary(question: &JsonQuestion<'_>) -> Value {
    let texts = |texts: &NamedTexts<'_>| -> Vec<Value> {
        let pairs = texts.iter();
        pairs.map(|(name, value)| json!([name, value])).collect()
    };
    json!({
        "policy": question.policy, "ip": question.ip.map(|ip| ip.to_string()),
        "user": question.user, "api_key": question.api_key, "method": question.method,
        "host": question.host, "path": question.path, "route": question.route,
        "headers": texts(&question.headers), "attributes": texts(&question.attributes),
        "cost": question.cost.as_ref().map_or(json!(1), cost),
    })
}

fn cost(cost: &CostMap<'_>) -> Value {
    match cost {
        CostMap::Number(number) => json!(number),
        CostMap::Units(units) => units.iter().cloned().collect(),
    }
}

fn refusal(text: &str) -> String {
    let fault = JsonQuestion::read(text.as_bytes()).expect_err(text);
    format!("{}: {fault}", fault.column(text.as_bytes()))
}

#[test]
fn every_field_of_a_request_is_parsed() {
    let text = r#" { "policy": "api", "ip": "2001:db8::1", "user": "ann", "api_key": "k\u0031",
        "method": "GET", "host": "example.com", "path": "/a\/b?c=d", "route": "r",
        "headers": {"X-A": "1", "x-b": ["2", "3"], "X-C": null, "X-D": []},
        "attributes": {"kind": "event", "none": null}, "cost": 7 } "#;
    let question = JsonQuestion::read(text.as_bytes()).expect("a valid check request");
    let expected = json!({
        "policy": "api", "ip": "2001:db8::1", "user": "ann", "api_key": "k1", "method": "GET",
        "host": "example.com", "path": "/a/b?c=d", "route": "r",
        "headers": [["X-A", "1"], ["x-b", "2"], ["x-b", "3"]],
        "attributes": [["kind", "event"]], "cost": 7,
    });
    assert_eq!(summary(&question), expected);
    let pairs = question.pairs();
    let request = question.request(&pairs);
    assert_eq!((request.policy, request.user), (Some("api"), Some("ann")));
    assert_eq!((request.api_key, request.method), (Some("k1"), Some("GET")));
    assert_eq!(
        (request.host, request.route),
        (Some("example.com"), Some("r"))
    );
    assert_eq!(
        (request.path, request.cost.number()),
        (Some("/a/b?c=d"), Some(7))
    );
    assert_eq!(request.headers, [("X-A", "1"), ("x-b", "2"), ("x-b", "3")]);
    assert_eq!(request.attributes, [("kind", "event")]);
}

#[test]
fn guards_saw_only_the_first_of_two_values_of_an_attribute() {
    let yaml = "attributes: { project: { header: X-Project }, tier: { header: X-Tier } }";
    let client = tidegate::client_from_yaml(yaml).expect("a valid config");
    let text = r#"{ "headers": {"x-project": ["bob", "eve"], "x-tier": "gold"},
        "attributes": {"tier": "free", "kind": ""} }"#;
    let question = JsonQuestion::read(text.as_bytes()).expect("a valid check request");
    let learnt = question.learn(&client, &|| 0);
    let pairs = question.pairs_with(learnt.as_ref());
    let attributes = question.request(&pairs).attributes;
    let expected = [
        ("tier", "free"),
        ("kind", ""),
        ("project", "bob"),
        ("project", "eve"),
    ];
    assert_eq!(attributes, expected);
}

#[test]
fn null_equals_an_absent_field() {
    let nulls = r#"{"policy":null,"ip":null,"user":null,"api_key":null,"method":null,"host":null,
        "path":null,"route":null,"headers":null,"attributes":null,"cost":null,"at_ms":null,
        "descriptors":null}"#;
    let question = JsonQuestion::read(nulls.as_bytes()).expect("nulls are allowed");
    let empty = JsonQuestion::read(b"{}").expect("nothing need be known");
    assert_eq!(summary(&question), summary(&empty));
    assert_eq!(summary(&empty)["cost"], 1);
}

#[test]
fn errors_name_their_field() {
    for (text, expected) in [
        (
            r#"{"user": 5}"#,
            "10: user: expected a string, found a number",
        ),
        (
            r#"{"ip": "1.2.3.4:80"}"#,
            "8: ip: `1.2.3.4:80` is not an IP address",
        ),
        (r#"{"ip": ""}"#, "8: ip: `` is not an IP address"),
        (
            r#"{"ip": "01.2.3.4"}"#,
            "8: ip: `01.2.3.4` is not an IP address",
        ),
        (
            r#"{"cost": -1}"#,
            "10: cost: expected a whole number from 0 to 18446744073709551615, found -1",
        ),
        (
            r#"{"cost": 1.5}"#,
            "10: cost: expected a whole number from 0 to 18446744073709551615, found 1.5",
        ),
        (
            r#"{"cost": true}"#,
            "10: cost: expected a whole number, found true",
        ),
        (
            r#"{"headers": {"X-Tier": ["a", 1]}}"#,
            "30: headers.X-Tier[1]: expected a string, found a number",
        ),
        (
            r#"{"headers": {"a": {}}}"#,
            "19: headers.a: expected a string or a list of strings, found an object",
        ),
        (
            r#"{"headers": []}"#,
            "13: headers: expected an object, found a list",
        ),
        (
            r#"{"attributes": {"a": "1", "a": "2"}}"#,
            "32: attributes.a: duplicate attribute",
        ),
        (r#"{"user": "a", "user": "b"}"#, "23: user: duplicate field"),
        (r#"{"at_ms": 5}"#, "1: at_ms: this field is only for traces"),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
    let unknown = refusal(r#"{"api-key": "secret"}"#);
    assert!(unknown.starts_with("13: api-key: unknown field; expected policy, ip"));
    assert!(!unknown.contains("secret"));
}

#[test]
fn invalid_json_is_rejected_at_its_position() {
    for (text, expected) in [
        (
            r#"{"user": "a",}"#,
            "14: expected a name in double quotes, found `}`",
        ),
        (
            r#"{"user": "a"} x"#,
            "15: expected nothing more, found something that is not JSON",
        ),
        (r#"{"user" "a"}"#, "9: expected `:`, found a string"),
        (
            r#"{"user": "a" "b""#,
            "14: expected `,` or `}`, found a string",
        ),
        (r#"{"user": "a"#, "12: user: this string is not closed"),
        ("[]", "1: expected an object, found a list"),
        ("", "1: expected an object, found the end"),
        ("{'a': 1}", "2: expected a name in double quotes, found `'`"),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}

#[test]
fn a_trace_needs_its_time() {
    let mut question = JsonQuestion::default();
    let at_ms = question
        .read_at(br#"{"at_ms": 17, "user": "a"}"#)
        .expect("a valid line");
    assert_eq!((at_ms, question.user.as_deref()), (17, Some("a")));
    for text in [r#"{"user": "a"}"#, r#"{"at_ms": null}"#] {
        let fault = JsonQuestion::default()
            .read_at(text.as_bytes())
            .expect_err("no time");
        assert!(
            fault.to_string().starts_with("at_ms: expected a time"),
            "{fault}"
        );
    }
}

#[test]
fn lists_are_bounded() {
    let list = |len: usize| format!("[{}]", vec!["{}"; len].join(","));
    for len in [0, 1, LIST_MAX] {
        let text = list(len);
        match QuestionBody::read(text.as_bytes()).expect("a list") {
            QuestionBody::Several(several) => assert_eq!(several.len(), len),
            QuestionBody::One(_) => panic!("a list was asked"),
        }
    }
    let fault = |text: &str| {
        QuestionBody::read(text.as_bytes())
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        fault(&list(LIST_MAX + 1)),
        "[100]: more than 100 check requests in one list"
    );
    assert_eq!(
        fault(r#"[{}, {"cost": "1"}]"#),
        "[1].cost: expected a whole number, found a string"
    );
    let many = vec!["\"x\""; PAIRS_MAX + 1].join(",");
    assert_eq!(
        fault(&format!(r#"{{"headers": {{"a": [{many}]}}}}"#)),
        "headers.a[256]: more than 256 of them"
    );
    assert!(matches!(
        QuestionBody::read(b" {} "),
        Ok(QuestionBody::One(_))
    ));
}

#[test]
fn secrets_are_not_shown() {
    let question =
        JsonQuestion::read(br#"{"api_key": "s3cret", "headers": {"Authorization": "s3cret"}}"#);
    assert!(!format!("{:?}", question.expect("a valid line")).contains("s3cret"));
}

/// Generates any JSON, with names that are often those of fields.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "192\\.0\\.2\\.[0-9]|\\PC{0,6}|[\"\\\\\n\u{1f600}/]{0,4}".prop_map(Value::from),
    ];
    let name = "ip|user|path|cost|headers|attributes|at_ms|policy|[a-zü\"\\\\]{0,3}";
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(name, inner, 0..5)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Returns the meaning of a check request from a tree of `serde_json`; `None` if it is invalid.
fn by_tree(value: &Value) -> Option<Value> {
    let object = value.as_object()?;
    let mut expected = summary(&JsonQuestion::default());
    for (name, value) in object {
        if value.is_null() && expected.get(name).is_some() {
            continue;
        }
        let texts = |many: bool| -> Option<Value> {
            let mut pairs = Vec::new();
            for (name, value) in value.as_object()? {
                match value {
                    Value::Null => {}
                    Value::String(value) => pairs.push(json!([name, value])),
                    Value::Array(values) if many => {
                        for value in values {
                            pairs.push(json!([name, value.as_str()?]));
                        }
                    }
                    _ => return None,
                }
            }
            Some(pairs.into())
        };
        let read = match name.as_str() {
            "ip" => json!(value.as_str()?.parse::<IpAddr>().ok()?.to_string()),
            "cost" => match value.as_object() {
                Some(units) if units.len() > UNITS_MAX => return None,
                Some(units) if units.values().all(Value::is_u64) => value.clone(),
                Some(_) => return None,
                None => json!(value.as_u64()?),
            },
            "headers" => texts(true)?,
            "attributes" => texts(false)?,
            "at_ms" if value.is_null() => continue,
            known if expected.get(known).is_some() => json!(value.as_str()?),
            _ => return None,
        };
        expected[name] = read;
    }
    Some(expected)
}

#[test]
fn a_cost_without_units_equals_its_parsed_json_tree() {
    for text in [
        r#"{"cost": {}}"#,
        r#"{"cost": {"tokens": 8, "requests": 0}}"#,
    ] {
        let tree = serde_json::from_str(text).expect("valid JSON");
        let question = JsonQuestion::read(text.as_bytes()).expect("a valid check request");
        assert_eq!(Some(summary(&question)), by_tree(&tree), "{text}");
    }
}

proptest! {
    #[test]
    fn a_check_request_equals_its_parsed_json_tree(value in any_json(), pretty: bool) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
        let text = text.expect("a tree can be written");
        let read = JsonQuestion::read(text.as_bytes()).ok().map(|question| summary(&question));
        prop_assert_eq!(read, by_tree(&value), "{}", text);
        let mut reader = JsonReader::new(text.as_bytes()).expect("UTF-8");
        prop_assert!(reader.skip().and_then(|()| reader.end()).is_ok());
    }

    #[test]
    fn json_is_accepted_exactly_as_by_serde(text in "[\\[\\]{},:\"\\\\untrefals0-9.eE+ -]{0,24}") {
        let skip = |text: &str| {
            let mut reader = JsonReader::new(text.as_bytes())?;
            reader.skip()?;
            reader.end()
        };
        let by_serde = serde_json::from_str::<serde::de::IgnoredAny>(&text);
        prop_assert_eq!(skip(&text).is_ok(), by_serde.is_ok());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        drop(QuestionBody::read(&bytes));
        drop(JsonQuestion::default().read_at(&bytes));
    }
}

#[test]
fn a_cost_is_a_number_or_a_map_of_units() {
    for (text, units) in [
        (r#"{"cost": {}}"#, &[][..]),
        (
            r#"{"cost": {"tokens": 800, "microusd": 0}}"#,
            &[("tokens", 800), ("microusd", 0)],
        ),
        (
            r#"{"cost": {"to\u006bens": 18446744073709551615}}"#,
            &[("tokens", u64::MAX)],
        ),
        (
            r#"{"cost": {"a":1,"b":2,"c":3,"d":4,"e":5}}"#,
            &[("a", 1), ("b", 2), ("c", 3), ("d", 4), ("e", 5)],
        ),
    ] {
        let question = JsonQuestion::read(text.as_bytes()).expect(text);
        let pairs = question.pairs();
        let cost = question.request(&pairs).cost;
        assert_eq!(cost.units().collect::<Vec<_>>(), units, "{text}");
    }
    let many: Vec<String> = (0..1_000).map(|nth| format!(r#""u{nth}": 1"#)).collect();
    let many = format!(r#"{{"cost": {{{}}}}}"#, many.join(", "));
    let fault = JsonQuestion::read(many.as_bytes()).expect_err("a thousand units");
    assert_eq!(fault.to_string(), "cost.u16: more than 16 units");
    for (text, expected) in [
        (
            r#"{"cost": {"tokens": -1}}"#,
            "21: cost.tokens: expected a whole number from 0 to 18446744073709551615, found -1",
        ),
        (
            r#"{"cost": {"tokens": 1.5}}"#,
            "21: cost.tokens: expected a whole number from 0 to 18446744073709551615, found 1.5",
        ),
        (
            r#"{"cost": {"tokens": 18446744073709551616}}"#,
            "21: cost.tokens: expected a whole number from 0 to 18446744073709551615, found 18446744073709551616",
        ),
        (
            r#"{"cost": {"tokens": "1"}}"#,
            "21: cost.tokens: expected a whole number, found a string",
        ),
        (
            r#"{"cost": {"tokens": null}}"#,
            "21: cost.tokens: expected a whole number, found null",
        ),
        (
            r#"{"cost": {"tokens": 1, "tokens": 1}}"#,
            "34: cost.tokens: duplicate unit",
        ),
        (
            r#"{"cost": [1]}"#,
            "10: cost: expected a whole number, found a list",
        ),
    ] {
        assert_eq!(refusal(text), expected, "{text}");
    }
}
