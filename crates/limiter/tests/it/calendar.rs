//! Windows of the calendar.

use crate::failure::CuttableStore;
use crate::skewed::SkewedStore;
use std::time::Duration;
use tidegate::{
    Config, DecidedBy, Decision, LimitSpec, Limiter, ManualClock, MemoryStore, Request,
    SettleState, Store, Timestamp,
};
use tidegate_testkit::laws::block_on;

/// 2026-01-20T12:00Z.
const JANUARY_20: u64 = 1_768_910_400_000;

/// 2026-02-01T00:00Z.
const FEBRUARY: u64 = 1_769_904_000_000;

const HOUR_MS: u64 = 3_600_000;

fn policy(limit: &str) -> String {
    format!(
        "policies: [{{ name: api, reserve: 10min, limits: [{{ name: x, key: user, {limit} }}] }}]"
    )
}

fn limiter(clock: &ManualClock, limit: &str) -> Limiter<MemoryStore<ManualClock>> {
    let builder = Limiter::builder().clock(clock.clone());
    let builder = builder.yaml(&policy(limit)).expect("a valid config");
    builder.build().expect("a limiter")
}

fn check<S: Store>(limiter: &Limiter<S>, cost: u64) -> Decision {
    let request = Request::new().user("ann").cost(cost);
    block_on(limiter.check(&request)).expect("a decision")
}

fn passes<S: Store>(limiter: &Limiter<S>, cost: u64) -> bool {
    check(limiter, cost).is_allowed()
}

fn at(clock: &ManualClock, ms: u64) {
    clock.set(Timestamp::from_millis(ms));
}

#[test]
fn another_time_zone_grants_no_window_twice() {
    for amount in [5, 50_000] {
        let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
        let month = format!("rate: {amount}/month");
        let limiter = limiter(&clock, &month);
        let west = Config::from_yaml(&policy(&format!("{month}, time_zone: America/Los_Angeles")));
        assert!(passes(&limiter, amount));
        limiter.reload(west.unwrap()).unwrap();
        let refused = check(&limiter, 1);
        let wait = refused.binding().unwrap().retry_after().unwrap();
        assert_eq!(
            wait,
            Duration::from_millis(FEBRUARY + 8 * HOUR_MS - JANUARY_20)
        );
        // In UTC the month is over.
        at(&clock, FEBRUARY + HOUR_MS);
        assert!(!passes(&limiter, 1));
        at(&clock, FEBRUARY + 8 * HOUR_MS);
        assert!(passes(&limiter, amount));
        // Back in UTC: what was charged in Los Angeles' February counts in the one of UTC.
        limiter
            .reload(Config::from_yaml(&policy(&month)).unwrap())
            .unwrap();
        assert!(!passes(&limiter, 1));
    }
}

#[test]
fn a_subject_that_was_silent_after_a_change_of_its_anchor_got_the_window_twice() {
    for amount in [5, 50_000] {
        let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
        let limiter = limiter(&clock, &format!("rate: {amount}/month"));
        assert!(passes(&limiter, amount));
        let anchored = policy(&format!("rate: {amount}/month, anchor: 15"));
        limiter
            .reload(Config::from_yaml(&anchored).unwrap())
            .unwrap();
        // The month that was charged is over, the one from 15 January is not.
        at(&clock, FEBRUARY + HOUR_MS);
        assert!(!passes(&limiter, 1));
        at(&clock, FEBRUARY + 14 * 24 * HOUR_MS);
        assert!(passes(&limiter, amount));
    }
}

#[test]
fn usage_before_a_moved_window_does_not_count() {
    let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
    let limiter = limiter(&clock, "rate: 5/month");
    assert!(passes(&limiter, 5));
    at(&clock, JANUARY_20 + 120 * HOUR_MS);
    let anchored = Config::from_yaml(&policy("rate: 5/month, anchor: 25")).unwrap();
    limiter.reload(anchored).unwrap();
    assert!(passes(&limiter, 5), "charged before the 25th");
    assert!(!passes(&limiter, 1));
}

#[test]
fn other_bands_of_the_limit_use_its_algorithm() {
    let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
    let limiter = limiter(&clock, "bands: [2/s burst 4, 6/month]");
    assert!(passes(&limiter, 4));
    assert!(!passes(&limiter, 1), "the bucket is empty");
    at(&clock, JANUARY_20 + 1_000);
    let last = check(&limiter, 2);
    let band = last.binding().unwrap();
    assert_eq!((band.band(), band.remaining()), (Some("2/s burst 4"), 0));
    at(&clock, JANUARY_20 + 10_000);
    let refused = check(&limiter, 1);
    assert_eq!(refused.binding().unwrap().band(), Some("6/month"));
}

