//! The requests that count, and the addresses they count for.

use super::everywhere;
use super::kit::{EXEMPT, Instance, Place};
use crate::runtime;
use tidegate::{AnswerReason, Request};
use tidegate_testkit::redis::until;

everywhere! {
    every_request_counts_once_and_reads_do_not
    a_request_that_waits_counts_once
    a_reservation_counts_once_and_settling_it_does_not
    denied_clients_are_counted_only_if_configured
    counts_of_a_running_instance_are_visible_to_others
    documented_counters_set_by_hand_continue
    a_full_map_counts_new_addresses_as_one_that_is_never_banned
    a_map_of_all_periods_expires_from_its_creation
}

fn every_request_counts_once_and_reads_do_not(place: &Place) {
    let limit = "{ name: per-client, key: ip, rate: 1/h burst 3 }";
    let instance = Instance::start(&place.config_at(&place.url(), "", limit));
    let allowed = (0..5).filter(|_| instance.ask("192.0.2.1").is_allowed());
    assert_eq!(allowed.count(), 3, "two are refused");
    // Both are in one network, which is one client.
    instance.ask("2001:db8::1");
    instance.ask("2001:db8::ffff:1");
    assert_eq!(instance.ask(EXEMPT).reason(), AnswerReason::Exempt);
    // An IPv4-mapped IPv6 address.
    instance.ask("::ffff:192.0.2.1");
    let looked = Request::new().ip("192.0.2.1".parse().expect("an address"));
    runtime().block_on(async {
        let limiter = &instance.limiter;
        limiter.test(&looked).await.expect("a decision");
        limiter.report(&looked).await.expect("it is taken down");
        limiter.check_guards(&looked).expect("it is open");
        // A request without an address.
        limiter.check(&Request::new()).await.expect("a decision");
    });
    instance.send();
    let expected = [("192.0.2.1", 6), (EXEMPT, 1), ("2001:db8::/64", 2)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    for map in ["CurrentPeriodMap", "AllIPsMap"] {
        assert_eq!(place.map(map), expected.clone().into(), "{map}");
    }
    instance.send();
    assert_eq!(place.sum("AllIPsMap"), 9, "sent once");
    assert_eq!(instance.status().sent, 9);
}

fn a_request_that_waits_counts_once(place: &Place) {
    let limit = "{ name: slow, rate: 20/s burst 1, on_refusal: wait, max_wait: 10s }";
    let instance = Instance::start(&place.config_at(&place.url(), "", limit));
    let waited = (0..4).filter(|_| {
        let decision = instance.ask("192.0.2.1");
        assert!(decision.is_allowed());
        !decision.waited().is_zero()
    });
    assert!(waited.count() > 0, "no request waited");
    instance.send();
    assert_eq!(place.map("AllIPsMap"), [("192.0.2.1".to_owned(), 4)].into());
}

fn a_reservation_counts_once_and_settling_it_does_not(place: &Place) {
    let instance = Instance::start(&place.config(""));
    let request = Request::new()
        .ip("192.0.2.1".parse().expect("an address"))
        .policy("llm")
        .cost(5);
    runtime().block_on(async {
        for _ in 0..2 {
            let reserved = instance.limiter.reserve(&request, None).await;
            let reserved = reserved.expect("it is reserved");
            let id = reserved.id().expect("it was allowed");
            let settled = instance.limiter.commit(id, 3).await;
            settled.expect("it is settled");
        }
    });
    instance.send();
    assert_eq!(place.map("AllIPsMap"), [("192.0.2.1".to_owned(), 2)].into());
}

fn denied_clients_are_counted_only_if_configured(place: &Place) {
    place
        .type_in("SADD", "BlacklistIPsSet", &["192.0.2.9"])
        .done();
    for (wanted, count) in [("false", 0), ("true", 3)] {
        let instance = Instance::start(&place.config(&format!("count_banned: {wanted}")));
        for _ in 0..3 {
            assert_eq!(
                instance.ask("192.0.2.9").reason(),
                AnswerReason::Blacklisted
            );
        }
        instance.send();
        assert_eq!(place.sum("AllIPsMap"), count, "count_banned: {wanted}");
    }
}

fn counts_of_a_running_instance_are_visible_to_others(place: &Place) {
    let instances = [(); 2].map(|()| Instance::kept(&place.config("threshold: 1000000")));
    for round in 1..=3 {
        for instance in &instances {
            instance.ask_often("192.0.2.1", 50);
        }
        until("all of it is there", || {
            place.sum("AllIPsMap") == round * 100
        });
    }
    // Periods are closed meanwhile by either instance, and their counts are known.
    until("all of it is in a closed period", || {
        let counted = place.run_in_same_slot("HGET", "CurrentPeriodMap", "period", &["counted"]);
        !counted.is_nil() && counted.text() == "300"
    });
    let closed = instances.iter().map(|it| it.status().closed);
    assert!(closed.sum::<u64>() > 0);
}

fn documented_counters_set_by_hand_continue(place: &Place) {
    let set = |map: &str, fields: &[&str]| place.type_in("HSET", map, fields).done();
    set("AllIPsMap", &["192.168.1.100", "15000"]);
    set("AllIPsMap", &["10.0.0.50", "8500"]);
    set("CurrentPeriodMap", &["192.168.1.100", "5000"]);
    set("CurrentPeriodMap", &["10.0.0.50", "12000"]);
    let mut instance =
        Instance::start(&place.config("threshold: 10000, ban: { guard: blacklist, for: 1h }"));
    instance.ask("192.168.1.100");
    instance.ask("10.0.0.50");
    instance.keep();
    until("the period is closed", || place.is_in_set("10.0.0.50"));
    let expected = [("10.0.0.50", 8_501), ("192.168.1.100", 15_001)];
    let expected = expected.map(|(name, count)| (name.to_owned(), count));
    assert_eq!(place.map("AllIPsMap"), expected.into());
    assert_eq!(instance.banned(), [("10.0.0.50".to_owned(), 12_001)]);
    assert!(!place.is_in_set("192.168.1.100"));
    until("the map of that period is gone", || {
        place.sum("CurrentPeriodMap") == 0
    });
}

fn a_full_map_counts_new_addresses_as_one_that_is_never_banned(place: &Place) {
    let mut instance =
        Instance::start(&place.config("max_addresses: 3, ban: { guard: blacklist, for: 1h }"));
    for nth in 0..30 {
        instance.ask(&format!("198.51.100.{nth}"));
    }
    instance.send();
    for map in ["CurrentPeriodMap", "AllIPsMap"] {
        let counted = place.map(map);
        assert_eq!((counted.len(), counted["other"]), (4, 27), "{map}");
    }
    // 27 is over the threshold, but `other` is not an address.
    instance.keep();
    until("the period is closed", || instance.status().closed > 0);
    assert_eq!(instance.banned(), []);
    assert!(!place.is_in_set("other"));
}

fn a_map_of_all_periods_expires_from_its_creation(place: &Place) {
    let instance = Instance::start(&place.config("total_lasts: 1h"));
    instance.ask("192.0.2.1");
    instance.send();
    let left = place.type_in("PTTL", "AllIPsMap", &[]).int();
    assert!((1..=3_600_000).contains(&left), "{left}");
    // Later counts do not prolong it.
    place.type_in("PEXPIRE", "AllIPsMap", &["1000000"]).done();
    instance.ask("192.0.2.2");
    instance.send();
    assert_eq!(place.sum("AllIPsMap"), 2);
    assert!(place.type_in("PTTL", "AllIPsMap", &[]).int() <= 1_000_000);
}
