//! A whole conversation in the Redis protocol: any bytes in, replies out, with a store in this process.
//!
//! How: whatever was sent, what is answered is a row of whole replies, by a reader of this file alone;
//! and splitting the bytes changes nothing but times.

use tidegate::{AnyStore, Config, Limiter, ManualClock, MemoryStore, Timestamp};
use tidegate_server::decider::Decider;
use tidegate_server::resp::laboratory::Laboratory;

const POLICIES: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, missing: skip, rate: 1/min burst 2 }
      - { name: per-user, key: user, missing: skip, rate: 10/s }
";

fuzz_target!(|input: (bool, u16, &[u8])| {
    let (has_password, at, bytes) = input;
    let password = has_password.then_some("hunter2");
    let at = usize::from(at) % (bytes.len() + 1);
    let whole = said(password, &[bytes]);
    let (first, second) = bytes.split_at(at);
    assert_eq!(whole, said(password, &[first, second]));
    let mut rest = &whole[..];
    while !rest.is_empty() {
        rest = one_reply(rest, 0).expect("a whole reply");
    }
});

fn said(password: Option<&str>, pieces: &[&[u8]]) -> Vec<u8> {
    let parse = || Config::from_yaml(POLICIES).expect("it is sound");
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let memory = MemoryStore::builder()
        .clock(clock.clone())
        .max_keys(1_024)
        .build();
    let limiter = Limiter::builder()
        .config(parse())
        .clock(clock)
        .build_with(AnyStore::Memory(memory))
        .expect("it is sound");
    let decider = Decider::new(limiter, &parse().policies);
    let mut laboratory = Laboratory::new(decider, password);
    let mut replies = Vec::new();
    for piece in pieces {
        laboratory.feed(piece, &mut replies);
    }
    replies
}

/// What is behind the first reply; `None` if that is not one.
fn one_reply(bytes: &[u8], depth: usize) -> Option<&[u8]> {
    assert!(depth < 8, "nothing is nested so deep");
    let (kind, rest) = bytes.split_first()?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let (text, mut rest) = (&rest[..end], &rest[end + 2..]);
    if text.contains(&b'\r') || text.contains(&b'\n') {
        return None;
    }
    let number = || std::str::from_utf8(text).ok()?.parse::<i64>().ok();
    match kind {
        b'+' | b'-' => Some(rest),
        b':' => number().map(|_| rest),
        b'_' => text.is_empty().then_some(rest),
        b'#' => matches!(text, b"t" | b"f").then_some(rest),
        b'$' if number()? == -1 => Some(rest),
        b'$' | b'=' => {
            let (_, behind) = rest.split_at_checked(usize::try_from(number()?).ok()?)?;
            behind.strip_prefix(b"\r\n")
        }
        b'*' | b'~' | b'%' => {
            let count = number()? * if *kind == b'%' { 2 } else { 1 };
            for _ in 0..count {
                rest = one_reply(rest, depth + 1)?;
            }
            Some(rest)
        }
        _ => None,
    }
}
