//! One line for all instances that share a Redis.

use crate::config;
use std::sync::OnceLock;
use std::time::Duration;
use tidegate::redis::{Address, ConnectionSettings, RedisOptions, RedisStore, RedisTopology};
use tidegate::{Decision, Limiter, Request};
use tidegate_core::Quota;
use tidegate_testkit::history::History;
use tidegate_testkit::redis::{Server, until};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tokio::time::Instant;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(2).enable_all();
        builder.build().expect("a runtime")
    })
}

fn limiter(server: &Server, limits: &str) -> Limiter<RedisStore> {
    let address = Address::new("127.0.0.1", server.port());
    // Longer than any machine is busy.
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address])
        .timeout(Duration::from_secs(10));
    let store = runtime().block_on(RedisStore::connect(settings, RedisOptions::default()));
    let builder = Limiter::builder().config(config(limits)).max_keys(1_000);
    builder
        .build_with(store.expect("the server is up"))
        .expect("a limiter")
}

/// Sends a request, and returns when it passed or was refused.
fn ask(limiter: &Limiter<RedisStore>, began: Instant) -> JoinHandle<(Decision, Duration)> {
    let limiter = limiter.clone();
    runtime().spawn(async move {
        let decision = limiter.check(&Request::new()).await.expect("a decision");
        (decision, began.elapsed())
    })
}

fn waiting(limiters: &[Limiter<RedisStore>]) -> u32 {
    let counts = limiters.iter().map(|limiter| limiter.waiting()[0].count);
    counts.sum()
}

#[test]
fn two_limiters_share_one_queue_and_never_exceed() {
    let server = Server::start();
    let text = "{ name: all, rate: 200/s burst 5, on_refusal: wait, max_wait: 2s }";
    let limiters = [limiter(&server, text), limiter(&server, text)];
    let began = Instant::now();
    let tasks: Vec<_> = (0..200).map(|nth| ask(&limiters[nth % 2], began)).collect();
    let mut passed: Vec<Duration> = Vec::new();
    for task in tasks {
        let (decision, at) = runtime().block_on(task).expect("no panic");
        assert!(
            decision.is_allowed(),
            "a second's worth, and two may be waited for"
        );
        passed.push(at);
    }
    passed.sort_unstable();
    for (nth, at) in (0..).zip(&passed) {
        // The n-th may pass when n - 5 units have refilled since the first request.
        let earliest = Duration::from_millis(5) * u32::saturating_sub(nth, 5);
        assert!(*at >= earliest, "{nth}: {at:?}, not before {earliest:?}");
    }
    assert_eq!(waiting(&limiters), 0);
}

#[test]
fn a_leaver_hands_over_its_place_without_exceeding_the_limit() {
    let server = Server::start();
    let text = "{ name: all, rate: 100/s burst 5, on_refusal: wait, max_wait: 1min }";
    let limiters = [limiter(&server, text), limiter(&server, text)];
    let began = Instant::now();
    let ours: Vec<_> = (0..200).map(|_| ask(&limiters[0], began)).collect();
    until("all of ours have passed or wait", || {
        let done = ours.iter().filter(|task| task.is_finished()).count();
        done + usize::try_from(waiting(&limiters)).expect("a small count") == 200
    });
    let theirs: Vec<_> = (0..100).map(|_| ask(&limiters[1], began)).collect();
    until("all of theirs wait", || waiting(&limiters[1..]) == 100);
    // Every second of the first instance's waiting requests leaves, and others come to both.
    let left: Vec<_> = ours.iter().filter(|task| !task.is_finished()).collect();
    left.iter().step_by(2).for_each(|task| task.abort());
    let mut others = Vec::new();
    for nth in 0..90 {
        others.push(ask(&limiters[nth % 2], began));
        // Takes enough time for any refund to arrive.
        let look = Request::new().cost(0);
        let looked = runtime().block_on(limiters[0].check(&look));
        looked.expect("a decision");
    }

    let mut history = History::default();
    let mut pass = |tasks: Vec<JoinHandle<(Decision, Duration)>>| {
        let ended = tasks.into_iter().map(|task| runtime().block_on(task));
        let mut passed = Vec::new();
        for (decision, at) in ended.filter_map(Result::ok) {
            assert!(decision.is_allowed());
            history.admit(u64::try_from(at.as_micros()).expect("fits in 64 bits"), 1);
            passed.push(at);
        }
        passed.into_iter().max().expect("a request passes")
    };
    let (our_last, their_last, last) = (pass(ours), pass(theirs), pass(others));
    // The places of the first instance end 195 turns after the first, those of the second a hundred later.
    let turns = |count: u32| Duration::from_millis(10) * count;
    assert!(our_last < turns(195 - 40), "ours moved up: {our_last:?}");
    assert!(their_last >= turns(294), "theirs did not: {their_last:?}");
    assert!(last >= turns(384), "nor is there a place before: {last:?}");
    // On a busy machine some are late, and pass nearer to those after them.
    let quota = Quota::new(100, 1_000_000).burst(5).build();
    let quota = quota.expect("a valid quota");
    assert_eq!(history.over_with_skew(&quota, 50_000), 0);
    assert_eq!(waiting(&limiters), 0);
}

#[test]
fn an_allowed_decision_is_refunded_once_across_the_network() {
    let server = Server::start();
    let limiter = limiter(&server, "{ name: all, rate: 2/h, refundable: true }");
    runtime().block_on(async {
        let request = Request::new();
        let first = limiter.check(&request).await.expect("a decision");
        assert!(
            limiter
                .check(&request)
                .await
                .expect("a decision")
                .is_allowed()
        );
        assert!(
            limiter
                .refund_decision(&first)
                .await
                .expect("it is given back")
        );
        assert!(
            !limiter
                .refund_decision(&first.clone())
                .await
                .expect("nothing")
        );
        assert_eq!(limiter.refund_decision_at_once(&first), None);
        assert!(
            limiter
                .check(&request)
                .await
                .expect("a decision")
                .is_allowed()
        );
        assert!(
            !limiter
                .check(&request)
                .await
                .expect("a decision")
                .is_allowed()
        );
    });
}
