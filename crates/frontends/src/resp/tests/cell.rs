//! Compatibility with redis-cell: its README, and the cases of its tests.

use super::kit::{Store, answer, ask, bulk, decider, laboratory, line};
use crate::resp::harness::RespHarness;
use tidegate::{ManualClock, Timestamp};

fn numbers(said: &str) -> Vec<i64> {
    let lines = said
        .strip_prefix("*5\r\n")
        .unwrap_or_else(|| panic!("{said}"));
    lines
        .lines()
        .map(|line| line.strip_prefix(':').unwrap().parse().unwrap())
        .collect()
}

fn throttle(laboratory: &mut RespHarness<Store>, words: &str) -> Vec<i64> {
    numbers(&ask(laboratory, &line(&format!("CL.THROTTLE {words}"))))
}

fn clocked() -> (RespHarness<Store>, ManualClock) {
    let (decider, clock) = decider();
    (RespHarness::new(decider, None), clock)
}

#[test]
fn the_example_of_the_redis_cell_readme() {
    let mut laboratory = laboratory();
    assert_eq!(
        throttle(&mut laboratory, "user123 15 30 60"),
        [0, 16, 15, -1, 2]
    );
    assert_eq!(
        throttle(&mut laboratory, "user123 15 30 60 1"),
        [0, 16, 14, -1, 4]
    );
    assert_eq!(
        throttle(&mut laboratory, "user124 15 30 60 1"),
        [0, 16, 15, -1, 2]
    );
}

/// The cases of `it_rate_limits` in redis-cell 0.5: five at once, then one a second. Times in whole
/// seconds, rounded up like its command rounds them.
#[test]
fn the_cases_of_the_redis_cell_tests() {
    let (mut laboratory, clock) = clocked();
    let start_ms = 1_700_000_000_000;
    for (nth, (at_ms, quantity, limited, remaining, retry_after, reset_after)) in [
        // A quantity larger than the limit never passes.
        (0, 6, 1, 5, -1, 0),
        (0, 1, 0, 4, -1, 1),
        (0, 1, 0, 3, -1, 2),
        (0, 1, 0, 2, -1, 3),
        (0, 1, 0, 1, -1, 4),
        (0, 1, 0, 0, -1, 5),
        (0, 1, 1, 0, 1, 5),
        (3_000, 1, 0, 2, -1, 3),
        (3_100, 1, 0, 1, -1, 4),
        (4_000, 1, 0, 1, -1, 4),
        (8_000, 1, 0, 4, -1, 1),
        (9_500, 1, 0, 4, -1, 1),
        // A quantity of 0 reads without consuming.
        (9_500, 0, 0, 4, -1, 1),
        (9_500, 2, 0, 2, -1, 3),
        (9_500, 5, 1, 2, 3, 3),
    ]
    .into_iter()
    .enumerate()
    {
        clock.set(Timestamp::from_millis(start_ms + at_ms));
        let said = throttle(&mut laboratory, &format!("foo 4 1 1 {quantity}"));
        assert_eq!(
            said,
            [limited, 5, remaining, retry_after, reset_after],
            "case {nth}"
        );
    }
}

/// Its test against a server: one in two seconds.
#[test]
fn the_end_to_end_test_of_redis_cell() {
    let (mut laboratory, clock) = clocked();
    assert_eq!(
        throttle(&mut laboratory, "user123 0 1 2 1"),
        [0, 1, 0, -1, 2]
    );
    assert_eq!(
        throttle(&mut laboratory, "user123 0 1 2 1"),
        [1, 1, 0, 2, 2]
    );
    clock.advance_micros(2_000_000);
    assert_eq!(
        throttle(&mut laboratory, "user123 0 1 2 1"),
        [0, 1, 0, -1, 2]
    );
}

