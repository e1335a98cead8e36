//! Bans with and without an end.

use super::kit::{AGES, HOUR, TestRedis, run, texts};
use std::time::Duration;
use tidegate_redis_client::slot;
use tidegate_redis_shared::{Bans, LoadError};
use tidegate_testkit::redis::{until, until_some};

everywhere! {
    a_repeated_ban_is_announced_and_expires
    a_ban_expires_by_the_server_clock_and_is_announced_once
    a_member_added_by_hand_never_expires
    a_member_readded_by_hand_around_a_refresh_never_expires
    a_ban_never_ends_early
    a_permanent_ban_removes_the_end
    an_unban_releases_any_member
    thousands_of_bans_end_together
    a_set_with_braces_has_its_ends_in_the_same_slot
    keys_of_another_type_are_errors_that_name_them
}

/// Expired by the time of the next read.
const MOMENT: Duration = Duration::from_millis(1);

fn bans(ground: &TestRedis) -> Bans {
    Bans::new(ground.connection.clone(), ground.name("Blacklist"))
}

fn ban(bans: &Bans, members: &[&str], length: Option<Duration>) -> Vec<String> {
    texts(run(bans.ban(members, length)).unwrap())
}

fn banned(ground: &TestRedis, bans: &Bans) -> Vec<String> {
    texts(run(ground.sets().members(bans.set(), 100_000, AGES)).unwrap())
}

fn ends(bans: &Bans) -> Vec<(String, Duration)> {
    let ends = run(bans.ends(100_000, AGES)).unwrap();
    let mut ends: Vec<_> = ends
        .into_iter()
        .map(|(member, left)| (String::from_utf8(member).unwrap(), left))
        .collect();
    ends.sort_unstable();
    ends
}

fn names_of(ends: &[(String, Duration)]) -> Vec<&str> {
    ends.iter().map(|(member, _)| member.as_str()).collect()
}

/// Refreshes until a ban ends.
fn lifted(bans: &Bans) -> Vec<String> {
    until_some("a ban ends", || {
        let lifted = run(bans.expire()).unwrap();
        (!lifted.is_empty()).then(|| texts(lifted))
    })
}

/// Waits until a short ban has expired, so that everything that expired before it is removed too.
fn a_moment_passes(bans: &Bans) {
    ban(bans, &["a moment"], Some(MOMENT));
    assert!(lifted(bans).contains(&"a moment".to_owned()));
}

fn a_repeated_ban_is_announced_and_expires(ground: &TestRedis) {
    let bans = bans(ground);
    assert_eq!(ban(&bans, &["a", "b"], Some(HOUR)), ["a", "b"]);
    assert_eq!(ban(&bans, &["b", "c"], Some(HOUR)), ["c"]);
    assert_eq!(ban(&bans, &[], Some(HOUR)), [""; 0]);
    assert_eq!(banned(ground, &bans), ["a", "b", "c"]);
    let ends = ends(&bans);
    assert_eq!(names_of(&ends), ["a", "b", "c"]);
    for (member, left) in ends {
        let is_right = left <= HOUR + MOMENT && left > HOUR / 2;
        assert!(is_right, "{member}: {left:?}");
    }
    assert!(run(bans.expire()).unwrap().is_empty());
    let error = run(bans.ends(2, AGES)).unwrap_err();
    assert!(matches!(error, LoadError::TooMany { max: 2, .. }));
}

fn a_ban_expires_by_the_server_clock_and_is_announced_once(ground: &TestRedis) {
    let bans = bans(ground);
    let another = Bans::new(ground.another(), bans.set());
    ban(&bans, &["short"], Some(MOMENT));
    ban(&bans, &["long"], Some(HOUR));
    let mut told = Vec::new();
    until("the short ban ends", || {
        let (a, b) = run(async { tokio::join!(bans.expire(), another.expire()) });
        told.extend(a.unwrap());
        told.extend(b.unwrap());
        !told.is_empty()
    });
    assert_eq!(told, [b"short"]);
    assert!(run(bans.expire()).unwrap().is_empty());
    assert_eq!(banned(ground, &bans), ["long"]);
    assert_eq!(names_of(&ends(&bans)), ["long"]);
}

fn a_member_added_by_hand_never_expires(ground: &TestRedis) {
    let bans = bans(ground);
    let set = ground.name("Blacklist");
    ground.by_hand(&["SADD", &set, "by hand"]);
    assert_eq!(ban(&bans, &["by hand", "ours"], Some(MOMENT)), ["ours"]);
    assert_eq!(lifted(&bans), ["ours"]);
    a_moment_passes(&bans);
    assert_eq!(banned(ground, &bans), ["by hand"]);
    assert_eq!(ends(&bans), []);
}

fn a_member_readded_by_hand_around_a_refresh_never_expires(ground: &TestRedis) {
    let bans = bans(ground);
    let set = ground.name("Blacklist");
    // Removed, refreshed, added: the refresh drops the old end.
    ban(&bans, &["a", "b", "c", "d"], Some(HOUR));
    ground.by_hand(&["SREM", &set, "a", "b", "c"]);
    assert!(run(bans.expire()).unwrap().is_empty(), "the bans are gone");
    assert_eq!(names_of(&ends(&bans)), ["d"]);
    ground.by_hand(&["SADD", &set, "a"]);
    // Banned again before it is added by hand, removed again, refreshed, and added.
    ban(&bans, &["b"], Some(MOMENT));
    ground.by_hand(&["SREM", &set, "b"]);
    run(bans.expire()).unwrap();
    ground.by_hand(&["SADD", &set, "b"]);
    // Added by hand, then banned: it stays permanent.
    ground.by_hand(&["SADD", &set, "c"]);
    assert!(ban(&bans, &["a", "b", "c"], Some(MOMENT)).is_empty());
    a_moment_passes(&bans);
    assert_eq!(banned(ground, &bans), ["a", "b", "c", "d"]);
    assert_eq!(names_of(&ends(&bans)), ["d"]);
}

