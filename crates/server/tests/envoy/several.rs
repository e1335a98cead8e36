//! Several instances on one store, behind one Envoy.

use crate::decisions::on;
use crate::kit::{Site, SiteOptions};
use tidegate_testkit::redis::{Server, until};

/// Opens a site with two instances on one Redis.
fn open(redis: &Server) -> Option<Site> {
    Site::open(&SiteOptions {
        tidegates: 2,
        settings: on(redis),
        // Envoy counts no instance as healthy before the first check.
        health: "[{ grpc_health_check: {}, timeout: 10s, interval: 0.1s, no_traffic_interval: 0.1s, \
                 unhealthy_threshold: 1, healthy_threshold: 1 }]",
        ..SiteOptions::default()
    })
}

#[test]
fn several_instances_allow_exactly_as_many_as_one() {
    let redis = Server::start();
    let Some(site) = open(&redis) else {
        return;
    };
    until("Envoy knows both", || site.well() == 2);
    assert_eq!(site.ask_at_once(150, &["x-plan: gold"]), (100, 50));
    // Each user has three, on any instance, and `plan` charges nothing for them.
    assert_eq!(site.ask_at_once(20, &["x-user: ann"]), (3, 17));
    assert_eq!(
        site.ask_at_once(20, &["x-user: bob", "x-plan: gold"]),
        (0, 20)
    );
    assert_eq!(site.left("user", "bob"), 3);
}

#[test]
fn charges_of_a_stopped_instance_persist() {
    let redis = Server::start();
    let Some(mut site) = open(&redis) else {
        return;
    };
    until("Envoy knows both", || site.well() == 2);
    for _ in 0..2 {
        assert_eq!(site.ask("GET /", &["x-user: ann"]).status, 200);
    }
    site.tidegates[0].go();
    site.tidegates[0].resume();
    site.tidegates[1].go();
    site.tidegates[1].resume();
    until("Envoy sees that both are back", || site.well() == 2);
    assert_eq!(site.left("user", "ann"), 1);
    assert_eq!(site.ask_at_once(10, &["x-user: ann"]), (1, 9));
}

#[test]
fn a_stopped_instance_gets_no_more_requests() {
    let redis = Server::start();
    let Some(mut site) = open(&redis) else {
        return;
    };
    until("Envoy knows both", || site.well() == 2);
    site.tidegates[0].go();
    until("Envoy sees that one is gone", || site.well() == 1);
    assert_eq!(site.ask_at_once(20, &["x-user: ann"]), (3, 17));
    site.tidegates[0].resume();
    until("Envoy sees that it is back", || site.well() == 2);
    assert_eq!(site.ask_at_once(20, &["x-user: bob"]), (3, 17));
}

/// A stopping instance reports itself as unhealthy, and keeps serving until its clients know.
#[test]
fn a_draining_instance_loses_and_double_counts_no_request() {
    let redis = Server::start();
    let Some(mut site) = open(&redis) else {
        return;
    };
    until("Envoy knows both", || site.well() == 2);
    let statuses = site.ask_while(8, &["x-plan: large"], |tidegates, answers| {
        until("requests flow", || answers() >= 100);
        tidegates[0].take_leave();
        until("it has gone", || tidegates[0].has_gone());
        let then = answers();
        until("they flow without it", || answers() >= then + 100);
    });
    let count = |status| statuses.iter().filter(|it| **it == status).count();
    let (passed, refused) = (count(200), count(429));
    let others: Vec<&u16> = statuses
        .iter()
        .filter(|it| ![200, 429].contains(it))
        .collect();
    assert!(
        others.is_empty(),
        "{others:?} in addition to {passed} and {refused}"
    );
    assert_eq!(passed, statuses.len().min(600));
    let left = 600 - passed;
    assert_eq!(site.left("plan", "large"), u64::try_from(left).unwrap());
    // Exactly as many as are left.
    assert_eq!(site.ask_at_once(left + 20, &["x-plan: large"]), (left, 20));
}
