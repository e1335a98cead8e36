//! Conversations with a store in memory, on a manual clock.

use crate::decider::Decider;
use crate::resp::harness::RespHarness;
use tidegate::{AnyStore, Config, Limiter, ManualClock, MemoryStore, Timestamp};

const POLICIES: &str = "
policies:
  - name: api
    limits:
      - { name: per-client, key: ip, missing: skip, rate: 1/min burst 2 }
      - { name: per-user, key: user, missing: skip, rate: 10/s }
      - { name: keyed, match: [{ path: /keyed }], key: 'attr:team', missing: refuse, rate: 1/s }
  - name: other
    limits:
      - { name: all, rate: 3/min }
  - name: edge
    limits:
      - { name: per-name, match: { descriptor: [user] }, key: descriptor:user, rate: 3/min }
";

pub(super) type Store = AnyStore<ManualClock>;

/// Returns a decider and its clock, which stops until it is moved.
pub(super) fn decider() -> (Decider<Store>, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_millis(1_700_000_000_000));
    let parse = || Config::from_yaml(POLICIES).unwrap();
    let memory = MemoryStore::builder().clock(clock.clone()).build();
    let limiter = Limiter::builder()
        .config(parse())
        .clock(clock.clone())
        .build_with(AnyStore::Memory(memory))
        .unwrap();
    (Decider::new(limiter, &parse().policies), clock)
}

pub(super) fn laboratory() -> RespHarness<Store> {
    RespHarness::new(decider().0, None)
}

/// Returns the replies on a new connection to a new server.
pub(super) fn answer(bytes: &[u8]) -> String {
    let mut laboratory = laboratory();
    ask(&mut laboratory, bytes)
}

pub(super) fn ask(laboratory: &mut RespHarness<Store>, bytes: &[u8]) -> String {
    let mut replies = Vec::new();
    laboratory.feed(bytes, &mut replies);
    String::from_utf8(replies).unwrap()
}

/// Returns a command in the form that clients send.
pub(super) fn bulk(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n{word}\r\n", word.len()).into_bytes());
    }
    bytes
}

/// Returns a command of words separated by blanks, in the form that clients send.
pub(super) fn line(words: &str) -> Vec<u8> {
    bulk(&words.split(' ').collect::<Vec<_>>())
}