fn a_ban_never_ends_early(ground: &TestRedis) {
    let bans = bans(ground);
    ban(&bans, &["a"], Some(HOUR));
    assert!(ban(&bans, &["a"], Some(MOMENT)).is_empty());
    assert!(ends(&bans)[0].1 > HOUR / 2);
    assert!(ban(&bans, &["a"], Some(HOUR * 2)).is_empty());
    assert!(ends(&bans)[0].1 > HOUR, "longer is longer");
    // A member that was removed by hand and returns is a new ban with a new end.
    ground.by_hand(&["SREM", &ground.name("Blacklist"), "a"]);
    assert_eq!(ban(&bans, &["a"], Some(MOMENT)), ["a"]);
    assert_eq!(lifted(&bans), ["a"]);
    // Durations beyond any clock are no error.
    ban(&bans, &["b"], Some(Duration::MAX));
    assert!(ends(&bans)[0].1 > HOUR * 1_000);
}

fn a_permanent_ban_removes_the_end(ground: &TestRedis) {
    let bans = bans(ground);
    ban(&bans, &["a"], Some(HOUR));
    assert_eq!(ban(&bans, &["a", "b"], None), ["b"]);
    assert_eq!(ends(&bans), []);
    assert!(ban(&bans, &["a", "b"], Some(MOMENT)).is_empty());
    a_moment_passes(&bans);
    assert_eq!(banned(ground, &bans), ["a", "b"]);
}

fn an_unban_releases_any_member(ground: &TestRedis) {
    let bans = bans(ground);
    ban(&bans, &["ours"], Some(HOUR));
    ground.by_hand(&["SADD", &ground.name("Blacklist"), "by hand"]);
    for member in ["ours", "by hand"] {
        assert!(run(bans.unban(member)).unwrap());
        assert!(!run(bans.unban(member)).unwrap(), "the ban has ended");
    }
    assert_eq!(banned(ground, &bans), [""; 0]);
    assert_eq!(ends(&bans), []);
}

fn thousands_of_bans_end_together(ground: &TestRedis) {
    let bans = bans(ground);
    let members: Vec<String> = (0..3_500).map(|i| format!("{i:04}")).collect();
    let words: Vec<&str> = members.iter().map(String::as_str).collect();
    // Half of them left the set and half of them expired, so each step has work with both.
    assert_eq!(ban(&bans, &words[..2_500], Some(MOMENT)).len(), 2_500);
    assert_eq!(ban(&bans, &words[2_500..], Some(HOUR)).len(), 1_000);
    let set = ground.name("Blacklist");
    let mut command = vec!["SREM", &set];
    command.extend(&words[2_500..3_499]);
    ground.by_hand(&command);
    let mut told = Vec::new();
    until("the bans end", || {
        told.extend(texts(run(bans.expire()).unwrap()));
        told.len() >= 2_500
    });
    told.sort_unstable();
    assert!(told == words[..2_500]);
    assert_eq!(names_of(&ends(&bans)), ["3499"]);
    assert_eq!(banned(ground, &bans), ["3499"]);
}

fn a_set_with_braces_has_its_ends_in_the_same_slot(ground: &TestRedis) {
    for name in ["{tag}set", "se{t", "odd}name", "{}set", "a}{b"] {
        let set = ground.name(name);
        let bans = Bans::new(ground.connection.clone(), set.as_str());
        assert_eq!(slot(bans.until()), slot(bans.set()), "{name}");
        ban(&bans, &["a"], Some(HOUR));
        assert_eq!(names_of(&ends(&bans)), ["a"], "{name}");
        assert_eq!(ground.int(&["SISMEMBER", &set, "a"]), 1, "{name}");
    }
}

fn keys_of_another_type_are_errors_that_name_them(ground: &TestRedis) {
    let bans = bans(ground);
    let clear = |key: &str, kind: &str| {
        let errors = [
            run(bans.ban(&["a"], Some(HOUR))).unwrap_err(),
            run(bans.ban(&["a"], None)).unwrap_err(),
            run(bans.expire()).unwrap_err(),
            run(bans.unban("a")).unwrap_err(),
        ];
        for error in errors {
            let said = error.to_string();
            assert_eq!(error.code(), Some("WRONGTYPE"), "{said}");
            assert!(said.contains(key) && said.contains(kind), "{said}");
        }
    };
    let until = String::from_utf8(bans.until().to_vec()).unwrap();
    ground.by_hand(&["SET", &until, "text"]);
    clear(&until, "should hold one of type zset");
    assert_eq!(
        banned(ground, &bans),
        [""; 0],
        "no address is banned partly"
    );
    let error = run(bans.ends(10, AGES)).unwrap_err();
    assert!(error.to_string().contains("does not hold a sorted set"));
    ground.by_hand(&["DEL", &until]);
    let set = ground.name("Blacklist");
    ground.by_hand(&["SET", &set, "text"]);
    clear(&set, "should hold one of type set");
    assert_eq!(ground.int(&["EXISTS", &until]), 0);
}
