//! The end of a period: one instance closes it, even if instances die on the way.

use super::kit::{AGES, HOUR, ROOMY, TestRedis, add, run};
use std::time::Duration;
use tidegate_redis_client::CallError;
use tidegate_redis_shared::{Census, CensusFigures, ClosingToken, PeriodClose};
use tidegate_testkit::redis::until_some;

everywhere! {
    a_period_is_closed_when_it_is_over
    a_period_without_counts_just_ends
    of_two_instances_at_once_exactly_one_gets_it
    an_owner_that_died_is_taken_over_after_its_lease
    a_repeated_claim_succeeds_and_invalidates_the_old_token
    a_repeated_finish_takes_effect_once
    other_is_counted_but_never_a_member
    a_clock_set_back_delays_no_closing
    figures_damaged_by_hand_are_no_error
    keys_of_another_type_are_errors_that_name_them
}

/// Expired immediately.
const NOW: Duration = Duration::ZERO;

/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

fn close(census: &mut Census, period: Duration, lease: Duration) -> PeriodClose {
    run(census.close(period, lease)).unwrap()
}

fn expect_token(closing: PeriodClose) -> ClosingToken {
    match closing {
        PeriodClose::Mine { token } => token,
        other => panic!("the lease is ours: {other:?}"),
    }
}

/// Returns the counts of the closed map, and its sum.
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

