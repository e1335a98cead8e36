use super::{DESCRIPTORS_MAX, ENTRIES_MAX, JsonQuestion, QuestionBody};
use tidegate::Descriptor;

/// Reads descriptors and formats them.
fn read(list: &str) -> Result<Vec<String>, String> {
    let text = format!(r#"{{"descriptors": {list}}}"#);
    let question = JsonQuestion::read(text.as_bytes()).map_err(|fault| fault.to_string())?;
    let pairs = question.pairs();
    let descriptors = question.descriptors(&pairs);
    let shown = |it: &Descriptor<'_>| format!("{:?} {:?} {:?}", it.entries, it.hits, it.limit);
    Ok(descriptors.iter().map(shown).collect())
}

#[test]
fn every_part_of_a_request_is_parsed() {
    let list = r#"[
        {"entries": [{"key": "a", "value": "1"}, {"value": "\u0062\"", "key": "b"}]},
        {"hits": 0, "entries": [{"key": "a", "value": ""}], "limit": null},
        {"entries": [{"key": "a", "value": "x"}], "hits": -3,
         "limit": {"period_ms": 1000, "amount": 5}}]"#;
    let expected = [
        r#"[("a", "1"), ("b", "b\"")] AsRequest None"#,
        r#"[("a", "")] Take(0) None"#,
        r#"[("a", "x")] GiveBack(3) Some(LimitOverride { amount: 5, period_us: 1000000 })"#,
    ];
    assert_eq!(read(list).as_deref(), Ok(&expected.map(String::from)[..]));
    assert_eq!(read("[]"), Ok(vec![]));
    assert_eq!(read("null"), Ok(vec![]));
}

#[test]
fn hits_are_integers() {
    let list =
        |hits: &str| format!(r#"[{{"entries": [{{"key": "a", "value": ""}}], "hits": {hits}}}]"#);
    for (hits, expected) in [
        ("7", "Take(7)"),
        ("-0", "Take(0)"),
        ("null", "AsRequest"),
        ("18446744073709551615", "Take(18446744073709551615)"),
        ("-18446744073709551615", "GiveBack(18446744073709551615)"),
    ] {
        let shown = read(&list(hits)).expect(hits);
        assert_eq!(shown, [format!(r#"[("a", "")] {expected} None"#)]);
    }
    for hits in [
        "-1.5",
        "1.5",
        "1e3",
        "-18446744073709551616",
        "\"1\"",
        "true",
    ] {
        let fault = read(&list(hits)).expect_err(hits);
        let start = "descriptors[0].hits: expected a whole number";
        assert!(fault.starts_with(start), "{fault}");
    }
}

#[test]
fn errors_in_entries_name_their_field() {
    for (list, expected) in [
        ("{}", ": expected a list, found an object"),
        ("[1]", "[0]: expected an object, found a number"),
        (
            "[{}]",
            "[0].entries: expected at least one entry, found none",
        ),
        (
            r#"[{"entries": []}]"#,
            "[0].entries: expected at least one entry, found none",
        ),
        (
            r#"[{"entries": [{"key": "a"}]}]"#,
            "[0].entries[0].value: expected a string, found none",
        ),
        (
            r#"[{"entries": [{"value": "a"}]}]"#,
            "[0].entries[0].key: expected a string, found none",
        ),
        (
            r#"[{"entries": [{"key": "", "value": "a"}]}]"#,
            "[0].entries[0].key: expected a name, found ``",
        ),
        (
            r#"[{"entries": [{"key": "a", "key": "a", "value": "a"}]}]"#,
            "[0].entries[0].key: duplicate field",
        ),
        (
            r#"[{"entries": [{"key": 5, "value": "a"}]}]"#,
            "[0].entries[0].key: expected a string, found a number",
        ),
        (
            r#"[{"entries": [{"a": "b"}]}]"#,
            "[0].entries[0].a: unknown field; expected key, value",
        ),
    ] {
        assert_eq!(read(list), Err(format!("descriptors{expected}")), "{list}");
    }
}

#[test]
fn errors_outside_entries_name_their_field() {
    for (rest, expected) in [
        (
            r#""cost": 1"#,
            "cost: unknown field; expected entries, hits, limit",
        ),
        (r#""entries": []"#, "entries: duplicate field"),
        (r#""hits": 1, "hits": null"#, "hits: duplicate field"),
        (
            r#""limit": {"amount": 5}"#,
            "limit.period_ms: expected a whole number, found none",
        ),
        (
            r#""limit": {"period_ms": 5}"#,
            "limit.amount: expected a whole number, found none",
        ),
        (
            r#""limit": {"amount": 1, "period_ms": 0}"#,
            "limit.period_ms: expected from 1 to 18446744073709551 milliseconds",
        ),
        (r#""limit": 5"#, "limit: expected an object, found a number"),
    ] {
        let list = format!(r#"[{{"entries": [{{"key": "a", "value": "b"}}], {rest}}}]"#);
        let expected = format!("descriptors[0].{expected}");
        assert_eq!(read(&list), Err(expected), "{list}");
    }
}

#[test]
fn lists_are_bounded() {
    let list = |count: usize, entries: usize| {
        let entry = r#"{"key": "a", "value": "b"}"#;
        let entries = vec![entry; entries].join(",");
        let one = format!(r#"{{"entries": [{entries}]}}"#);
        format!("[{}]", vec![one; count].join(","))
    };
    let count = |list: &str| read(list).map(|list| list.len());
    assert_eq!(count(&list(DESCRIPTORS_MAX, 1)), Ok(64));
    assert_eq!(count(&list(1, ENTRIES_MAX)), Ok(1));
    assert_eq!(
        count(&list(DESCRIPTORS_MAX + 1, 1)),
        Err("descriptors[64]: more than 64 descriptors".to_owned())
    );
    assert_eq!(
        count(&list(1, ENTRIES_MAX + 1)),
        Err("descriptors[0].entries[32]: more than 32 entries".to_owned())
    );
}

#[test]
fn secrets_are_not_shown_and_requests_are_not_mixed_up() {
    let text = r#"[{"descriptors": [{"entries": [{"key": "api_key", "value": "s3cret"}]}]},
        {"descriptors": [{"entries": [{"key": "b", "value": "2"}]}]}]"#;
    let Ok(QuestionBody::Several(questions)) = QuestionBody::read(text.as_bytes()) else {
        panic!("a list was asked");
    };
    assert!(!format!("{questions:?}").contains("s3cret"));
    let pairs = questions[1].pairs();
    assert_eq!(questions[1].descriptors(&pairs)[0].entries, [("b", "2")]);
}
