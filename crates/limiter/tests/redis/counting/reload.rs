//! A reload while counts are in flight.

use super::everywhere;
use super::kit::{Instance, Place};
use crate::runtime;
use tidegate::{AskPurpose, Attempt, Request};
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, until};

everywhere! {
    a_reload_sends_earlier_counts_under_the_old_names
    unchanged_settings_keep_their_counts
    counts_are_sent_after_counting_is_disabled
}

fn elsewhere(place: &Place) -> String {
    let [period, total] = ["OtherPeriodMap", "OtherMap"].map(|name| place.name(name));
    place.config(&format!(
        "maps: {{ period: '{period}', total: '{total}' }}, threshold: 1000000"
    ))
}

fn a_reload_sends_earlier_counts_under_the_old_names(place: &Place) {
    let mut instance = Instance::start(&place.config("threshold: 1000000"));
    instance.ask_often("192.0.2.1", 7);
    // A request is in flight when the rules change, and counts by the old ones.
    let rules = instance.limiter.rules().expect("it is open");
    instance.reload(&elsewhere(place));
    instance.keep();
    instance.ask_often("192.0.2.1", 5);
    until("the old counts have come", || place.sum("AllIPsMap") == 7);
    let late = Request::new().ip("192.0.2.2".parse().expect("an address"));
    match instance.limiter.attempt(&rules, &late, AskPurpose::Pass) {
        Ok(Attempt::Pending(pending)) => drop(runtime().block_on(pending.decision())),
        other => unreachable!("{other:?}"),
    }
    drop(rules);
    until("the late one has come", || place.sum("AllIPsMap") == 8);
    until("the new counts have come", || place.sum("OtherMap") == 5);
    // Redis has them before the instance knows.
    until("all are told, over the reload", || {
        instance.status().sent == 13
    });
}

fn unchanged_settings_keep_their_counts(place: &Place) {
    let config = place.config("threshold: 1000000");
    let instance = Instance::start(&config);
    instance.ask_often("192.0.2.1", 3);
    instance.reload(&config);
    instance.ask_often("192.0.2.1", 4);
    instance.send();
    assert_eq!(place.sum("AllIPsMap"), 7);
}

fn counts_are_sent_after_counting_is_disabled(place: &Place) {
    let instance = Instance::start(&place.config("threshold: 1000000"));
    instance.ask_often("192.0.2.1", 3);
    let without = place.config("");
    let without: Vec<&str> = without
        .lines()
        .filter(|line| !line.starts_with("addresses:"))
        .collect();
    instance.reload(&without.join("\n"));
    assert!(instance.limiter.counting().is_none());
    instance.ask("192.0.2.1");
    instance.send();
    assert_eq!(place.sum("AllIPsMap"), 3);
}

#[test]
fn a_reload_during_an_outage_loses_nothing() {
    let place = Place::standalone();
    let wire = FaultProxy::start(place.server().port());
    let url = place.server().url_at(wire.port());
    let through = |config: String| {
        let config = config.replace(&place.url(), &url);
        config.replace("timeout: 10s", "timeout: 100ms")
    };
    let instance = Instance::kept(&through(place.config("threshold: 1000000")));
    instance.ask("192.0.2.1");
    until("it works", || place.sum("AllIPsMap") == 1);
    wire.set(ProxyFaults::refuse());
    wire.reset();
    instance.ask_often("192.0.2.1", 20);
    until("it is noticed", || instance.status().failures > 0);
    instance.reload(&through(elsewhere(&place)));
    instance.ask_often("192.0.2.1", 30);
    wire.set(ProxyFaults::none());
    until("the old counts have come", || place.sum("AllIPsMap") == 21);
    until("the new counts have come", || place.sum("OtherMap") == 30);
}
