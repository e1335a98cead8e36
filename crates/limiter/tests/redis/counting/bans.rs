//! Banned and exempt clients, and the duration of bans.

use super::everywhere;
use super::kit::{EXEMPT, Instance, Place, THRESHOLD, WATCHED};
use std::time::Duration;
use tidegate::AnswerReason;
use tidegate_testkit::redis::until;

everywhere! {
    only_addresses_over_the_threshold_are_banned_at_the_period_end
    a_network_of_ipv6_is_banned_as_one
    a_shadow_exemption_prevented_a_ban
    a_ban_ends_automatically
    a_permanent_ban_has_no_end
    a_manual_member_never_expires_until_removed
    without_a_ban_no_client_is_refused
    a_disabled_guard_bans_no_client_and_counting_continues
    a_disabled_exemption_does_not_prevent_bans
    in_shadow_mode_bans_are_only_counted
}

const FOR_AN_HOUR: &str = "ban: { guard: blacklist, for: 1h }";

fn only_addresses_over_the_threshold_are_banned_at_the_period_end(place: &Place) {
    let mut instance = Instance::start(&place.config(FOR_AN_HOUR));
    // Nothing is sent yet, so that all of it falls into one period.
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.ask_often("192.0.2.2", THRESHOLD - 1);
    instance.ask_often(EXEMPT, 5 * THRESHOLD);
    assert!(instance.ask("192.0.2.1").is_allowed(), "not before its end");
    instance.keep();
    until("it is in the set", || place.is_in_set("192.0.2.1"));
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    let refused = instance.ask("192.0.2.1");
    assert_eq!(refused.reason(), AnswerReason::Blacklisted);
    assert!(!refused.is_allowed());
    until("it is over and done with", || instance.status().closed > 0);
    assert!(!place.is_in_set("192.0.2.2") && !place.is_in_set(EXEMPT));
    assert!(instance.ask("192.0.2.2").is_allowed() && instance.ask(EXEMPT).is_allowed());
    assert_eq!(
        instance.banned(),
        [("192.0.2.1".to_owned(), THRESHOLD + 1)],
        "logged once"
    );
    let length = instance.banned.lock()[0].length;
    assert_eq!(length, Some(Duration::from_secs(3_600)));
    assert_eq!(instance.status().banned, 1);
}

fn a_shadow_exemption_prevented_a_ban(place: &Place) {
    let mut instance = Instance::start(&place.config(FOR_AN_HOUR));
    instance.ask_often(WATCHED, THRESHOLD);
    instance.keep();
    until("it is in the set", || place.is_in_set(WATCHED));
}

fn a_network_of_ipv6_is_banned_as_one(place: &Place) {
    let mut instance = Instance::start(&place.config(FOR_AN_HOUR));
    for nth in 0..THRESHOLD {
        instance.ask(&format!("2001:db8::{nth:x}"));
    }
    instance.keep();
    until("it is in the set", || place.is_in_set("2001:db8::/64"));
    until("all of it is kept out", || {
        instance.is_kept_out("2001:db8::77:1")
    });
    assert!(!instance.is_kept_out("2001:db8:0:1::1"));
}

fn a_ban_ends_automatically(place: &Place) {
    let mut instance = Instance::start(&place.config("ban: { guard: blacklist, for: 1s }"));
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.keep();
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    until("it is let in again", || !instance.is_kept_out("192.0.2.1"));
    assert!(!place.is_in_set("192.0.2.1"));
    assert!(instance.ask("192.0.2.1").is_allowed());
    assert_eq!(instance.status().lifted, 1);
    assert_eq!(ends(place), 0, "nothing is left of it");
}

fn a_permanent_ban_has_no_end(place: &Place) {
    let mut instance = Instance::start(&place.config("ban: { guard: blacklist, for: 0 }"));
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.keep();
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    assert_eq!(ends(place), 0);
    assert_eq!(instance.banned.lock()[0].length, None);
}

fn a_manual_member_never_expires_until_removed(place: &Place) {
    let by_hand = ["198.51.100.7"];
    place.type_in("SADD", "BlacklistIPsSet", &by_hand).done();
    let config = place.config("ban: { guard: blacklist, for: 1s }, count_banned: true");
    let mut instance = Instance::start(&config);
    // It exceeds the threshold as well, and that does not give its ban an end.
    instance.ask_often(by_hand[0], THRESHOLD);
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.keep();
    until("another ban has come and gone", || {
        instance.status().lifted == 1
    });
    assert!(place.is_in_set(by_hand[0]) && instance.is_kept_out(by_hand[0]));
    assert_eq!(instance.banned(), [("192.0.2.1".to_owned(), THRESHOLD)]);
    place.type_in("SREM", "BlacklistIPsSet", &by_hand).done();
    until("it is let in", || !instance.is_kept_out(by_hand[0]));
}

fn without_a_ban_no_client_is_refused(place: &Place) {
    let mut instance = Instance::start(&place.config(""));
    instance.ask_often("192.0.2.1", 3 * THRESHOLD);
    instance.keep();
    until("the period is closed", || {
        instance.status().closed > 0 && place.sum("CurrentPeriodMap") == 0
    });
    assert!(!place.is_in_set("192.0.2.1"));
    assert_eq!(place.sum("AllIPsMap"), 3 * THRESHOLD);
}

fn in_shadow_mode_bans_are_only_counted(place: &Place) {
    let shadow = format!("mode: shadow{}", place.config(FOR_AN_HOUR));
    let mut instance = Instance::start(&shadow);
    instance.ask_often("192.0.2.1", 3 * THRESHOLD);
    instance.keep();
    until("the period is closed", || {
        instance.status().closed > 0 && place.sum("CurrentPeriodMap") == 0
    });
    assert!(!place.is_in_set("192.0.2.1"), "others may read the set");
    let status = instance.status();
    assert_eq!((status.banned, status.would_ban), (0, 1));
    assert!(instance.ask("192.0.2.1").is_allowed());
}

fn a_disabled_guard_bans_no_client_and_counting_continues(place: &Place) {
    let on = place.config(FOR_AN_HOUR);
    let off = on.replace("name: blacklist,", "name: blacklist, mode: off,");
    let mut instance = Instance::start(&off);
    instance.ask_often("192.0.2.1", 3 * THRESHOLD);
    instance.keep();
    until("the period is closed", || {
        instance.status().closed > 0 && place.sum("CurrentPeriodMap") == 0
    });
    assert!(!place.is_in_set("192.0.2.1"));
    assert_eq!(place.sum("AllIPsMap"), 3 * THRESHOLD);

    instance.reload(&on);
    instance.ask_often("192.0.2.1", 3 * THRESHOLD);
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    instance.reload(&off);
    assert!(!instance.is_kept_out("192.0.2.1"));
    assert!(place.is_in_set("192.0.2.1"), "nothing is forgotten");
    instance.reload(&on);
    assert!(instance.is_kept_out("192.0.2.1"));
}

fn a_disabled_exemption_does_not_prevent_bans(place: &Place) {
    let config = place.config(FOR_AN_HOUR);
    let config = config.replace("name: office,", "name: office, mode: off,");
    let mut instance = Instance::start(&config);
    instance.ask_often(EXEMPT, THRESHOLD);
    instance.keep();
    until("it is in the set", || place.is_in_set(EXEMPT));
}

/// Returns the number of bans with an end.
fn ends(place: &Place) -> i64 {
    place
        .run_in_same_slot("ZCARD", "BlacklistIPsSet", "until", &[])
        .int()
}
