//! The ends of bans, made by any instance, and the time reported to banned clients.

use super::everywhere;
use super::kit::{Instance, Place, THRESHOLD};
use std::time::Duration;
use tidegate_testkit::redis::until;

everywhere! {
    who_is_banned_for_a_time_was_not_told_when_to_come_back
    a_ban_did_not_end_once_ban_was_taken_out_of_the_configuration
    who_was_let_in_by_hand_and_is_added_by_hand_again_stays
}

const FOR_AN_HOUR: &str = "ban: { guard: blacklist, for: 1h }";

fn who_is_banned_for_a_time_was_not_told_when_to_come_back(place: &Place) {
    let by_hand = ["198.51.100.7"];
    place.type_in("SADD", "BlacklistIPsSet", &by_hand).done();
    let mut instance = Instance::start(&place.config(FOR_AN_HOUR));
    instance.ask_often("192.0.2.1", THRESHOLD);
    instance.keep();
    until("it is kept out", || instance.is_kept_out("192.0.2.1"));
    // The set may be read between the ban and the write of its end.
    until("its end is known", || {
        instance.ask("192.0.2.1").barred_for().is_some()
    });
    let refused = instance.ask("192.0.2.1");
    let left = refused.barred_for().expect("it has an end");
    let hour = Duration::from_hours(1);
    assert!(left <= hour + Duration::from_secs(1), "{left:?}");
    assert!(left > Duration::from_mins(50), "{left:?}");
    assert!(!refused.is_blocked(), "no limit is closed");
    let refused = instance.ask(by_hand[0]);
    assert!(refused.is_barred());
    assert_eq!(refused.barred_for(), None, "nobody knows");
    assert_eq!(instance.ask("192.0.2.2").barred_for(), None);

    // A network that was added by hand outlasts any ban in it.
    let network = ["192.0.2.0/24"];
    place.type_in("SADD", "BlacklistIPsSet", &network).done();
    until("it has no end", || {
        instance.ask("192.0.2.1").barred_for().is_none()
    });
    assert!(instance.is_kept_out("192.0.2.1"));
}

fn a_ban_did_not_end_once_ban_was_taken_out_of_the_configuration(place: &Place) {
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
    let ends = place.beside("ZCARD", "BlacklistIPsSet", "until", &[]);
    assert_eq!(ends.int(), 0);
}

fn who_was_let_in_by_hand_and_is_added_by_hand_again_stays(place: &Place) {
    let member = ["192.0.2.1"];
    let instance = Instance::start(&place.config(""));
    let till = ["99999999999999", member[0]];
    place.type_in("SADD", "BlacklistIPsSet", &member).done();
    place
        .beside("ZADD", "BlacklistIPsSet", "until", &till)
        .done();
    until("it is kept out", || instance.is_kept_out(member[0]));
    place.type_in("SREM", "BlacklistIPsSet", &member).done();
    until("its end is forgotten", || {
        let ends = place.beside("ZCARD", "BlacklistIPsSet", "until", &[]);
        ends.int() == 0
    });
    place.type_in("SADD", "BlacklistIPsSet", &member).done();
    until("it is kept out", || instance.is_kept_out(member[0]));
    assert_eq!(instance.ask(member[0]).barred_for(), None);
}

/// Another program's data is stored under the name of the ends.
#[test]
fn ends_that_cannot_be_read_hinder_nobody_from_reading_the_set() {
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
        .beside("ZADD", "BlacklistIPsSet", "until", &["1", "192.0.2.2"])
        .done();
    until("bans end again", || !instance.is_kept_out("192.0.2.2"));
    assert!(instance.is_kept_out("192.0.2.1"));
}

/// The list of all ends may be too long to be read in time, or not readable.
#[test]
fn bans_did_not_end_where_their_ends_could_not_be_listed() {
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
        .beside("ZADD", "BlacklistIPsSet", "until", &["1", both[1]])
        .done();
    until("its ban ends", || !instance.is_kept_out(both[1]));
    assert!(instance.is_kept_out(both[0]));
}
