//! The ends of bans, made by any instance, and the time reported to banned clients.

use super::everywhere;
use super::kit::{Instance, Place, THRESHOLD};
use std::time::Duration;
use tidegate_testkit::redis::until;

everywhere! {
    a_temporarily_banned_client_got_no_retry_after
    a_ban_did_not_end_after_ban_was_removed_from_the_config
    a_member_removed_and_added_again_by_hand_is_permanent
}

const FOR_AN_HOUR: &str = "ban: { guard: blacklist, for: 1h }";

fn a_temporarily_banned_client_got_no_retry_after(place: &Place) {
    let by_hand = ["198.51.100.7"];
    place.type_in("SADD", "BlacklistIPsSet", &by_hand).done();
    let mut instance = Instance::start(&place.config(FOR_AN_HOUR));
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.keep();
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    // The set may be read between the ban and the write of its end.
    until("its end is known", || {
        instance.ask("192.0.2.1").banned_for().is_some()
    });
    let refused = instance.ask("192.0.2.1");
    let left = refused.banned_for().expect("it has an end");
    let hour = Duration::from_secs(3_600);
    assert!(left <= hour + Duration::from_secs(1), "{left:?}");
    assert!(left > Duration::from_secs(3_000), "{left:?}");
    assert!(!refused.is_blocked(), "no limit is closed");
    let refused = instance.ask(by_hand[0]);
    assert!(refused.is_denied_by_guard());
    assert_eq!(refused.banned_for(), None, "the outcome is unknown");
    assert_eq!(instance.ask("192.0.2.2").banned_for(), None);

    // A network that was added by hand outlasts any ban in it.
    let network = ["192.0.2.0/24"];
    place.type_in("SADD", "BlacklistIPsSet", &network).done();
    until("it has no end", || {
        instance.ask("192.0.2.1").banned_for().is_none()
    });
    assert!(instance.is_kept_out("192.0.2.1"));
}

fn a_ban_did_not_end_after_ban_was_removed_from_the_config(place: &Place) {
    let mut instance = Instance::start(&place.config("ban: { guard: blacklist, for: 3s }"));
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.keep();
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    // No instance bans any more, and addresses are not even counted.
    let without = place.config("");
    let without: Vec<&str> = without
        .lines()
        .filter(|line| !line.starts_with("addresses:"))
        .collect();
    instance.reload(&without.join("\n"));
    assert!(instance.is_kept_out("192.0.2.1"), "the list is kept");
    until("it is let in again", || !instance.is_kept_out("192.0.2.1"));
    assert!(!place.is_in_set("192.0.2.1"));
    let ends = place.run_in_same_slot("ZCARD", "BlacklistIPsSet", "until", &[]);
    assert_eq!(ends.int(), 0);
}

fn a_member_removed_and_added_again_by_hand_is_permanent(place: &Place) {
    let member = ["192.0.2.1"];
    let instance = Instance::start(&place.config(""));
    let till = ["99999999999999", member[0]];
    place.type_in("SADD", "BlacklistIPsSet", &member).done();
    place
        .run_in_same_slot("ZADD", "BlacklistIPsSet", "until", &till)
        .done();
    until("it is kept out", || instance.is_kept_out(member[0]));
    place.type_in("SREM", "BlacklistIPsSet", &member).done();
    until("its end is forgotten", || {
        let ends = place.run_in_same_slot("ZCARD", "BlacklistIPsSet", "until", &[]);
        ends.int() == 0
    });
    place.type_in("SADD", "BlacklistIPsSet", &member).done();
    until("it is kept out", || instance.is_kept_out(member[0]));
    assert_eq!(instance.ask(member[0]).banned_for(), None);
}

/// Another program's data is stored under the name of the ends.
#[test]
fn unreadable_ban_ends_do_not_prevent_reading_the_set() {
    let place = Place::standalone();
    place
        .type_in("SADD", "BlacklistIPsSet", &["192.0.2.1"])
        .done();
    let words = ["SET", "{BlacklistIPsSet}:until", "not ours"];
    place.server().command(&words).done();
    let instance = Instance::start(&place.config(""));
    assert!(instance.is_kept_out("192.0.2.1"));
    place
        .type_in("SADD", "BlacklistIPsSet", &["192.0.2.2"])
        .done();
    until("it is read again", || instance.is_kept_out("192.0.2.2"));
    place
        .server()
        .command(&["DEL", "{BlacklistIPsSet}:until"])
        .done();
    place
        .run_in_same_slot("ZADD", "BlacklistIPsSet", "until", &["1", "192.0.2.2"])
        .done();
    until("bans end again", || !instance.is_kept_out("192.0.2.2"));
    assert!(instance.is_kept_out("192.0.2.1"));
}

/// The list of all ends may be too long to be read in time, or not readable.
#[test]
fn bans_did_not_end_if_their_ends_could_not_be_listed() {
    let place = Place::standalone();
    let server = place.server();
    server
        .command(&["ACL", "SETUSER", "default", "-zscan"])
        .done();
    let both = ["192.0.2.1", "192.0.2.2"];
    place.type_in("SADD", "BlacklistIPsSet", &both).done();
    let instance = Instance::start(&place.config(""));
    assert!(both.iter().all(|it| instance.is_kept_out(it)));
    place
        .run_in_same_slot("ZADD", "BlacklistIPsSet", "until", &["1", both[1]])
        .done();
    until("its ban ends", || !instance.is_kept_out(both[1]));
    assert!(instance.is_kept_out(both[0]));
}
