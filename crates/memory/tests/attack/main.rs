//! Memory exhaustion: unique keys at 50,000 a second for a virtual minute, into a store of 100,000;
//! a tenth of each in debug builds, which are slow. A program of its own, for it measures what the
//! process has in memory.
#![expect(
    clippy::unwrap_used,
    reason = "the helpers of tests fail by panicking, as tests do"
)]

#[path = "../it/shop.rs"]
#[expect(dead_code, reason = "most of it is for other tests")]
mod shop;

use shop::{ask, name, narrow, store, take, wide};
use tidegate_core::{ManualClock, Quota};
use tidegate_memory::MemoryStore;

const SCALE: u64 = if cfg!(debug_assertions) { 10 } else { 1 };
const RATE: u64 = 50_000 / SCALE;
const ROOM: u64 = 100_000 / SCALE;
const SECONDS: u64 = 60;

/// What this process has in memory, in bytes.
fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split(' ')
        .nth(1)
        .and_then(|it| it.parse::<usize>().ok());
    pages.unwrap_or(0) * 4096
}

/// Attacks for a minute, and asks on the victims' behalf all along; how many of theirs passed.
fn attack(
    store: &MemoryStore<ManualClock>,
    clock: &ManualClock,
    attacked: &Quota,
    victims: &Quota,
) -> u64 {
    let mut passed = 0;
    for unique in 0..RATE * SECONDS {
        take(store, "login", unique, attacked);
        if unique % (RATE / 10) == 0 {
            clock.advance_micros(100_000);
            for victim in 0..100 {
                passed += u64::from(take(store, "api", victim, victims).is_allowed());
            }
        }
    }
    passed
}

/// Victims are limited to 10 an hour and have used them up; a minute of flood gives them nothing.
#[test]
fn those_who_were_limited_stay_limited_under_a_flood_of_unique_keys() {
    let hourly = |refundable: bool| {
        Quota::new(10, 36_000_000_000)
            .refundable(refundable)
            .build()
            .unwrap()
    };
    for (attacked, victims) in [
        (narrow(5), hourly(false)),
        (wide(5), hourly(true)),
        (narrow(5), hourly(true)),
    ] {
        let (store, clock) = store(usize::try_from(ROOM).unwrap());
        for _ in 0..10 {
            for victim in 0..100 {
                assert!(take(&store, "api", victim, &victims).is_allowed());
            }
        }
        let before = resident();
        assert_eq!(attack(&store, &clock, &attacked, &victims), 0);
        let stats = store.stats();
        assert!(stats.overflowed > 0, "the flood was more than fits");
        assert!(
            stats.record_bytes as u64 <= ROOM * 192 * 2,
            "{} bytes",
            stats.record_bytes
        );
        let grown = resident().saturating_sub(before);
        assert!(grown < (64 << 20), "{grown} bytes more");
        // And the flood is over: newcomers are served again once it has been forgotten.
        clock.advance_micros(120_000_000);
        let newcomer = name("login", u64::MAX);
        assert!(
            store
                .decide_one(&ask(&newcomer, "login", &attacked))
                .is_allowed()
        );
    }
}

/// The flood as a whole gets what the keys that fit get, and one bucket's worth for all the others.
#[test]
fn a_flood_gets_no_more_than_the_places_there_are() {
    let (store, _clock) = store(1_000);
    let quota = narrow(1);
    let admitted = (0..200_000)
        .filter(|unique| take(&store, "login", *unique, &quota).is_allowed())
        .count();
    // Sets of 64 slots, twice as many as keys, rounded up to a power of two.
    assert!(admitted <= 2_048 + 1, "{admitted}");
    assert!(admitted >= 1_000, "{admitted}");
}
