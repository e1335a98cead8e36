//! `TG.CHECK`.

use super::kit::{answer, ask, bulk, laboratory, line};

#[test]
fn a_decision_is_a_list_or_a_map() {
    let mut laboratory = laboratory();
    let check = line("tg.check api ip 192.0.2.1");
    assert_eq!(
        ask(&mut laboratory, &check),
        "*7\r\n:1\r\n$10\r\nper-client\r\n$13\r\n1/min burst 2\r\n:1\r\n:0\r\n:60000\r\n$5\r\nstore\r\n"
    );
    ask(&mut laboratory, &check);
    ask(&mut laboratory, &line("hello 3"));
    assert_eq!(
        ask(&mut laboratory, &check),
        "%7\r\n$7\r\nallowed\r\n#f\r\n$5\r\nlimit\r\n$10\r\nper-client\r\n$4\r\nband\r\n\
         $13\r\n1/min burst 2\r\n$9\r\nremaining\r\n:0\r\n$14\r\nretry_after_ms\r\n:60000\r\n\
         $8\r\nreset_ms\r\n:120000\r\n$10\r\ndecided_by\r\n$5\r\nstore\r\n"
    );
}

#[test]
fn checks_that_never_pass_and_checks_without_a_matching_limit() {
    let never = "tg.check api ip 192.0.2.1 cost 3";
    let nothing = "tg.check api path /x";
    let mut laboratory = laboratory();
    let said = ask(&mut laboratory, &line(never));
    assert!(said.contains("\r\n:2\r\n:-1\r\n:0\r\n"), "{said}");
    let none = "*7\r\n:1\r\n$-1\r\n$-1\r\n:-1\r\n:0\r\n:0\r\n$5\r\nstore\r\n";
    assert_eq!(ask(&mut laboratory, &line(nothing)), none);
    ask(&mut laboratory, &line("hello 3"));
    let said = ask(&mut laboratory, &line(never));
    assert!(said.contains("retry_after_ms\r\n_\r\n"), "{said}");
    let said = ask(&mut laboratory, &line(nothing));
    assert!(
        said.contains("limit\r\n_\r\n") && said.contains("remaining\r\n_\r\n"),
        "{said}"
    );
}

#[test]
fn every_field_reaches_the_policy_in_upper_and_lower_case() {
    let mut laboratory = laboratory();
    let said = ask(&mut laboratory, &line("TG.CHECK api USER ann Cost 4"));
    assert!(
        said.contains("per-user") && said.contains(":6\r\n"),
        "{said}"
    );
    let said = ask(
        &mut laboratory,
        &line("tg.check api PATH /keyed attr:team red"),
    );
    assert!(said.contains("keyed"), "{said}");
    let said = ask(&mut laboratory, &line("tg.check api path /keyed"));
    assert!(
        said.starts_with("*7\r\n:0\r\n$5\r\nkeyed\r\n$-1\r\n"),
        "{said}"
    );
    // An empty policy stands for the first.
    let said = ask(&mut laboratory, &bulk(&["tg.check", "", "user", "bob"]));
    assert!(said.contains("per-user"), "{said}");
    let all = "tg.check other ip ::1 user a api_key b method GET host h path / route r header:X-A 1 \
               header:X-A 2 attr:a 1 attr:b 2 cost 0";
    assert!(ask(&mut laboratory, &line(all)).starts_with("*7\r\n:1\r\n$3\r\nall\r\n"));
}

#[test]
fn errors_of_a_check_are_reported() {
    for (words, expected) in [
        (
            "tg.check api ip 192.0.2",
            "ip: `192.0.2` is not an IP address",
        ),
        (
            "tg.check api cost x",
            "cost: expected a whole number, found `x`",
        ),
        (
            "tg.check api cost -1",
            "cost: expected a whole number, found `-1`",
        ),
        (
            "tg.check api cost +1",
            "cost: expected a whole number, found `+1`",
        ),
        ("tg.check api user a user b", "user: duplicate field"),
        (
            "tg.check api attr:a 1 attr:a 1",
            "attr:a: duplicate attribute",
        ),
        (
            "tg.check api foo x",
            "unknown field `foo`; expected ip, user, api_key, method, host, path, route, \
             cost, descriptors, header:NAME, attr:NAME",
        ),
        (
            "tg.check nosuch",
            "unknown policy `nosuch`; expected `api`, `other`, `edge`",
        ),
    ] {
        assert_eq!(
            answer(&line(words)),
            format!("-ERR {expected}\r\n"),
            "{words}"
        );
    }
    let many = "user".to_owned() + &" header:x 1".repeat(257);
    let said = answer(&line(&format!(
        "tg.check api {}",
        many.strip_prefix("user ").unwrap()
    )));
    assert_eq!(said, "-ERR more than 256 fields\r\n");
    let mut replies = Vec::new();
    let bytes = b"*4\r\n$8\r\ntg.check\r\n$3\r\napi\r\n$4\r\nuser\r\n$1\r\n\xff\r\n";
    laboratory().feed(bytes, &mut replies);
    assert_eq!(replies, b"-ERR user: not valid UTF-8\r\n");
}

