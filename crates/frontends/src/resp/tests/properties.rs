//! For any input, replies are well formed, and splitting the input changes nothing.

use super::kit::{Store, decider};
use crate::resp::harness::RespHarness;
use proptest::prelude::*;

/// Parses one reply independently, and returns the rest.
pub(super) fn one_reply(bytes: &[u8]) -> Option<&[u8]> {
    let (kind, rest) = bytes.split_first()?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let (text, mut rest) = (&rest[..end], &rest[end + 2..]);
    assert!(!text.contains(&b'\r') && !text.contains(&b'\n'));
    let number = || std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    match kind {
        b'+' | b'-' => Some(rest),
        b':' => number().map(|_| rest),
        b'_' => text.is_empty().then_some(rest),
        b'#' => matches!(text, b"t" | b"f").then_some(rest),
        b'$' if number()? == -1 => Some(rest),
        b'$' | b'=' => {
            let len = usize::try_from(number()?).ok()?;
            let (_, behind) = rest.split_at_checked(len)?;
            behind.strip_prefix(b"\r\n")
        }
        b'*' | b'~' | b'%' => {
            let count = number()? * if *kind == b'%' { 2 } else { 1 };
            for _ in 0..count {
                rest = one_reply(rest)?;
            }
            Some(rest)
        }
        _ => None,
    }
}

fn laboratory() -> RespHarness<Store> {
    RespHarness::new(decider().0, None)
}

fn replies(pieces: &[&[u8]]) -> Vec<u8> {
    let mut laboratory = laboratory();
    let mut replies = Vec::new();
    for piece in pieces {
        laboratory.feed(piece, &mut replies);
    }
    replies
}

/// Generates bytes that are often nearly valid.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => proptest::sample::select(vec![
            &b"*1\r\n$4\r\nPING\r\n"[..], b"*5\r\n$11\r\nCL.THROTTLE\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\n1\r\n$1\r\n1\r\n",
            b"hello 3\r\n", b"hello 2\r\n", b"tg.check api ip ::1\r\n", b"command docs\r\n", b"info\r\n",
            b"*", b"$", b"\r\n", b"1", b"-", b"\"", b"'", b"\\x4", b" ", b"cl.throttle k 1 2 3\r\n",
            b"multi\r\n", b"exec\r\n", b"discard\r\n", b"watch k\r\n", b"del k a\r\n", b"pttl k\r\n",
        ]).prop_map(<[u8]>::to_vec),
        1 => proptest::collection::vec(any::<u8>(), 0..20),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_input_gets_complete_replies(bytes in bytes()) {
        let replies = replies(&[&bytes]);
        let mut rest = &replies[..];
        while !rest.is_empty() {
            let shown = String::from_utf8_lossy(rest).into_owned();
            rest = one_reply(rest).unwrap_or_else(|| panic!("not a reply: {shown}"));
        }
    }

    #[test]
    fn any_input_gets_the_same_replies_at_any_split(bytes in bytes(), at in any::<prop::sample::Index>()) {
        let (first, second) = bytes.split_at(at.index(bytes.len() + 1));
        prop_assert_eq!(replies(&[&bytes]), replies(&[first, second]));
    }
}
