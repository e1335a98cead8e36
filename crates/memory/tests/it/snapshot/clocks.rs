//! A snapshot from the future: the clock has gone back between two processes.

use super::{TestStore, read, restart, store, write};
use crate::shop::{MINUTE_US, START, log, narrow, take, wide, window};
use std::time::Duration;
use tidegate_core::{Algorithm, Align, ManualClock, Quota, SharedState, Store, Timestamp};

/// The end of a set's member after a restart is compared with real time, so only a bound is exact.
const HOUR: Duration = Duration::from_secs(3_600);

fn aligned(amount: u64) -> Quota {
    let clock = Algorithm::FixedWindow(Align::Clock);
    let spec = Quota::new(amount, MINUTE_US).algorithm(clock);
    spec.label("aligned").build().unwrap()
}

fn sliding(amount: u64) -> Quota {
    let spec = Quota::new(amount, MINUTE_US).algorithm(Algorithm::SlidingWindow);
    spec.label("sliding").build().unwrap()
}

fn restarted_at(before: &TestStore, at: u64) -> (TestStore, ManualClock) {
    let clock = ManualClock::at(Timestamp::from_micros(at));
    (restart(before, &clock), clock)
}

/// By a second, an hour, and fifty years, as on a machine without a battery.
#[test]
fn a_clock_that_went_back_grants_nothing_and_refuses_for_two_periods_at_most() {
    let kinds = [
        narrow(6),
        wide(6),
        window(6),
        log(6),
        aligned(6),
        sliding(6),
    ];
    for back in [1, 1_000_000, 60 * MINUTE_US, 50 * 365 * 1_440 * MINUTE_US] {
        for quota in &kinds {
            let (one, _clock) = store(100);
            for _ in 0..6 {
                assert!(take(&one, "api", 1, quota).is_allowed());
            }
            let start = START.as_micros() - back;
            let (other, clock) = restarted_at(&one, start);
            let mut granted = 0;
            for second in 0..120 {
                clock.set(Timestamp::from_micros(start + second * 1_000_000));
                granted += u64::from(take(&other, "api", 1, quota).is_allowed());
                // What the limit grants a client that starts with an empty bucket, or with a window
                // that ends at a minute of the clock.
                let is_over = second >= if *quota == aligned(6) { 20 } else { 59 };
                assert!(
                    is_over || granted <= 1 + second / 10,
                    "{granted} {back} {quota:?}"
                );
            }
            clock.set(Timestamp::from_micros(start + 3 * MINUTE_US));
            assert!(
                take(&other, "api", 1, quota).is_allowed(),
                "{back} {quota:?}"
            );
            assert!(granted <= 12, "{granted} {back} {quota:?}");
        }
    }
}

/// A bucket without requests cannot be clamped: its quota is unknown. It must leave all the same.
#[test]
fn buckets_without_requests_leave_a_store_whose_clock_went_back_by_decades() {
    const DAY_US: u64 = 1_440 * MINUTE_US;
    let (one, _clock) = store(100);
    for quota in [narrow(6), wide(6), window(6), log(6)] {
        take(&one, "api", 1, &quota);
    }
    let start = START.as_micros() - 50 * 365 * DAY_US;
    let (other, clock) = restarted_at(&one, start);
    assert_eq!(other.stats().buckets, 4);
    clock.set(Timestamp::from_micros(start + 402 * DAY_US));
    assert_eq!(other.stats().buckets, 0);
}

#[test]
fn time_that_passed_between_two_processes_counts() {
    let (one, clock) = store(100);
    for _ in 0..6 {
        take(&one, "api", 1, &narrow(6));
    }
    let (bytes, _) = write(&one);
    clock.advance_micros(MINUTE_US / 2);
    let (other, _) = read(&bytes, 100, &clock);
    assert_eq!(take(&other, "api", 1, &narrow(6)).remaining, 2);
    clock.advance_micros(MINUTE_US);
    let (third, restored) = read(&bytes, 100, &clock);
    assert_eq!((restored.buckets, restored.expired), (0, 1));
    assert_eq!(take(&third, "api", 1, &narrow(6)).remaining, 5);
}

/// The store's clock alone has gone back: sets have a clock of their own.
#[test]
fn bans_keep_their_length() {
    let (one, _clock) = store(10);
    let sets = one.shared_state().and_then(SharedState::sets).unwrap();
    super::ready(sets.add("bans", &[b"10.0.0.1"], Some(HOUR)));
    let (other, _) = restarted_at(&one, 0);
    let sets = other.shared_state().and_then(SharedState::sets).unwrap();
    let ends = super::ready(sets.ends("bans", 10, HOUR));
    assert!(ends.len() == 1 && ends[0].1 <= HOUR);
}
