use crate::{AdmissionRecord, CAPACITY, DEADLINE, Instance, POLICY, RATE, pass, under_load};
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;
use tidegate::{LocalShare, OnFailure};
use tidegate_core::Quota;
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{ProxyFaults, Server, audit};
use tokio::time::Instant;

const HALF: LocalShare = LocalShare::Millionths(500_000);

fn quota(amount: u64, burst: u64) -> Quota {
    let spec = Quota::new(amount, 1_000_000).burst(burst);
    spec.build().expect("a valid quota")
}

fn together(all: &[AdmissionRecord], which: impl Fn(&AdmissionRecord) -> &History) -> History {
    let mut sum = History::default();
    for recorded in all {
        sum.merge(which(recorded).clone());
    }
    sum
}

/// Rows 1, 4 and 8: two of four instances are cut off for a while, one by silence and one by a reset, and one
/// more flaps. Each admits its half of the policy locally, once, for any number of outages: at most k · f ·
/// (C + r · T) above the policy together.
#[test]
fn at_most_its_share_above_the_policy_for_each_instance_that_is_cut_off() {
    let server = Server::start();
    let instances: Vec<Instance> = (0..4)
        .map(|_| Instance::start(&server, OnFailure::Local, HALF))
        .collect();
    let began = Instant::now();
    let all = under_load(&instances, |progress| {
        progress[0].await_store(100);
        instances[0].wire.set(ProxyFaults::blackhole());
        instances[1].wire.set(ProxyFaults::refuse());
        instances[1].wire.reset();
        for _ in 0..3 {
            instances[2].wire.set(ProxyFaults::refuse());
            instances[2].wire.reset();
            progress[2].await_without(50);
            instances[2].wire.set(ProxyFaults::none());
            progress[2].await_store(20);
        }
        progress[0].await_without(500);
        progress[1].await_without(500);
        for instance in &instances {
            instance.wire.set(ProxyFaults::none());
        }
        // A connection that has lost bytes in the middle is unusable.
        instances[0].wire.reset();
        for progress in progress {
            progress.await_store(50);
        }
    });
    let took = began.elapsed();
    assert!(POLICY.contains("50/s burst 100"));
    let (policy, share) = (quota(RATE, CAPACITY), quota(RATE / 2, CAPACITY / 2));
    let by_store = together(&all, |it| &it.by_store);
    assert_eq!(by_store.over(&policy), 0, "what Redis decided is exact");
    // A busy machine may delay the fourth beyond its deadline.
    let (mut above, mut cut_off) = (0, 0);
    for (nth, recorded) in all.iter().enumerate() {
        let locally = recorded.locally.admitted();
        println!(
            "instance {nth}: {} by Redis, {locally} by itself, slowest {:?}, timer late {:?}",
            recorded.by_store.admitted(),
            recorded.slowest,
            recorded.timer_late,
        );
        assert_eq!(recorded.locally.over(&share), 0, "instance {nth}");
        assert_eq!((recorded.errors, recorded.without_either), (0, 0));
        let slack = (recorded.timer_late * 5).max(Duration::from_millis(20));
        assert!(
            recorded.slowest <= DEADLINE + slack,
            "{:?}",
            recorded.slowest
        );
        above += locally;
        cut_off += u64::from(locally > 0);
    }
    assert!(cut_off >= 3, "the local share is used");
    let time = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let bound = cut_off * (CAPACITY + RATE * time / 1_000) / 2;
    println!("{above} above the policy in {took:?}, at most {bound}");
    assert!(above <= bound, "{above} > {bound}");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// All are cut off, and each knows their number: together they keep to the policy.
#[test]
fn instances_that_were_counted_keep_to_the_policy_together() {
    all_away(4);
}

/// Row 22: four instances of which only two were counted admit twice the policy, and no more.
#[test]
fn instances_that_were_not_counted_are_above_the_policy_by_as_much() {
    all_away(2);
}

/// Runs four instances, of which `counted` were counted, without a server for a second.
fn all_away(counted: u32) {
    let server = Server::start();
    let instances: Vec<Instance> = (0..4)
        .map(|_| Instance::start(&server, OnFailure::Local, LocalShare::Auto))
        .collect();
    for instance in &instances {
        instance.counted.store(counted, SeqCst);
    }
    let all = under_load(&instances, |progress| {
        server.kill9();
        pass(Duration::from_secs(1));
        for progress in progress {
            progress.await_without(1);
        }
    });
    let locally = together(&all, |it| &it.locally);
    let times = 4 / u64::from(counted);
    let over = locally.over(&quota(times * RATE, times * CAPACITY));
    println!("{} admitted without Redis, {over} over", locally.admitted());
    assert_eq!(over, 0);
    assert!(locally.admitted() >= times * CAPACITY * 9 / 10);
}
