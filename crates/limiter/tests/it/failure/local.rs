use super::{Instance, config};
use std::sync::atomic::Ordering::Relaxed;
use tidegate::{DecidedBy, Request};
use tidegate_testkit::laws::block_on;

/// A hundred at once, then a hundred an hour: next to nothing refills in a test.
const HUNDRED: &str = "policies: [{name: a, limits: [{name: x, key: user, rate: 100/h}]}]";

fn with_share(share: &str, limit: &str) -> Instance {
    Instance::new(&format!(
        "{{store: {{local_share: {share}}}, policies: [{{name: a, limits: [{{name: x, {limit}}}]}}]}}"
    ))
}

#[test]
fn the_share_is_of_burst_and_rate() {
    for (share, limit, burst, per_minute) in [
        ("0.5", "rate: 60/min burst 10", 5, 30),
        ("0.25", "rate: 60/min burst 10", 2, 15),
        ("1", "rate: 60/min burst 10", 10, 60),
        ("0.001", "rate: 60/min burst 10", 1, 0),
        ("0.5", "rate: 11/min, algorithm: fixed-window", 5, 5),
        ("0.5", "rate: 11/min, algorithm: sliding-log", 5, 5),
        ("0.01", "rate: 11/min, algorithm: bucketed-window", 1, 1),
    ] {
        let instance = with_share(share, limit);
        instance.store.cut();
        assert_eq!(instance.admitted(), burst, "{share} of {limit}");
        let mut later = 0;
        for _ in 0..120 {
            instance.clock.advance_micros(1_000_000);
            later += u64::from(instance.ask().is_allowed());
        }
        let least = u64::saturating_sub(2 * per_minute, burst);
        assert!(
            (least..=2 * per_minute).contains(&later),
            "{share} of {limit}: {later}"
        );
    }
}

#[test]
fn a_local_bucket_starts_at_its_share_of_the_last_known_level() {
    for (taken, expected) in [(0, 50), (20, 40), (41, 29), (99, 0), (100, 0)] {
        let instance = Instance::new(HUNDRED);
        assert!(instance.ask_for(taken).is_allowed());
        instance.store.cut();
        assert_eq!(instance.admitted(), expected, "after {taken}");
    }
}

#[test]
fn the_refill_of_an_outage_counts_at_the_local_rate() {
    let instance = Instance::new(HUNDRED);
    assert!(instance.ask_for(100).is_allowed());
    // In half an hour, fifty of the policy refill, and twenty-five of the share.
    instance.clock.advance_micros(1_800_000_000);
    instance.store.cut();
    assert_eq!(instance.admitted(), 25);
}

#[test]
fn expired_windows_are_dropped_and_current_ones_kept() {
    let limit = "rate: 100/h, algorithm: fixed-window";
    for (minutes, expected) in [(30, 10), (61, 50)] {
        let instance = with_share("0.5", limit);
        assert!(instance.ask_for(80).is_allowed());
        instance.clock.advance_micros(minutes * 60_000_000);
        instance.store.cut();
        assert_eq!(instance.admitted(), expected, "after {minutes} minutes");
    }
}

#[test]
fn usage_of_other_instances_is_known_from_the_last_reply() {
    let here = Instance::new(HUNDRED);
    let there = here.sharing_store(HUNDRED);
    assert!(there.ask_for(60).is_allowed());
    assert!(here.ask().is_allowed());
    here.store.cut();
    assert_eq!(here.admitted(), 19, "half of thirty-nine");
}

#[test]
fn unknown_levels_in_a_refusal_are_ignored() {
    let instance = Instance::new(
        "
policies:
  - name: a
    limits:
      - { name: known, key: user, rate: 100/h }
      - { name: refuses, rate: 1000/h }
",
    );
    assert!(instance.ask_for(80).is_allowed());
    // It reports that all of the first remains, and nothing of the second.
    instance.store.remembers.store(true, Relaxed);
    assert!(!instance.ask().is_allowed());
    instance.store.cut();
    let look = instance.ask_for(0);
    let left: Vec<u64> = look.applied().map(|it| it.remaining()).collect();
    assert_eq!(left, [10, 0], "half of twenty, and of nothing");
}