fn a_period_is_closed_when_it_is_over(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    assert_eq!(run(census.figures()).unwrap(), CensusFigures::default());
    add(&mut census, &[("a", 3), ("b", 4)]);
    let PeriodClose::NotDue { wait } = close(&mut census, HOUR, AGES) else {
        panic!("the first period begins");
    };
    assert!(wait > HOUR / 2 && wait <= HOUR);
    let due = run(census.figures()).unwrap().due.unwrap();
    assert!(due > HOUR / 2 && due <= HOUR);
    // A shorter period from now on.
    let token = until_some("the period ends", || {
        match close(&mut census, SHORT, AGES) {
            PeriodClose::Mine { token } => Some(token),
            PeriodClose::NotDue { wait } => {
                assert!(wait <= SHORT);
                None
            }
            PeriodClose::Busy => panic!("no other instance"),
        }
    });
    // Counting continues in a new map.
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

fn a_period_without_counts_just_ends(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    for closed in 1..4 {
        assert_eq!(
            close(&mut census, NOW, AGES),
            PeriodClose::NotDue { wait: NOW }
        );
        assert_eq!(figures(&census), (closed, 0));
    }
    let PeriodClose::NotDue { wait } = close(&mut census, HOUR, AGES) else {
        panic!("nothing was counted");
    };
    assert!(wait > HOUR / 2);
    add(&mut census, &[("a", 1)]);
    let still = close(&mut census, HOUR, AGES);
    assert!(matches!(still, PeriodClose::NotDue { .. }), "{still:?}");
}

fn of_two_instances_at_once_exactly_one_gets_it(ground: &TestRedis) {
    let names = ground.names();
    let mut first = Census::new(ground.another(), &names, ROOMY);
    let mut second = Census::new(ground.another(), &names, ROOMY);
    for round in 1..=50 {
        add(&mut first, &[("a", 1)]);
        let (a, b) = run(async { tokio::join!(first.close(NOW, AGES), second.close(NOW, AGES)) });
        let (census, token) = match (a.unwrap(), b.unwrap()) {
            (PeriodClose::Mine { token }, PeriodClose::Busy) => (&first, token),
            (PeriodClose::Busy, PeriodClose::Mine { token }) => (&second, token),
            other => panic!("exactly one instance gets it: {other:?}"),
        };
        assert_eq!(read(census).1, 1);
        assert!(run(census.finish(&token, 1)).unwrap());
        assert_eq!(figures(census), (round, round));
    }
}

fn an_owner_that_died_is_taken_over_after_its_lease(ground: &TestRedis) {
    let (mut dead, mut heir) = (ground.census(ROOMY), ground.census(ROOMY));
    add(&mut dead, &[("a", 3)]);
    expect_token(close(&mut dead, NOW, AGES));
    assert_eq!(close(&mut heir, NOW, AGES), PeriodClose::Busy, "not before");
    // The same with a shorter lease; then this instance is silent.
    let old = expect_token(close(&mut dead, NOW, SHORT));
    let token = until_some("the lease is over", || match close(&mut heir, NOW, AGES) {
        PeriodClose::Busy => None,
        PeriodClose::Mine { token } => Some(token),
        other @ PeriodClose::NotDue { .. } => panic!("the map is to be closed: {other:?}"),
    });
    assert_eq!(read(&heir).1, 3, "nothing is lost");
    assert!(!run(dead.finish(&old, 3)).unwrap(), "it was taken over");
    assert_eq!(read(&heir).1, 3, "and is still there");
    assert!(run(heir.finish(&token, 3)).unwrap());
    assert!(!run(dead.finish(&old, 3)).unwrap());
    assert_eq!(figures(&heir), (1, 3));
}

fn a_repeated_claim_succeeds_and_invalidates_the_old_token(ground: &TestRedis) {
    let (mut census, mut other) = (ground.census(ROOMY), ground.census(ROOMY));
    add(&mut census, &[("a", 3)]);
    let old = expect_token(close(&mut census, NOW, AGES));
    let token = expect_token(close(&mut census, NOW, AGES));
    assert_ne!(old, token);
    assert_eq!(close(&mut other, NOW, AGES), PeriodClose::Busy);
    assert!(!run(census.finish(&old, 3)).unwrap());
    assert!(run(census.finish(&token, 3)).unwrap());
    assert_eq!(figures(&census), (1, 3));
}

fn a_repeated_finish_takes_effect_once(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    add(&mut census, &[("a", 3)]);
    let token = expect_token(close(&mut census, NOW, AGES));
    assert!(run(census.finish(&token, 3)).unwrap());
    assert!(run(census.finish(&token, 3)).unwrap(), "it is done");
    assert_eq!(figures(&census), (1, 3));
    // The next closing is independent of it.
    add(&mut census, &[("a", 4)]);
    let next = expect_token(close(&mut census, NOW, AGES));
    run(census.finish(&token, 3)).unwrap();
    assert_eq!(read(&census).1, 4);
    assert!(run(census.finish(&next, 4)).unwrap());
    assert!(!run(census.finish(&token, 3)).unwrap());
    assert_eq!(figures(&census), (2, 7));
}

fn other_is_counted_but_never_a_member(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let key = ground.names().period;
    ground.by_hand(&["HSET", &key, "odd", "many", "other", "100", "below", "-5"]);
    add(&mut census, &[("a", 3), ("odd", 4)]);
    let token = expect_token(close(&mut census, NOW, AGES));
    assert_eq!(read(&census), (vec![("a".to_owned(), 3)], 107));
    assert!(run(census.finish(&token, 107)).unwrap());
}

fn a_clock_set_back_delays_no_closing(ground: &TestRedis) {
    let (mut census, mut heir) = (ground.census(ROOMY), ground.census(ROOMY));
    let state = format!("{{{}}}:period", ground.names().period);
    add(&mut census, &[("a", 3)]);
    // As if it had been written in the far future.
    ground.by_hand(&["HSET", &state, "due", "99999999999999"]);
    let PeriodClose::NotDue { wait } = close(&mut census, SHORT, AGES) else {
        panic!("a period begins");
    };
    assert!(wait <= SHORT);
    expect_token(close_in_the_end(&mut census));
    ground.by_hand(&["HSET", &state, "lease", "99999999999999"]);
    let taken = until_some("the lease is over", || match close(&mut heir, NOW, SHORT) {
        PeriodClose::Mine { token } => Some(token),
        _ => None,
    });
    assert!(run(heir.finish(&taken, 3)).unwrap());
}

fn close_in_the_end(census: &mut Census) -> PeriodClose {
    until_some("the period ends", || {
        Some(close(census, SHORT, AGES)).filter(|it| matches!(it, PeriodClose::Mine { .. }))
    })
}

fn figures_damaged_by_hand_are_no_error(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    let state = format!("{{{}}}:period", ground.names().period);
    ground.by_hand(&["HSET", &state, "due", "soon", "closed", "x", "counted", "y"]);
    assert_eq!(figures(&census), (0, 0));
    assert!(matches!(
        close(&mut census, NOW, AGES),
        PeriodClose::NotDue { .. }
    ));
    assert_eq!(figures(&census), (1, 0));
    add(&mut census, &[("a", 3)]);
    let token = expect_token(close(&mut census, NOW, AGES));
    assert!(run(census.finish(&token, 3)).unwrap());
    assert_eq!(figures(&census), (2, 3));
}

fn keys_of_another_type_are_errors_that_name_them(ground: &TestRedis) {
    let mut census = ground.census(ROOMY);
    add(&mut census, &[("a", 3)]);
    let token = expect_token(close(&mut census, NOW, AGES));
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
