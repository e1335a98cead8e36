//! `DEL`, `EXISTS`, `TYPE`, `TTL` and `PTTL` of the keys of `CL.THROTTLE`.

use super::kit::{Store, ask, bulk, decider, laboratory, line};
use crate::resp::harness::RespHarness;

fn all(laboratory: &mut RespHarness<Store>, commands: &[&str]) -> Vec<String> {
    let mut said = |words: &&str| ask(laboratory, &line(words)).replace("\r\n", " ");
    commands
        .iter()
        .map(|words| said(words).trim_end().to_owned())
        .collect()
}

/// The parameters of a call are not part of the bucket's name. These differ as much as possible.
const QUOTAS: [&str; 4] = [
    "0 1 60",
    // A fraction of a microsecond for each unit.
    "99999 7000003 60",
    // Ticks of milliseconds and of seconds.
    "10 1000003 86400000",
    "5 3 5000000000",
];

#[test]
fn a_key_lives_until_its_bucket_is_full_for_any_quota() {
    for quota in QUOTAS {
        let (decider, clock) = decider();
        let mut laboratory = RespHarness::new(decider, None);
        let key = ["exists a b", "type a", "ttl a", "pttl a"];
        let absent = [":0", "+none", ":-2", ":-2"];
        assert_eq!(all(&mut laboratory, &key), absent, "{quota}");
        let taken = ask(&mut laboratory, &line(&format!("cl.throttle a {quota}")));
        assert!(taken.starts_with("*5\r\n:0\r\n"), "{taken}");
        let reset: u64 = taken
            .trim_end()
            .rsplit(':')
            .next()
            .unwrap()
            .parse()
            .unwrap();
        let said = all(&mut laboratory, &key);
        assert_eq!(
            said[..3],
            [":1".to_owned(), "+string".to_owned(), format!(":{reset}")]
        );
        let left_ms: u64 = said[3].trim_start_matches(':').parse().unwrap();
        assert_eq!(left_ms.div_ceil(1_000), reset, "{quota}");
        clock.advance_micros(left_ms * 1_000);
        assert_eq!(all(&mut laboratory, &key), absent, "{quota}");
    }
}

#[test]
fn a_deleted_key_starts_full_for_any_quota() {
    for quota in QUOTAS {
        let mut laboratory = laboratory();
        let throttle = format!("cl.throttle a {quota}");
        let first = all(&mut laboratory, &[&throttle]);
        all(&mut laboratory, &[&throttle]);
        let del = ["del a", "del a", "exists a"];
        assert_eq!(all(&mut laboratory, &del), [":1", ":0", ":0"], "{quota}");
        assert_eq!(all(&mut laboratory, &[&throttle]), first, "{quota}");
    }
}

#[test]
fn several_keys_are_counted_as_redis_counts_them() {
    let mut laboratory = laboratory();
    for key in ["a", "b", "c d"] {
        ask(
            &mut laboratory,
            &bulk(&["cl.throttle", key, "0", "1", "60"]),
        );
    }
    let said = all(
        &mut laboratory,
        &["exists a a b nosuch", "del a a nosuch b", "unlink a b"],
    );
    assert_eq!(said, [":3", ":2", ":0"]);
    assert_eq!(ask(&mut laboratory, &bulk(&["UNLINK", "c d"])), ":1\r\n");
}

#[test]
fn key_commands_see_only_cl_throttle_keys() {
    let mut laboratory = laboratory();
    ask(&mut laboratory, &line("tg.check other"));
    for key in [
        "other/all/global",
        "~cl/throttle/a",
        "../other/all/global",
        "global",
    ] {
        let said = ask(&mut laboratory, &bulk(&["del", key]));
        assert_eq!(said, ":0\r\n", "{key}");
    }
    let said = ask(&mut laboratory, &line("tg.check other"));
    assert!(
        said.contains(":1\r\n:0\r\n"),
        "one of three is left: {said}"
    );
}

#[test]
fn commands_about_keys_run_in_order_within_a_transaction() {
    let mut laboratory = laboratory();
    let take = "cl.throttle a 0 1 60";
    let said = all(
        &mut laboratory,
        &["multi", take, "ttl a", "del a", take, take, "exec"],
    );
    let exec = "*5 *5 :0 :1 :0 :-1 :60 :60 :1 *5 :0 :1 :0 :-1 :60 *5 :1 :1 :0 :60 :60";
    assert_eq!(said.last().unwrap(), exec);
}