#[test]
fn replies_recorded_from_a_real_redis_cell() {
    let mut laboratory = laboratory();
    for (words, expected) in [
        ("n5 1 1 1 5", [1, 2, 2, -1, 0]),
        ("n6 0 1 2", [0, 1, 0, -1, 2]),
        ("n6 0 1 2", [1, 1, 0, 2, 2]),
        ("n6 0 1 2 0", [0, 1, 0, -1, 2]),
        ("n7 +1 +1 +1", [0, 2, 1, -1, 1]),
        ("n8 01 1 1", [0, 2, 1, -1, 1]),
        ("n11 5 1 60 3", [0, 6, 3, -1, 180]),
        ("n11 5 1 60 3", [0, 6, 0, -1, 360]),
        ("n11 5 1 60 1", [1, 6, 0, 60, 360]),
        ("n11 5 1 60 7", [1, 6, 0, -1, 360]),
    ] {
        assert_eq!(throttle(&mut laboratory, words), expected, "{words}");
    }
    let nameless = ask(&mut laboratory, &bulk(&["cl.throttle", "", "1", "1", "1"]));
    assert_eq!(numbers(&nameless), [0, 2, 1, -1, 1]);
}

#[test]
fn errors_match_redis_cell_exactly() {
    let usage = "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]";
    for (words, message) in [
        (vec!["CL.THROTTLE"], usage),
        (vec!["CL.THROTTLE", "a"], usage),
        (vec!["CL.THROTTLE", "a", "1", "1", "1", "1", "1"], usage),
        (
            vec!["CL.THROTTLE", "a", "x", "1", "1"],
            "Couldn't parse as integer: x",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "y\r\n", "1"],
            "Couldn't parse as integer: y",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "1", "1.5"],
            "Couldn't parse as integer: 1.5",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "1", "1", " 1"],
            "Couldn't parse as integer:  1",
        ),
        (
            vec!["CL.THROTTLE", "a", "", "1", "1"],
            "Couldn't parse as integer: ",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "99999999999999999999", "1"],
            "Couldn't parse as integer: 99999999999999999999",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "0", "1"],
            "Zero rates are not supported",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "1", "0"],
            "Zero rates are not supported",
        ),
        // redis-cell accepts these, with useless results.
        (
            vec!["CL.THROTTLE", "a", "-1", "1", "1"],
            "max_burst must not be negative",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "-1", "1"],
            "count per period must not be negative",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "1", "-1"],
            "period must not be negative",
        ),
        (
            vec!["CL.THROTTLE", "a", "1", "1", "1", "-1"],
            "quantity must not be negative",
        ),
    ] {
        let expected = format!("-Cell error: Store error: {message}\r\n");
        assert_eq!(answer(&bulk(&words)), expected, "{words:?}");
    }
}

#[test]
fn inexact_quotas_are_rejected_with_a_reason() {
    for words in [
        "a 9223372036854775807 1 1",
        "a 1 1 9007199254740993",
        "a 1 999999999999999983 1",
    ] {
        let said = answer(&line(&format!("cl.throttle {words}")));
        assert!(said.starts_with("-ERR cl.throttle: "), "{words}: {said}");
    }
}

#[test]
fn a_key_keeps_its_state_when_its_parameters_change() {
    let mut laboratory = laboratory();
    assert_eq!(throttle(&mut laboratory, "a 9 10 10 6")[..3], [0, 10, 4]);
    // The same rate, a smaller bucket: six are still owed.
    assert_eq!(throttle(&mut laboratory, "a 7 10 10 0")[..3], [0, 8, 2]);
    assert_eq!(throttle(&mut laboratory, "a 9 60 60 1")[..3], [0, 10, 3]);
}

#[test]
fn keys_are_bytes_and_never_confused() {
    let mut laboratory = laboratory();
    let long = "k".repeat(300);
    let other = format!("{long}x");
    for key in [
        "a", "A", "a/b", "a%2Fb", "a b", "{a}", "\u{0}", "ü", &long, &other,
    ] {
        let words = ["cl.throttle", key, "0", "1", "60"];
        assert_eq!(numbers(&ask(&mut laboratory, &bulk(&words)))[0], 0, "{key}");
        assert_eq!(numbers(&ask(&mut laboratory, &bulk(&words)))[0], 1, "{key}");
    }
    let mut replies = Vec::new();
    let bytes = b"*5\r\n$11\r\ncl.throttle\r\n$2\r\n\xff\xfe\r\n$1\r\n0\r\n$1\r\n1\r\n$2\r\n60\r\n";
    laboratory.feed(bytes, &mut replies);
    assert_eq!(replies, b"*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n");
}
