use crate::{AdmissionRecord, CAPACITY, DEADLINE, Instance, RATE, under_load};
use std::time::Duration;
use tidegate::{LocalShare, OnFailure};
use tidegate_core::Quota;
use tidegate_testkit::redis::{Server, audit};

/// Runs two instances with a server that is killed and restarts with empty data.
fn outage(on_failure: OnFailure) -> Vec<AdmissionRecord> {
    let server = Server::start();
    let instances = [(); 2].map(|()| Instance::start(&server, on_failure, LocalShare::default()));
    let all = under_load(&instances, |progress| {
        progress[0].await_store(100);
        server.kill9();
        for progress in progress {
            progress.await_without(100);
        }
        server.restart();
        for progress in progress {
            progress.await_store(100);
        }
    });
    let mut by_store = tidegate_testkit::history::History::default();
    for recorded in &all {
        by_store.merge(recorded.by_store.clone());
        assert_eq!(recorded.locally.admitted(), 0);
        let slack = (recorded.timer_late * 5).max(Duration::from_millis(20));
        assert!(
            recorded.slowest <= DEADLINE + slack,
            "{:?}",
            recorded.slowest
        );
    }
    let quota = Quota::new(RATE, 1_000_000).burst(CAPACITY);
    let over = by_store.over(&quota.build().expect("a valid quota"));
    println!(
        "{on_failure:?}: {} by Redis, {over} over",
        by_store.admitted()
    );
    // A server without persistence loses its data: one capacity.
    assert!(over <= CAPACITY, "{over}");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
    all
}

#[test]
fn deny_refuses_everything_during_an_outage() {
    for recorded in outage(OnFailure::Deny) {
        assert_eq!((recorded.without_either, recorded.errors), (0, 0));
    }
}

#[test]
fn error_fails_every_request_during_an_outage() {
    for recorded in outage(OnFailure::Error) {
        assert_eq!(recorded.without_either, 0);
        assert!(recorded.errors >= 100);
    }
}

#[test]
fn allow_allows_everything_during_an_outage() {
    for recorded in outage(OnFailure::Allow) {
        assert_eq!(recorded.errors, 0);
        assert!(recorded.without_either >= 100);
    }
}
