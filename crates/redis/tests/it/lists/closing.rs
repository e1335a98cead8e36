//! The end of a period: one instance works it off, whoever dies on the way.

use super::kit::{AGES, Ground, HOUR, ROOMY, add, run};
use std::time::Duration;
use tidegate_redis::{CallError, Census, CensusFigures, Closing, ClosingToken};
use tidegate_testkit::redis::until_some;

everywhere! {
    a_period_is_closed_when_it_is_over
    a_period_without_counts_just_ends
    of_two_instances_at_once_exactly_one_gets_it
    an_owner_that_died_is_taken_over_after_its_lease
    who_asks_again_gets_it_again_and_the_old_token_is_worth_nothing
    a_finish_told_twice_is_done_once
    other_is_counted_and_nobody
    a_clock_set_back_holds_nobody_up
    figures_spoilt_by_hand_are_no_error
    keys_of_another_type_are_errors_that_name_them
}

/// Over when anybody looks.
const NOW: Duration = Duration::ZERO;

/// Short enough to be waited for.
const SHORT: Duration = Duration::from_millis(300);

fn close(census: &mut Census, period: Duration, lease: Duration) -> Closing {
    run(census.close(period, lease)).unwrap()
}

fn mine(closing: Closing) -> ClosingToken {
    match closing {
        Closing::Mine { token } => token,
        other => panic!("it is ours: {other:?}"),
    }
}

/// What the closed map holds, and its sum.
fn read(census: &Census) -> (Vec<(String, u64)>, u64) {
    let mut counts = Vec::new();
    let sum = run(census.scan_closing(|name, count| {
        counts.push((String::from_utf8(name.to_vec()).unwrap(), count));
    }));
    counts.sort_unstable();
    (counts, sum.unwrap())
}

fn figures(census: &Census) -> (u64, u64) {
    let figures = run(census.figures()).unwrap();
    (figures.closed, figures.counted)
}

fn a_period_is_closed_when_it_is_over(ground: &Ground) {
    let mut census = ground.census(ROOMY);
    assert_eq!(run(census.figures()).unwrap(), CensusFigures::default());
    add(&mut census, &[("a", 3), ("b", 4)]);
    let Closing::NotDue { wait } = close(&mut census, HOUR, AGES) else {
        panic!("the first period begins");
    };
    assert!(wait > HOUR / 2 && wait <= HOUR);
    let due = run(census.figures()).unwrap().due.unwrap();
    assert!(due > HOUR / 2 && due <= HOUR);
    // A shorter period from now on.
    let token = until_some("the period ends", || {
        match close(&mut census, SHORT, AGES) {
            Closing::Mine { token } => Some(token),
            Closing::NotDue { wait } => {
                assert!(wait <= SHORT);
                None
            }
            Closing::Busy => panic!("there is nobody else"),
        }
    });
    // Counting goes on in a new map.
    add(&mut census, &[("b", 5)]);
    let expected = vec![("a".to_owned(), 3), ("b".to_owned(), 4)];
    assert_eq!(read(&census), (expected, 7));
    assert_eq!(figures(&census), (0, 0));
    assert!(run(census.finish(&token, 7)).unwrap());
    assert_eq!(figures(&census), (1, 7));
    assert_eq!(read(&census), (vec![], 0));
    assert_eq!(ground.sum(&ground.names().period), 5);
    assert_eq!(ground.sum(&ground.names().total), 12);
}

fn a_period_without_counts_just_ends(ground: &Ground) {
    let mut census = ground.census(ROOMY);
    for closed in 1..4 {
        assert_eq!(close(&mut census, NOW, AGES), Closing::NotDue { wait: NOW });
        assert_eq!(figures(&census), (closed, 0));
    }
    let Closing::NotDue { wait } = close(&mut census, HOUR, AGES) else {
        panic!("nothing was counted");
    };
    assert!(wait > HOUR / 2);
    add(&mut census, &[("a", 1)]);
    let still = close(&mut census, HOUR, AGES);
    assert!(matches!(still, Closing::NotDue { .. }), "{still:?}");
}

fn of_two_instances_at_once_exactly_one_gets_it(ground: &Ground) {
    let names = ground.names();
    let mut first = Census::new(ground.another(), &names, ROOMY);
    let mut second = Census::new(ground.another(), &names, ROOMY);
    for round in 1..=50 {
        add(&mut first, &[("a", 1)]);
        let (a, b) = run(async { tokio::join!(first.close(NOW, AGES), second.close(NOW, AGES)) });
        let (census, token) = match (a.unwrap(), b.unwrap()) {
            (Closing::Mine { token }, Closing::Busy) => (&first, token),
            (Closing::Busy, Closing::Mine { token }) => (&second, token),
            other => panic!("one gets it: {other:?}"),
        };
        assert_eq!(read(census).1, 1);
        assert!(run(census.finish(&token, 1)).unwrap());
        assert_eq!(figures(census), (round, round));
    }
}

fn an_owner_that_died_is_taken_over_after_its_lease(ground: &Ground) {
    let (mut dead, mut heir) = (ground.census(ROOMY), ground.census(ROOMY));
    add(&mut dead, &[("a", 3)]);
    mine(close(&mut dead, NOW, AGES));
    assert_eq!(close(&mut heir, NOW, AGES), Closing::Busy, "not before");
    // The same with less time, and then it is heard of no more.
    let old = mine(close(&mut dead, NOW, SHORT));
    let token = until_some("the lease is over", || match close(&mut heir, NOW, AGES) {
        Closing::Busy => None,
        Closing::Mine { token } => Some(token),
        other @ Closing::NotDue { .. } => panic!("it is to be worked off: {other:?}"),
    });
    assert_eq!(read(&heir).1, 3, "nothing is lost");
    assert!(!run(dead.finish(&old, 3)).unwrap(), "it was taken over");
    assert_eq!(read(&heir).1, 3, "and is still there");
    assert!(run(heir.finish(&token, 3)).unwrap());
    assert!(!run(dead.finish(&old, 3)).unwrap());
    assert_eq!(figures(&heir), (1, 3));
}

