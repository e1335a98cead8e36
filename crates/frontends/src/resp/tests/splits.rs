//! The replies do not depend on how the input is split.

use super::kit::{Store, ask, bulk, decider, line};
use crate::resp::harness::RespHarness;

fn batch() -> Vec<u8> {
    [
        line("CL.THROTTLE user:1 2 1 60"),
        b"PING 'a b'\r\n".to_vec(),
        line("cl.throttle user:1 2 1 60 2"),
        b"*0\r\n\r\n".to_vec(),
        line("CL.THROTTLE user:1 2 1 60"),
        bulk(&["echo", "x\r\n$1\r\ny"]),
        line("hello 3"),
        line("tg.check api ip 192.0.2.1"),
        line("foo a b"),
        line("client getname"),
        bulk(&["echo", &"z".repeat(300)]),
        b"PING\n".to_vec(),
        line("quit"),
        line("ping"),
    ]
    .concat()
}

fn locked() -> RespHarness<Store> {
    RespHarness::new(decider().0, None)
}

#[test]
fn a_batch_split_at_any_byte_gets_the_same_replies() {
    let batch = batch();
    let whole = ask(&mut locked(), &batch);
    assert!(
        whole.starts_with("*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:60\r\n$3\r\na b\r\n"),
        "{whole}"
    );
    assert!(whole.ends_with("+PONG\r\n+OK\r\n"), "{whole}");
    for at in 0..=batch.len() {
        let mut laboratory = locked();
        let (first, second) = batch.split_at(at);
        let said = ask(&mut laboratory, first) + &ask(&mut laboratory, second);
        assert_eq!(said, whole, "split at {at}");
    }
}

#[test]
fn a_batch_sent_byte_by_byte_gets_the_same_replies() {
    let batch = batch();
    let whole = ask(&mut locked(), &batch);
    let mut laboratory = locked();
    let said: String = batch
        .iter()
        .map(|byte| ask(&mut laboratory, &[*byte]))
        .collect();
    assert_eq!(said, whole);
}

#[test]
fn errors_are_the_same_at_any_split() {
    for bytes in [
        &b"*1\r\n$4\r\nPING\r\n*x\r\nPING\r\n"[..],
        b"*2\r\n$3\r\nfoo\r\nbar\r\n",
        b"a \"b\r\nc\r\n",
    ] {
        let whole = ask(&mut locked(), bytes);
        for at in 0..=bytes.len() {
            let mut laboratory = locked();
            let (first, second) = bytes.split_at(at);
            let said = ask(&mut laboratory, first) + &ask(&mut laboratory, second);
            assert_eq!(said, whole, "{:?} at {at}", String::from_utf8_lossy(bytes));
        }
    }
}

#[test]
fn the_largest_command_fits_and_many_at_once_are_all_answered() {
    let echo = |len: usize| bulk(&["echo", &"x".repeat(len)]);
    let head = echo(60_000).len() - 60_000;
    let largest = (64 << 10) - head;
    let mut laboratory = locked();
    for bytes in echo(largest).chunks(1_000) {
        let said = ask(&mut laboratory, bytes);
        assert!(said.is_empty() || said.len() > largest);
    }
    assert!(!laboratory.is_closed());
    assert_eq!(
        ask(&mut locked(), &echo(largest + 1)),
        "-ERR Protocol error: invalid bulk length\r\n"
    );
    let many = line("ping").repeat(100_000);
    assert_eq!(ask(&mut locked(), &many), "+PONG\r\n".repeat(100_000));
}
