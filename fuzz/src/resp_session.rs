//! A whole session of the Redis protocol: any bytes in, replies out, with an in-memory store.
//!
//! How: for any input the output is a sequence of whole replies, as parsed by an independent
//! reader; and splitting the bytes changes nothing but times.

use tidegate::{AnyStore, Config, Limiter, ManualClock, MemoryStore, Timestamp};
use tidegate_frontends::decider::Decider;
use tidegate_frontends::resp::harness::RespHarness;

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
    let whole = replies(password, &[bytes]);
    let (first, second) = bytes.split_at(at);
    assert_eq!(whole, replies(password, &[first, second]));
    let mut rest = &whole[..];
    while !rest.is_empty() {
        rest = one_reply(rest, 0).expect("a whole reply");
    }
});

fn replies(password: Option<&str>, pieces: &[&[u8]]) -> Vec<u8> {
    let parse = || Config::from_yaml(POLICIES).expect("a valid config");
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let memory = MemoryStore::builder()
        .clock(clock.clone())
        .max_keys(1_024)
        .build();
    let limiter = Limiter::builder()
        .config(parse())
        .clock(clock)
        .build_with(AnyStore::Memory(memory))
        .expect("a valid config");
    let decider = Decider::new(limiter, &parse().policies);
    let mut laboratory = RespHarness::new(decider, password);
    let mut replies = Vec::new();
    for piece in pieces {
        laboratory.feed(piece, &mut replies);
    }
    replies
}

/// Returns the bytes after the first reply; `None` if it is invalid.
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
