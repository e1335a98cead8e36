//! One line for all who share a Redis.

use crate::config;
use std::sync::OnceLock;
use std::time::Duration;
use tidegate::redis::{Address, Mode, Options, RedisStore, Settings};
use tidegate::{Decision, Limiter, Request};
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
    let settings = Settings::new(Mode::Standalone, vec![address]).timeout(Duration::from_secs(10));
    let store = runtime().block_on(RedisStore::connect(settings, Options::default()));
    let builder = Limiter::builder().config(config(limits)).max_keys(1_000);
    builder
        .build_with(store.expect("it is there"))
        .expect("a limiter")
}

/// A request, and when it passed or was refused.
fn ask(limiter: &Limiter<RedisStore>, began: Instant) -> JoinHandle<(Decision, Duration)> {
    let limiter = limiter.clone();
    runtime().spawn(async move {
        let decision = limiter.check(&Request::new()).await.expect("it is decided");
        (decision, began.elapsed())
    })
}

fn waiting(limiters: &[Limiter<RedisStore>]) -> u32 {
    let counts = limiters.iter().map(|limiter| limiter.waiting()[0].count);
    counts.sum()
}

#[test]
fn two_limiters_share_one_line_of_places_and_are_never_over() {
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
        // The n-th may pass when n - 5 have come back since the first was asked for.
        let earliest = Duration::from_millis(5) * u32::saturating_sub(nth, 5);
        assert!(*at >= earliest, "{nth}: {at:?}, not before {earliest:?}");
    }
    assert_eq!(waiting(&limiters), 0);
}

#[test]
fn who_goes_gives_its_place_back_to_all() {
    let server = Server::start();
    // So slow that nothing comes back by itself.
    let text = "{ name: all, rate: 100/h burst 1, on_refusal: wait, max_wait: 1h }";
    let limiters = [limiter(&server, text), limiter(&server, text)];
    let began = Instant::now();
    let tasks: Vec<_> = (0..120).map(|nth| ask(&limiters[nth % 2], began)).collect();
    until("a hundred wait", || waiting(&limiters) == 100);
    until("the others are refused", || {
        tasks.iter().filter(|task| task.is_finished()).count() == 20
    });
    let alive: Vec<_> = tasks.iter().filter(|task| !task.is_finished()).collect();
    for task in alive.iter().rev().step_by(2) {
        task.abort();
    }
    until("half have gone", || waiting(&limiters) == 50);
    // As many others fit, once all is given back, and not one more.
    let mut more = Vec::new();
    until("fifty others wait", || {
        more.retain(|task: &JoinHandle<_>| !task.is_finished());
        more.push(ask(&limiters[0], began));
        waiting(&limiters) >= 100
    });
    for _ in 0..5 {
        let (decision, _) = runtime()
            .block_on(ask(&limiters[1], began))
            .expect("no panic");
        assert!(!decision.is_allowed());
    }
    assert_eq!(waiting(&limiters), 100);
    for task in tasks.iter().chain(&more) {
        task.abort();
    }
    until("nobody waits", || waiting(&limiters) == 0);
}

#[test]
fn what_was_allowed_is_given_back_once_across_the_network() {
    let server = Server::start();
    let limiter = limiter(&server, "{ name: all, rate: 2/h, refundable: true }");
    runtime().block_on(async {
        let request = Request::new();
        let first = limiter.check(&request).await.expect("it is decided");
        assert!(
            limiter
                .check(&request)
                .await
                .expect("it is decided")
                .is_allowed()
        );
        assert!(limiter.give_back(&first).await.expect("it is given back"));
        assert!(!limiter.give_back(&first.clone()).await.expect("nothing"));
        assert_eq!(limiter.give_back_at_once(&first), None);
        assert!(
            limiter
                .check(&request)
                .await
                .expect("it is decided")
                .is_allowed()
        );
        assert!(
            !limiter
                .check(&request)
                .await
                .expect("it is decided")
                .is_allowed()
        );
    });
}
