//! Redis's replies, byte for byte. A test outside the program compares them with a real Redis.

use super::kit::{answer, ask, bulk, laboratory, line};

#[test]
fn protocol_errors_get_the_redis_message_and_close() {
    let long = |head: &str| (head.to_owned() + &"1".repeat(70_000)).into_bytes();
    let rows: Vec<(Vec<u8>, &str)> = vec![
        (b"*\r\n".to_vec(), "invalid multibulk length"),
        (b"*a\r\n".to_vec(), "invalid multibulk length"),
        (
            b"*+1\r\n$4\r\nPING\r\n".to_vec(),
            "invalid multibulk length",
        ),
        (
            b"*01\r\n$4\r\nPING\r\n".to_vec(),
            "invalid multibulk length",
        ),
        (
            b"*1 \r\n$4\r\nPING\r\n".to_vec(),
            "invalid multibulk length",
        ),
        (b"*1\n$4\r\nPING\r\n".to_vec(), "invalid multibulk length"),
        (b"*1025\r\n".to_vec(), "invalid multibulk length"),
        (b"*2147483648\r\n".to_vec(), "invalid multibulk length"),
        (
            b"*99999999999999999999\r\n".to_vec(),
            "invalid multibulk length",
        ),
        (b"*1\r\n4\r\n".to_vec(), "expected '$', got '4'"),
        (b"*1\r\n\r\n".to_vec(), "expected '$', got ' '"),
        (b"*1\r\n\xff\r\n".to_vec(), "expected '$', got '?'"),
        (b"*1\r\n$-1\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$x\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$04\r\nPING\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$65536\r\n".to_vec(), "invalid bulk length"),
        (b"*1\r\n$536870913\r\n".to_vec(), "invalid bulk length"),
        (long("*"), "too big mbulk count string"),
        (long("*1\r\n$"), "too big bulk count string"),
        (long("PING "), "too big inline request"),
        (b"ping \"a\r\n".to_vec(), "unbalanced quotes in request"),
        (b"ping \"a\"b\r\n".to_vec(), "unbalanced quotes in request"),
        (b"ping 'a\r\n".to_vec(), "unbalanced quotes in request"),
    ];
    for (bytes, message) in rows {
        let mut laboratory = laboratory();
        let said = ask(&mut laboratory, &bytes);
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(40)]).into_owned();
        assert_eq!(
            said,
            format!("-ERR Protocol error: {message}\r\n"),
            "{shown}"
        );
        assert!(laboratory.is_closed(), "{shown}");
        assert_eq!(ask(&mut laboratory, b"PING\r\n"), "", "{shown}");
    }
}

