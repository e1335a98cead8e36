//! A frontend with a password.

use super::kit::{Store, ask, decider, line};
use crate::resp::harness::RespHarness;

fn locked() -> RespHarness<Store> {
    RespHarness::new(decider().0, Some("hunter2"))
}

const NO: &str = "-NOAUTH Authentication required.\r\n";
const WRONG: &str = "-WRONGPASS invalid username-password pair or user is disabled.\r\n";

#[test]
fn unauthenticated_clients_can_only_authenticate() {
    for words in [
        "ping",
        "ping a b",
        "command",
        "info",
        "client id",
        "select 0",
        "echo x",
        "cl.throttle a 1 1 1",
        "cl.throttle",
        "tg.check api",
        "config get save",
        "multi",
        "del a",
        "ttl a",
    ] {
        assert_eq!(ask(&mut locked(), &line(words)), NO, "{words}");
    }
    // Redis replies like this before login too.
    let said = ask(&mut locked(), &line("foo"));
    assert!(said.starts_with("-ERR unknown command 'foo'"), "{said}");
    let said = ask(&mut locked(), &line("echo"));
    assert!(said.starts_with("-ERR wrong number"), "{said}");
    assert_eq!(ask(&mut locked(), &line("reset")), "+RESET\r\n");
    assert_eq!(ask(&mut locked(), &line("quit")), "+OK\r\n");
}

#[test]
fn only_the_password_authenticates() {
    for words in [
        "auth hunter",
        "auth hunter22",
        "auth bob hunter2",
        "auth default no",
    ] {
        let mut laboratory = locked();
        assert_eq!(ask(&mut laboratory, &line(words)), WRONG, "{words}");
        assert_eq!(ask(&mut laboratory, &line("ping")), NO, "{words}");
    }
    assert_eq!(
        ask(&mut locked(), &line("auth a b c")),
        "-ERR syntax error\r\n"
    );
    for words in ["auth hunter2", "auth default hunter2"] {
        let mut laboratory = locked();
        let both = [line(words), line("ping")].concat();
        assert_eq!(ask(&mut laboratory, &both), "+OK\r\n+PONG\r\n", "{words}");
        assert_eq!(ask(&mut laboratory, &line("auth no")), WRONG);
        assert_eq!(
            ask(&mut laboratory, &line("ping")),
            "+PONG\r\n",
            "still logged in"
        );
        let after = [line("reset"), line("ping")].concat();
        assert_eq!(ask(&mut laboratory, &after), format!("+RESET\r\n{NO}"));
    }
}

#[test]
fn hello_authenticates_or_explains_how() {
    for words in ["hello", "hello 3", "hello 3 setname x"] {
        let said = ask(&mut locked(), &line(words));
        assert!(
            said.starts_with("-NOAUTH HELLO must be called with"),
            "{said}"
        );
    }
    assert_eq!(ask(&mut locked(), &line("hello 3 auth default no")), WRONG);
    assert_eq!(
        ask(&mut locked(), &line("hello 4")),
        "-NOPROTO unsupported protocol version\r\n"
    );
    let mut laboratory = locked();
    let said = ask(&mut laboratory, &line("hello 3 auth default hunter2"));
    assert!(said.starts_with("%7\r\n"), "{said}");
    assert_eq!(ask(&mut laboratory, &line("ping")), "+PONG\r\n");
}

#[test]
fn auth_without_a_password_gets_the_message_of_redis() {
    let mut open = super::kit::laboratory();
    let said = ask(&mut open, &line("auth x"));
    assert!(
        said.starts_with("-ERR AUTH <password> called without any password"),
        "{said}"
    );
    assert_eq!(ask(&mut open, &line("auth default x")), "+OK\r\n");
    assert_eq!(ask(&mut open, &line("auth bob x")), WRONG);
    assert_eq!(ask(&mut open, &line("hello 3 auth bob x")), WRONG);
    assert_eq!(ask(&mut open, &line("ping")), "+PONG\r\n");
}

#[test]
fn unauthenticated_clients_have_small_bounds() {
    for (bytes, message) in [
        (&b"*11\r\n"[..], "unauthenticated multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (
            b"*2\r\n$4\r\nauth\r\n$16385\r\n",
            "unauthenticated bulk length",
        ),
        (b"*2\r\n$4\r\nauth\r\n$536870913\r\n", "invalid bulk length"),
    ] {
        let mut laboratory = locked();
        let said = ask(&mut laboratory, bytes);
        assert_eq!(said, format!("-ERR Protocol error: {message}\r\n"));
        assert!(laboratory.is_closed());
    }
    for bytes in [&b"*10\r\n"[..], b"*2\r\n$4\r\nauth\r\n$16384\r\n"] {
        let mut laboratory = locked();
        assert_eq!(ask(&mut laboratory, bytes), "");
        assert!(!laboratory.is_closed());
    }
    let mut laboratory = locked();
    let known = [line("auth hunter2"), b"*11\r\n".to_vec()].concat();
    assert_eq!(ask(&mut laboratory, &known), "+OK\r\n");
    assert!(!laboratory.is_closed());
}
