//! `MULTI`, `EXEC`, `DISCARD`.

use super::kit::{answer, ask, bulk, decider, laboratory, line};
use crate::resp::harness::RespHarness;

const QUEUED: &str = "+QUEUED\r\n";
const ABORTED: &str = "-EXECABORT Transaction discarded because of previous errors.\r\n";

/// Returns commands in one piece, as clients send them.
fn lines(commands: &[&str]) -> Vec<u8> {
    commands.iter().flat_map(|words| line(words)).collect()
}

#[test]
fn a_failed_transaction_still_took_tokens() {
    // redis-py's `pipeline()`, and `multi()` of ioredis and node-redis, send it like this: in one piece.
    let take = "cl.throttle a 4 1 60";
    let said = answer(&lines(&["MULTI", take, take, "EXEC", take]));
    let expected = format!(
        "+OK\r\n{QUEUED}{QUEUED}*2\r\n\
         *5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:60\r\n\
         *5\r\n:0\r\n:5\r\n:3\r\n:-1\r\n:120\r\n\
         *5\r\n:0\r\n:5\r\n:2\r\n:-1\r\n:180\r\n"
    );
    assert_eq!(said, expected);
}

#[test]
fn transactions_take_tokens_only_at_exec() {
    let (decider, _clock) = decider();
    let connect = || RespHarness::new(decider.clone(), None);
    let take = "cl.throttle a 4 1 60";
    let untouched = "*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n";
    for (end, said) in [
        ("discard", "+OK\r\n"),
        ("reset", "+RESET\r\n"),
        ("quit", "+OK\r\n"),
    ] {
        let mut queueing = connect();
        ask(&mut queueing, &lines(&["multi", take, "tg.check other"]));
        assert_eq!(
            ask(&mut connect(), &line("cl.throttle a 4 1 60 0")),
            untouched
        );
        assert_eq!(ask(&mut queueing, &line(end)), said);
        let after = ask(&mut queueing, &lines(&["exec"]));
        let expected = match end {
            "quit" => "",
            _ => "-ERR EXEC without MULTI\r\n",
        };
        assert_eq!(after, expected, "{end}");
    }
    let mut gone = connect();
    ask(&mut gone, &lines(&["multi", take, "tg.check other"]));
    drop(gone);
    assert_eq!(
        ask(&mut connect(), &line("cl.throttle a 4 1 60 0")),
        untouched
    );
    let check = ask(&mut connect(), &line("tg.check other"));
    assert!(check.contains(":2\r\n"), "one of three was taken: {check}");
}

#[test]
fn an_unqueueable_command_fails_exec_and_takes_nothing() {
    let take = "cl.throttle a 4 1 60";
    for wrong in [
        "nosuch a",
        "echo",
        "client nosuch",
        "multi x",
        "cl.throttle a",
        "cl.throttle a x 1 60",
        "cl.throttle a 1 0 60",
        "cl.throttle a 9223372036854775807 1 1",
        "tg.check api user",
        "tg.check api nosuch x",
    ] {
        let mut laboratory = laboratory();
        let said = ask(
            &mut laboratory,
            &lines(&["multi", take, wrong, take, "exec"]),
        );
        let errors = said.lines().filter(|it| it.starts_with('-')).count();
        assert_eq!(errors, 2, "{wrong}: {said}");
        assert!(
            said.ends_with(&format!("{QUEUED}{ABORTED}")),
            "{wrong}: {said}"
        );
        let after = ask(&mut laboratory, &lines(&["cl.throttle a 4 1 60 0", "exec"]));
        let expected = "*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0\r\n-ERR EXEC without MULTI\r\n";
        assert_eq!(after, expected, "{wrong}");
    }
}

#[test]
fn a_refused_or_failed_command_does_not_affect_the_others() {
    let said = answer(&lines(&[
        "multi",
        "cl.throttle a 0 1 60",
        "cl.throttle a 0 1 60",
        "select 99",
        "tg.check nosuch",
        "ping",
        "exec",
    ]));
    let (_, replies) = said.split_once("QUEUED\r\n*5\r\n").unwrap();
    let decided = "*5\r\n:0\r\n:1\r\n:0\r\n:-1\r\n:60\r\n*5\r\n:1\r\n:1\r\n:0\r\n:60\r\n:60\r\n";
    let rest = replies.strip_prefix(decided).unwrap();
    let rest = rest
        .strip_prefix("-ERR DB index is out of range\r\n")
        .unwrap();
    assert!(
        rest.starts_with("-ERR ") && rest.ends_with("\r\n+PONG\r\n"),
        "{rest}"
    );
}

