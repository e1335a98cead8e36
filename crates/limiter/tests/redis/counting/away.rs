//! Redis becomes unreachable and recovers: no request waits for it, and everything counts once.

use super::kit::{Instance, Place, THRESHOLD};
use std::time::Duration;
use tidegate_testkit::redis::{FaultProxy, ProxyFaults, until};
use tokio::time::Instant;

/// Returns a place whose wire can be cut, and the configuration of an instance behind it with a short
/// timeout.
fn behind_a_wire() -> (Place, FaultProxy, String) {
    let place = Place::standalone();
    let wire = FaultProxy::start(place.server().port());
    let url = place.server().url_at(wire.port());
    let limit = "{ name: all, rate: 1000000/s }";
    let config = place.config_at(&url, "threshold: 1000000", limit);
    (
        place,
        wire,
        config.replace("timeout: 10s", "timeout: 100ms"),
    )
}

#[test]
fn counts_are_buffered_during_an_outage_and_then_sent_once() {
    let (place, wire, config) = behind_a_wire();
    let instance = Instance::kept(&config);
    instance.ask_often("192.0.2.1", 100);
    until("it works", || place.sum("AllIPsMap") == 100);
    wire.set(ProxyFaults::refuse());
    wire.reset();
    instance.ask("192.0.2.1");
    until("it is noticed", || instance.status().failures > 0);
    let asked = Instant::now();
    instance.ask_often("192.0.2.1", 500);
    instance.ask_often("192.0.2.2", 500);
    // Far less than a thousand timeouts.
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(place.sum("AllIPsMap"), 100);
    wire.set(ProxyFaults::none());
    until("all of it has come", || place.sum("AllIPsMap") >= 1_101);
    let expected = [("192.0.2.1", 601), ("192.0.2.2", 500)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(place.map("AllIPsMap"), expected.clone().into());
    instance.send();
    assert_eq!(place.map("AllIPsMap"), expected.into(), "once");
    let status = instance.status();
    assert_eq!((status.sent, status.doubtful), (1_101, 0));
}

#[test]
fn a_count_with_a_lost_reply_is_not_sent_again() {
    let (place, wire, config) = behind_a_wire();
    let instance = Instance::start(&config);
    instance.ask_often("192.0.2.1", 10);
    instance.send();
    assert_eq!(place.sum("AllIPsMap"), 10);
    for round in 1..=3 {
        let failures = instance.status().failures;
        instance.ask_often("192.0.2.1", 10);
        wire.set(ProxyFaults::drop_replies());
        instance.send();
        assert!(instance.status().failures > failures, "it was answered");
        // Redis has it, but the reply is lost.
        assert_eq!(place.sum("AllIPsMap"), 10 + 10 * round);
        wire.set(ProxyFaults::none());
        wire.reset();
        until("it is known", || {
            instance.send();
            instance.status().sent == 10 + 10 * round
        });
        assert_eq!(place.sum("AllIPsMap"), 10 + 10 * round);
        assert_eq!(place.sum("CurrentPeriodMap"), 10 + 10 * round);
    }
}

#[test]
fn a_redis_unreachable_at_the_start_gets_all_counts() {
    let (place, wire, config) = behind_a_wire();
    wire.set(ProxyFaults::refuse());
    let instance = Instance::kept(&config);
    instance.ask_often("192.0.2.1", 100);
    until("it is noticed", || instance.status().failures > 0);
    wire.set(ProxyFaults::none());
    until("all of it has come", || place.sum("AllIPsMap") == 100);
}

#[test]
fn a_total_of_another_type_prevented_counting_the_period() {
    let place = Place::standalone();
    place
        .type_in("SET", "AllIPsMap", &["somebody else's"])
        .done();
    let mut instance = Instance::start(&place.config("ban: { guard: blacklist, for: 1h }"));
    instance.ask("192.0.2.1");
    instance.send();
    assert_eq!(instance.status().failures, 1, "a decision");
    assert_eq!(
        (place.sum("CurrentPeriodMap"), instance.status().sent),
        (1, 1)
    );
    // The next batch, and the one after.
    for times in 2..=3 {
        instance.ask("192.0.2.1");
        instance.send();
        assert_eq!(place.sum("CurrentPeriodMap"), times);
    }
    instance.ask_often("192.0.2.2", THRESHOLD);
    instance.keep();
    until("periods close, and ban", || place.is_in_set("192.0.2.2"));
    until("it is told", || instance.status().closed > 0);
    // An operator fixes the key: none of its counts are lost.
    place.type_in("DEL", "AllIPsMap", &[]).done();
    instance.send();
    let expected = [("192.0.2.1", 3), ("192.0.2.2", THRESHOLD)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(place.map("AllIPsMap"), expected.into());
}

#[test]
fn a_period_of_another_type_does_not_affect_the_total() {
    let place = Place::cluster();
    place
        .type_in("SET", "CurrentPeriodMap", &["somebody else's"])
        .done();
    let instance = Instance::start(&place.config(""));
    for times in 1..=3 {
        instance.ask("192.0.2.1");
        instance.send();
        assert_eq!(place.sum("AllIPsMap"), times);
    }
    assert_eq!((instance.status().sent, instance.status().failures), (0, 3));
    place.type_in("DEL", "CurrentPeriodMap", &[]).done();
    instance.send();
    assert_eq!(
        (place.sum("CurrentPeriodMap"), place.sum("AllIPsMap")),
        (3, 3)
    );
    assert_eq!(instance.status().sent, 3);
}