#[test]
fn a_local_bucket_of_an_earlier_outage_follows_newer_store_levels() {
    for (limit, expected) in [
        ("rate: 100/h, algorithm: fixed-window", 4),
        ("rate: 100/h, algorithm: sliding-log", 4),
        ("rate: 100/h", 4),
    ] {
        let here = with_share("0.5", limit);
        let there = here.sharing_store(&format!(
            "policies: [{{name: a, limits: [{{name: x, {limit}}}]}}]"
        ));
        here.store.cut();
        assert!(here.ask_for(10).is_allowed());
        here.store.mend();
        // A log accepts no large costs.
        assert!((0..90).all(|_| there.ask().is_allowed()), "{limit}");
        assert!(here.ask().is_allowed());
        here.store.cut();
        assert_eq!(here.admitted(), expected, "half of nine, by {limit}");
        // Each level from the store is applied once.
        assert!(!here.ask().is_allowed());
        here.store.mend();
        assert!(here.ask_for(3).is_allowed());
        here.store.cut();
        assert!(!here.ask().is_allowed(), "{limit}");
    }
}

#[test]
fn a_local_bucket_is_not_charged_again_for_its_own_usage() {
    let instance = with_share("0.5", "rate: 100/h, algorithm: fixed-window");
    instance.store.cut();
    assert!(instance.ask_for(30).is_allowed());
    instance.store.mend();
    assert!(instance.ask_for(20).is_allowed());
    instance.store.cut();
    // Half of eighty would be forty, but only twenty are left here.
    assert_eq!(instance.admitted(), 20);
}

#[test]
fn a_share_per_live_instance_keeps_the_usage() {
    let instance = with_share("auto", "rate: 100/h");
    instance.store.cut();
    assert_eq!(instance.admitted(), 50, "not known yet: taken to be two");
    for live in [4, 2, 7, 1, 2] {
        instance.instances.store(live, Relaxed);
        let admitted = instance.admitted();
        // Debt is kept as time, regardless of the share.
        assert_eq!(admitted, 0, "because {live} are alive");
    }
}

#[test]
fn a_share_per_live_instance_follows_their_number() {
    for (live, expected) in [(1, 100), (2, 50), (3, 33), (1_000, 1)] {
        let instance = with_share("auto", "rate: 100/h");
        instance.instances.store(live, Relaxed);
        instance.store.cut();
        assert_eq!(instance.admitted(), expected, "{live} alive");
    }
}

#[test]
fn local_buckets_survive_a_reload() {
    let instance = Instance::new(HUNDRED);
    instance.store.cut();
    assert_eq!(instance.admitted(), 50);
    instance.limiter.reload(config(
        "policies: [{name: a, limits: [{name: x, key: user, rate: 100/h}, {name: y, rate: 9/s}]}]",
    )).unwrap();
    assert!(!instance.ask().is_allowed());
    let bob = block_on(instance.limiter.check(&Request::new().user("bob")));
    assert!(bob.unwrap().is_allowed());
}

#[test]
fn concurrent_requests_create_a_local_bucket_once() {
    let instance = Instance::new(HUNDRED);
    assert!(instance.ask_for(20).is_allowed());
    instance.store.cut();
    let admitted: u64 = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let passed = |_: &u32| instance.ask().is_allowed();
                    (0..20).filter(passed).count() as u64
                })
            })
            .collect();
        threads.into_iter().map(|it| it.join().unwrap()).sum()
    });
    assert_eq!(
        admitted, 40,
        "half of eighty, for any number of concurrent requests"
    );
}

#[test]
fn a_partial_outage_is_decided_locally_in_part() {
    let instance = Instance::new(
        "
policies:
  - name: a
    limits:
      - { name: near, rate: 1000/h }
      - { name: far, key: user, rate: 10/h }
",
    );
    instance.store.lose("/far");
    assert_eq!(instance.admitted(), 5);
    assert_eq!(instance.ask().decided_by(), DecidedBy::Local);
    instance.store.mend();
    let look = instance.ask_for(0);
    let left: Vec<u64> = look.applied().map(|it| it.remaining()).collect();
    assert_eq!(left, [995, 10], "the other bucket was refunded");
}