#[test]
fn a_reservation_is_settled_in_its_window_alone() {
    let minute = 60_000;
    for (after_ms, actual, left) in [
        // In January, the difference is refunded or charged.
        (2 * minute, 2, 8),
        (2 * minute, 7, 3),
        // In February, neither changes anything.
        (5 * minute, 2, 10),
        (5 * minute, 7, 10),
    ] {
        let clock = ManualClock::at(Timestamp::from_millis(FEBRUARY - 3 * minute));
        let limiter = limiter(&clock, "bands: [10/month, 99/h burst 99], overdraft: 5");
        let ann = Request::new().user("ann");
        let reserved = block_on(limiter.reserve(&ann.cost(4), None)).unwrap();
        at(&clock, FEBRUARY - 3 * minute + after_ms);
        let settled = block_on(limiter.commit(reserved.id().unwrap(), actual)).unwrap();
        assert_eq!(settled.state(), SettleState::Settled);
        let again = block_on(limiter.commit(reserved.id().unwrap(), actual)).unwrap();
        assert_eq!(again.state(), SettleState::Already);
        let tested = block_on(limiter.test(&ann)).unwrap();
        let remaining: Vec<u64> = tested.applied().map(|band| band.remaining()).collect();
        assert_eq!(remaining[0], left, "{after_ms} {actual}");
        // The other band is settled in any case.
        assert!((99 - actual..=99).contains(&remaining[1]), "{remaining:?}");
    }
}

#[test]
fn a_decision_is_refunded_in_its_window_alone() {
    let clock = ManualClock::at(Timestamp::from_millis(FEBRUARY - 1_000));
    let limiter = limiter(&clock, "rate: 3/month, refundable: true");
    let early = check(&limiter, 2);
    assert!(block_on(limiter.refund_decision(&early)).unwrap());
    let late = check(&limiter, 3);
    assert!(late.is_allowed(), "two were refunded");
    at(&clock, FEBRUARY);
    assert!(passes(&limiter, 2));
    block_on(limiter.refund_decision(&late)).unwrap();
    assert!(!passes(&limiter, 2), "that month is over");
}

#[test]
fn callers_with_wrong_clocks_send_the_request_again() {
    let clock = ManualClock::at(Timestamp::from_millis(JANUARY_20));
    let store = CuttableStore::new(&clock);
    let year = 24 * 365;
    let limiters = [-2 * year, -1, 0, 1, 3 * year].map(|ahead_hours| {
        let builder = Limiter::builder().yaml(&policy("rate: 5/day, align: calendar"));
        let store = SkewedStore {
            store: store.clone(),
            clock: clock.clone(),
            ahead_hours,
        };
        builder.unwrap().build_with(store).unwrap()
    });
    for day in 0..3 {
        at(&clock, JANUARY_20 + day * 24 * HOUR_MS);
        assert!(limiters.iter().all(|limiter| passes(limiter, 1)));
        assert!(!limiters.iter().any(|limiter| passes(limiter, 1)));
    }
}

#[test]
fn a_share_of_the_window_applies_while_the_store_is_away() {
    let clock = ManualClock::at(Timestamp::from_millis(FEBRUARY - HOUR_MS));
    let store = CuttableStore::new(&clock);
    let builder = Limiter::builder().clock(clock.clone());
    let builder = builder
        .yaml(&policy("rate: 10/month, on_failure: local"))
        .unwrap();
    let limiter = builder.build_with(store.clone()).unwrap();
    assert!(passes(&limiter, 4));
    store.cut();
    let local = check(&limiter, 3);
    assert_eq!(
        (local.is_allowed(), local.decided_by()),
        (true, DecidedBy::Local)
    );
    let refused = check(&limiter, 1);
    let wait = refused.binding().unwrap().retry_after().unwrap();
    assert_eq!(wait, Duration::from_secs(3_600));
    at(&clock, FEBRUARY);
    assert!(
        passes(&limiter, 5) && !passes(&limiter, 1),
        "half of the next month"
    );
}

#[test]
fn no_request_waits_for_a_month_in_code_either() {
    let monthly = LimitSpec::new("quota").band("5/month");
    let error = Limiter::builder().limit(monthly.wait(Duration::from_secs(1)));
    let error = error.build().unwrap_err().to_string();
    assert!(
        error.contains("cannot wait for a calendar window"),
        "{error}"
    );
}