#[test]
fn misplaced_commands_get_the_message_of_redis() {
    for (commands, expected) in [
        (vec!["exec"], "-ERR EXEC without MULTI\r\n".to_owned()),
        (vec!["discard"], "-ERR DISCARD without MULTI\r\n".to_owned()),
        (vec!["multi", "exec"], "+OK\r\n*0\r\n".to_owned()),
        (
            vec!["multi", "multi", "ping", "exec"],
            format!("+OK\r\n-ERR MULTI calls can not be nested\r\n{QUEUED}*1\r\n+PONG\r\n"),
        ),
        (
            vec!["multi", "watch a", "unwatch", "exec", "unwatch"],
            format!(
                "+OK\r\n-ERR WATCH inside MULTI is not allowed\r\n{QUEUED}*1\r\n+OK\r\n+OK\r\n"
            ),
        ),
        (
            vec!["multi", "ping", "exec x", "exec"],
            format!(
                "+OK\r\n{QUEUED}-EXECABORT Transaction discarded because of: wrong number of \
                 arguments for 'exec' command\r\n-ERR EXEC without MULTI\r\n"
            ),
        ),
    ] {
        assert_eq!(answer(&lines(&commands)), expected, "{commands:?}");
    }
    // `OK` would promise that `EXEC` fails once a key has changed.
    let said = answer(&line("watch a"));
    assert!(said.starts_with("-ERR WATCH is not supported"), "{said}");
}

#[test]
fn an_oversized_transaction_is_rejected_as_a_whole() {
    let long = "x".repeat(60_000);
    for (command, fits) in [
        (line("cl.throttle a 9999 1 60"), 4_096),
        (bulk(&["cl.throttle", &long, "9", "1", "60"]), 4),
    ] {
        let mut laboratory = laboratory();
        ask(&mut laboratory, &line("multi"));
        for _ in 0..fits {
            assert_eq!(ask(&mut laboratory, &command), QUEUED);
        }
        let said = ask(&mut laboratory, &command);
        assert!(
            said.starts_with("-ERR the transaction is too large"),
            "{said}"
        );
        assert_eq!(ask(&mut laboratory, &line("exec")), ABORTED);
        let said = ask(&mut laboratory, &line("cl.throttle a 9999 1 60 0"));
        assert!(
            said.starts_with("*5\r\n:0\r\n:10000\r\n:10000\r\n"),
            "{said}"
        );
    }
}

#[test]
fn a_large_transaction_and_later_commands_reply_in_order() {
    let mut laboratory = laboratory();
    let mut bytes = line("multi");
    bytes.extend(line("cl.throttle a 9999 1 60").repeat(2_999));
    bytes.extend(lines(&["command docs", "exec", "echo behind"]));
    let said = ask(&mut laboratory, &bytes);
    let said = said.strip_prefix("+OK\r\n").unwrap();
    let said = said.strip_prefix(&QUEUED.repeat(3_000)).unwrap();
    let behind = super::properties::one_reply(said.as_bytes()).unwrap();
    assert_eq!(behind, b"$6\r\nbehind\r\n");
    assert!(said.contains(":10000\r\n:7001\r\n"), "the last of 2,999");
}

#[test]
fn the_protocol_within_a_transaction_is_the_one_chosen_before() {
    let said = answer(&lines(&["hello 3", "multi", "tg.check other", "exec"]));
    assert!(
        said.contains(&format!("+OK\r\n{QUEUED}*1\r\n%7\r\n")),
        "{said}"
    );
    let said = answer(&lines(&[
        "multi",
        "tg.check other",
        "hello 3",
        "tg.check other",
        "exec",
    ]));
    assert!(said.contains("*3\r\n*7\r\n"), "{said}");
    assert_eq!(said.matches("%7\r\n").count(), 2, "{said}");
}