/// Returns a check of the policy with descriptors.
fn described(json: &str) -> Vec<u8> {
    bulk(&["tg.check", "edge", "descriptors", json])
}

#[test]
fn descriptors_use_the_json_of_the_http_api() {
    let mut laboratory = laboratory();
    let ann = r#"[{"entries": [{"key": "user", "value": "ann"}], "hits": 2}]"#;
    let said = ask(&mut laboratory, &described(ann));
    assert!(
        said.starts_with("*7\r\n:1\r\n$8\r\nper-name\r\n$5\r\n3/min\r\n:1\r\n:0\r\n"),
        "{said}"
    );
    let said = ask(&mut laboratory, &described(ann));
    assert!(said.starts_with("*7\r\n:0\r\n$8\r\nper-name\r\n"), "{said}");
    // A refund is available again, and all descriptors of a check are decided atomically.
    let back = r#"[{"entries": [{"key": "user", "value": "ann"}], "hits": -1}]"#;
    ask(&mut laboratory, &described(back));
    let both = r#"[{"entries": [{"key": "user", "value": "ann"}], "hits": 2},
        {"entries": [{"key": "user", "value": "bob"}], "hits": 4}]"#;
    let said = ask(&mut laboratory, &described(both));
    assert!(said.starts_with("*7\r\n:0\r\n"), "{said}");
    let said = ask(&mut laboratory, &described(ann));
    assert!(said.starts_with("*7\r\n:1\r\n"), "{said}");
    let none = "*7\r\n:1\r\n$-1\r\n$-1\r\n:-1\r\n:0\r\n:0\r\n$5\r\nstore\r\n";
    for nothing in ["[]", "null"] {
        assert_eq!(ask(&mut laboratory, &described(nothing)), none);
    }
}

#[test]
fn errors_in_descriptors_name_their_position() {
    for (json, expected) in [
        ("", ": expected a list, found the end (character 1)"),
        ("{}", ": expected a list, found an object (character 1)"),
        (
            r#"[{"entries": []}]"#,
            "[0].entries: expected at least one entry, found none (character 2)",
        ),
        (
            "[{entries: []}]",
            "[0]: expected a name in double quotes, found something that is not JSON (character 3)",
        ),
        (
            "[] []",
            ": expected nothing more, found a list (character 4)",
        ),
        (
            r#"[{"entries": [{"key": "ü", "value": 1}]}]"#,
            "[0].entries[0].value: expected a string, found a number (character 37)",
        ),
    ] {
        let said = answer(&described(json));
        assert_eq!(said, format!("-ERR descriptors{expected}\r\n"), "{json}");
    }
    let one = r#"{"entries": [{"key": "user", "value": "ann"}]}"#;
    let many = format!("[{}]", vec![one; 65].join(","));
    let said = answer(&described(&many));
    let expected = "-ERR descriptors[64]: more than 64 descriptors (character ";
    assert!(said.starts_with(expected), "{said}");
    // Even if the first is empty.
    let twice = ["tg.check", "edge", "descriptors", "[]", "Descriptors", "[]"];
    let said = answer(&bulk(&twice));
    assert_eq!(said, "-ERR descriptors: duplicate field\r\n");
    let limit = r#"[{"entries": [{"key": "a", "value": "b"}],
        "limit": {"amount": 18446744073709551615, "period_ms": 1}}]"#;
    let said = answer(&described(limit));
    assert!(said.starts_with("-ERR "), "{said}");
}