fn who_asks_again_gets_it_again_and_the_old_token_is_worth_nothing(ground: &Ground) {
    let (mut census, mut other) = (ground.census(ROOMY), ground.census(ROOMY));
    add(&mut census, &[("a", 3)]);
    let old = mine(close(&mut census, NOW, AGES));
    let token = mine(close(&mut census, NOW, AGES));
    assert_ne!(old, token);
    assert_eq!(close(&mut other, NOW, AGES), Closing::Busy);
    assert!(!run(census.finish(&old, 3)).unwrap());
    assert!(run(census.finish(&token, 3)).unwrap());
    assert_eq!(figures(&census), (1, 3));
}

fn a_finish_told_twice_is_done_once(ground: &Ground) {
    let mut census = ground.census(ROOMY);
    add(&mut census, &[("a", 3)]);
    let token = mine(close(&mut census, NOW, AGES));
    assert!(run(census.finish(&token, 3)).unwrap());
    assert!(run(census.finish(&token, 3)).unwrap(), "it is done");
    assert_eq!(figures(&census), (1, 3));
    // The next closing has nothing to do with it.
    add(&mut census, &[("a", 4)]);
    let next = mine(close(&mut census, NOW, AGES));
    run(census.finish(&token, 3)).unwrap();
    assert_eq!(read(&census).1, 4);
    assert!(run(census.finish(&next, 4)).unwrap());
    assert!(!run(census.finish(&token, 3)).unwrap());
    assert_eq!(figures(&census), (2, 7));
}

fn other_is_counted_and_nobody(ground: &Ground) {
    let mut census = ground.census(ROOMY);
    let key = ground.names().period;
    ground.by_hand(&["HSET", &key, "odd", "many", "other", "100", "below", "-5"]);
    add(&mut census, &[("a", 3), ("odd", 4)]);
    let token = mine(close(&mut census, NOW, AGES));
    assert_eq!(read(&census), (vec![("a".to_owned(), 3)], 107));
    assert!(run(census.finish(&token, 107)).unwrap());
}

fn a_clock_set_back_holds_nobody_up(ground: &Ground) {
    let (mut census, mut heir) = (ground.census(ROOMY), ground.census(ROOMY));
    let state = format!("{{{}}}:period", ground.names().period);
    add(&mut census, &[("a", 3)]);
    // As if it had been written in a year far off.
    ground.by_hand(&["HSET", &state, "due", "99999999999999"]);
    let Closing::NotDue { wait } = close(&mut census, SHORT, AGES) else {
        panic!("a period begins");
    };
    assert!(wait <= SHORT);
    mine(close_in_the_end(&mut census));
    ground.by_hand(&["HSET", &state, "lease", "99999999999999"]);
    let taken = until_some("the lease is over", || match close(&mut heir, NOW, SHORT) {
        Closing::Mine { token } => Some(token),
        _ => None,
    });
    assert!(run(heir.finish(&taken, 3)).unwrap());
}

fn close_in_the_end(census: &mut Census) -> Closing {
    until_some("the period ends", || {
        Some(close(census, SHORT, AGES)).filter(|it| matches!(it, Closing::Mine { .. }))
    })
}

fn figures_spoilt_by_hand_are_no_error(ground: &Ground) {
    let mut census = ground.census(ROOMY);
    let state = format!("{{{}}}:period", ground.names().period);
    ground.by_hand(&["HSET", &state, "due", "soon", "closed", "x", "counted", "y"]);
    assert_eq!(figures(&census), (0, 0));
    assert!(matches!(
        close(&mut census, NOW, AGES),
        Closing::NotDue { .. }
    ));
    assert_eq!(figures(&census), (1, 0));
    add(&mut census, &[("a", 3)]);
    let token = mine(close(&mut census, NOW, AGES));
    assert!(run(census.finish(&token, 3)).unwrap());
    assert_eq!(figures(&census), (2, 3));
}

fn keys_of_another_type_are_errors_that_name_them(ground: &Ground) {
    let mut census = ground.census(ROOMY);
    add(&mut census, &[("a", 3)]);
    let token = mine(close(&mut census, NOW, AGES));
    assert!(run(census.finish(&token, 3)).unwrap());
    let current = ground.names().period;
    let beside = |name: &str| format!("{{{current}}}:{name}");
    let clear = |error: CallError, key: &str| {
        let said = error.to_string();
        assert_eq!(error.code(), Some("WRONGTYPE"), "{said}");
        assert!(said.contains(key) && said.contains("hash"), "{said}");
    };
    for key in [current.clone(), beside("closing"), beside("period")] {
        ground.by_hand(&["DEL", &key]);
        ground.by_hand(&["SET", &key, "text"]);
        clear(run(census.close(NOW, AGES)).unwrap_err(), &key);
        if key != current {
            clear(run(census.finish(&token, 3)).unwrap_err(), &key);
        }
        if key == beside("closing") {
            clear(run(census.scan_closing(|_, _| {})).unwrap_err(), &key);
        }
        if key == beside("period") {
            clear(run(census.figures()).unwrap_err(), &key);
        }
        ground.by_hand(&["DEL", &key]);
    }
}