#[test]
fn commands_are_accepted_in_every_form_of_redis() {
    for (bytes, expected) in [
        (&b"PING\r\n"[..], "+PONG\r\n"),
        (b"PING\n", "+PONG\r\n"),
        (b"\r\n\r\nPING\r\n", "+PONG\r\n"),
        (b"  ping \t a  \r\n", "$1\r\na\r\n"),
        (b"ping 'a b'\r\n", "$3\r\na b\r\n"),
        (b"ping \"a\\x41\\n\\q\"\r\n", "$4\r\naA\nq\r\n"),
        (b"ping 'it\\'s'\r\n", "$4\r\nit's\r\n"),
        (b"ping a\"b c\"\r\n", "$4\r\nab c\r\n"),
        (b"ping ''\r\n", "$0\r\n\r\n"),
        (b"*0\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n"),
        (b"*-1\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n"),
        (
            b"*1\r\n$4\r\nPINGxx*1\r\n$4\r\nPING\r\n",
            "+PONG\r\n+PONG\r\n",
        ),
        (b"*1\rX$4\r\nPING\r\n", "+PONG\r\n"),
        (b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", "$0\r\n\r\n"),
    ] {
        assert_eq!(
            answer(bytes),
            expected,
            "{:?}",
            String::from_utf8_lossy(bytes)
        );
    }
}

#[test]
fn unknown_commands_get_the_message_of_redis() {
    let unknown = |name: &str, arguments: &str| {
        format!("-ERR unknown command '{name}', with args beginning with: {arguments}\r\n")
    };
    let x = |count| "x".repeat(count);
    for (words, expected) in [
        (vec![""], unknown("", "")),
        (vec!["foo"], unknown("foo", "")),
        (vec!["foo", "a", "b\r\nc"], unknown("foo", "'a' 'b  c' ")),
        (
            vec!["FoO", &x(200), "y"],
            unknown("FoO", &format!("'{}' ", x(128))),
        ),
        (vec![&x(200), "a"], unknown(&x(128), "'a' ")),
        (
            vec!["foo", &x(100), &x(100), "z"],
            unknown("foo", &format!("'{}' '{}' ", x(100), x(25))),
        ),
    ] {
        assert_eq!(answer(&bulk(&words)), expected);
    }
}

#[test]
fn a_wrong_number_of_arguments_gets_the_message_of_redis() {
    let wrong = |name: &str| format!("-ERR wrong number of arguments for '{name}' command\r\n");
    for (words, name) in [
        ("ping a b", "ping"),
        ("ECHO", "echo"),
        ("select", "select"),
        ("auth", "auth"),
        ("reset x", "reset"),
        ("client", "client"),
        ("client setname", "client|setname"),
        ("client getname x", "client|getname"),
        ("command count x", "command|count"),
        ("config", "config"),
        ("config get", "config|get"),
        ("tg.check", "tg.check"),
        ("del", "del"),
        ("exists", "exists"),
        ("ttl", "ttl"),
        ("pttl a b", "pttl"),
        ("type a b", "type"),
        ("tg.check api user", "tg.check"),
    ] {
        assert_eq!(answer(&line(words)), wrong(name), "{words}");
    }
    for (words, of, name) in [
        ("client foo", "CLIENT", "foo"),
        ("CLIENT FOO x", "CLIENT", "FOO"),
        ("command foo", "COMMAND", "foo"),
        ("config set a b", "CONFIG", "set"),
    ] {
        let expected = format!("-ERR unknown subcommand '{name}'. Try {of} HELP.\r\n");
        assert_eq!(answer(&line(words)), expected, "{words}");
    }
}

#[test]
fn connection_commands_reply_as_in_redis() {
    for (words, expected) in [
        ("echo x", "$1\r\nx\r\n"),
        ("select 0", "+OK\r\n"),
        ("select 1", "-ERR DB index is out of range\r\n"),
        ("select -1", "-ERR DB index is out of range\r\n"),
        (
            "select a",
            "-ERR value is not an integer or out of range\r\n",
        ),
        (
            "select 99999999999",
            "-ERR value is out of range, value must between -2147483648 and 2147483647\r\n",
        ),
        ("reset", "+RESET\r\n"),
        ("client id", ":1\r\n"),
        ("client getname", "$-1\r\n"),
        ("client setname abc", "+OK\r\n"),
        ("client no-evict on", "+OK\r\n"),
        ("client no-touch OFF", "+OK\r\n"),
        ("client no-evict x", "-ERR syntax error\r\n"),
        ("client setinfo lib-name redis-py", "+OK\r\n"),
        ("client setinfo LIB-VER 8.1.0", "+OK\r\n"),
        ("client setinfo x y", "-ERR Unrecognized option 'x'\r\n"),
        ("command count", ":27\r\n"),
        ("command list x", "-ERR syntax error\r\n"),
        ("command docs nosuch", "*0\r\n"),
        ("command info nosuch", "*1\r\n$-1\r\n"),
        ("config get nosuch", "*0\r\n"),
        ("config get save", "*2\r\n$4\r\nsave\r\n$0\r\n\r\n"),
        ("info nosuch", "$0\r\n\r\n"),
    ] {
        assert_eq!(answer(&line(words)), expected, "{words}");
    }
    let spaced = bulk(&["client", "setname", "a b"]);
    let bad = "-ERR Client names cannot contain spaces, newlines or special characters.\r\n";
    assert_eq!(answer(&spaced), bad);
}

#[test]
fn hello_selects_the_protocol_and_reset_restores_it() {
    let mut laboratory = laboratory();
    let hello = ask(&mut laboratory, &line("hello 3 setname zz"));
    let version = env!("CARGO_PKG_VERSION");
    let expected = format!(
        "%7\r\n$6\r\nserver\r\n$8\r\ntidegate\r\n$7\r\nversion\r\n${}\r\n{version}\r\n\
         $5\r\nproto\r\n:3\r\n$2\r\nid\r\n:1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
         $4\r\nrole\r\n$6\r\nmaster\r\n$7\r\nmodules\r\n*0\r\n",
        version.len()
    );
    assert_eq!(hello, expected);
    assert_eq!(
        ask(&mut laboratory, &line("client getname")),
        "$2\r\nzz\r\n"
    );
    assert_eq!(
        ask(&mut laboratory, &line("config get save")),
        "%1\r\n$4\r\nsave\r\n$0\r\n\r\n"
    );
    assert_eq!(ask(&mut laboratory, &line("info nosuch")), "=4\r\ntxt:\r\n");
    assert_eq!(
        ask(&mut laboratory, &line("command info nosuch")),
        "*1\r\n_\r\n"
    );
    assert_eq!(ask(&mut laboratory, &line("reset")), "+RESET\r\n");
    assert_eq!(ask(&mut laboratory, &line("client getname")), "$-1\r\n");
    assert!(ask(&mut laboratory, &line("hello")).starts_with("*14\r\n"));
}

#[test]
fn an_invalid_hello_changes_nothing() {
    for (words, expected) in [
        ("hello 4", "-NOPROTO unsupported protocol version\r\n"),
        ("hello 1", "-NOPROTO unsupported protocol version\r\n"),
        (
            "hello x",
            "-ERR Protocol version is not an integer or out of range\r\n",
        ),
        ("hello 3 foo", "-ERR Syntax error in HELLO option 'foo'\r\n"),
        (
            "hello 3 auth a",
            "-ERR Syntax error in HELLO option 'auth'\r\n",
        ),
        (
            "hello 3 setname",
            "-ERR Syntax error in HELLO option 'setname'\r\n",
        ),
    ] {
        let mut laboratory = laboratory();
        assert_eq!(ask(&mut laboratory, &line(words)), expected, "{words}");
        assert_eq!(
            ask(&mut laboratory, &line("client getname")),
            "$-1\r\n",
            "{words}"
        );
    }
}

#[test]
fn quit_is_answered_and_later_commands_are_not() {
    let mut laboratory = laboratory();
    let bytes = [line("quit"), line("ping")].concat();
    assert_eq!(ask(&mut laboratory, &bytes), "+OK\r\n");
    assert!(laboratory.is_closed());
}

#[test]
fn a_browser_request_gets_no_reply() {
    for bytes in [
        &b"POST / HTTP/1.1\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    ] {
        let mut laboratory = laboratory();
        let said = ask(&mut laboratory, bytes);
        assert!(laboratory.is_closed());
        assert!(!said.contains("Host") && !said.contains("POST"), "{said}");
    }
}

#[test]
fn all_commands_are_shown_in_either_protocol() {
    for protocol in ["2", "3"] {
        let mut laboratory = laboratory();
        ask(&mut laboratory, &line(&format!("hello {protocol}")));
        for words in [
            "command",
            "command info",
            "command docs",
            "command list",
            "command help",
            "client help",
            "client info",
            "config help",
            "config get *",
            "info",
        ] {
            let said = ask(&mut laboratory, &line(words));
            let rest = super::properties::one_reply(said.as_bytes());
            assert_eq!(rest, Some(&b""[..]), "{protocol} {words}: {said}");
        }
        let said = ask(&mut laboratory, &line("command docs cl.throttle"));
        assert!(
            said.contains("max_burst") && said.contains("optional"),
            "{said}"
        );
    }
}
