use super::{HOUR_US, MINUTE_US, SECOND_US, built, drain, take, virtual_time};
use crate::fault::load::instances;
use crate::world;
use tidegate_core::{Algorithm, Align, Ask, Clock, Quota, Store};
use tidegate_testkit::laws::StoreUnderTest;
use tidegate_testkit::redis::{Server, audit};

fn window(amount: u64, period_us: u64, algorithm: Algorithm) -> Quota {
    built(Quota::new(amount, period_us).algorithm(algorithm))
}

/// System 003 counted before it added: a limit of five admitted six.
#[test]
fn system_003_a_limit_of_five_admits_five() {
    let world = virtual_time();
    let quota = window(5, MINUTE_US, Algorithm::SlidingLog);
    for remaining in (0..5).rev() {
        let reply = take(&world, "p/ip/a", &quota, 1);
        assert!(reply.passed);
        assert_eq!(reply.outcomes[0].remaining, remaining);
        world.advance_micros(SECOND_US);
    }
    assert!(!take(&world, "p/ip/a", &quota, 1).passed);
}

/// System 003 added refused requests: a client that kept retrying stayed banned.
#[test]
fn system_003_refused_hits_do_not_extend_the_ban() {
    let world = virtual_time();
    let quota = window(5, MINUTE_US, Algorithm::SlidingLog);
    assert_eq!(drain(&world, "p/ip/b", &quota), 5);
    for _ in 0..59 {
        world.advance_micros(SECOND_US);
        assert!(!take(&world, "p/ip/b", &quota, 1).passed);
    }
    world.advance_micros(SECOND_US - 1);
    assert!(!take(&world, "p/ip/b", &quota, 1).passed);
    world.advance_micros(1);
    assert_eq!(drain(&world, "p/ip/b", &quota), 5);
}

/// System 003 named its entries by their instant: several at one instant counted as one.
#[test]
fn system_003_entries_of_one_instant_all_count() {
    let world = virtual_time();
    for algorithm in [Algorithm::SlidingLog, Algorithm::BucketedWindow] {
        let quota = window(40, MINUTE_US, algorithm);
        assert_eq!(drain(&world, "p/ip/c", &quota), 40, "{algorithm:?}");
    }
}

/// System 003 decided in several steps: all concurrent requests between them were admitted.
#[test]
fn system_003_racing_instances_admit_the_limit() {
    let server = world::shared_server();
    let stores = instances(&world::standalone(server), 4);
    let quota = window(5, HOUR_US, Algorithm::SlidingLog);
    let passed = world::runtime().block_on(async {
        let mut tasks = tokio::task::JoinSet::new();
        for store in stores {
            for _ in 0..10 {
                let store = store.clone();
                tasks.spawn(async move {
                    let reply = store.decide(&[Ask::take(b"p/ip/race", &quota, 1)]).await;
                    reply.expect("the store answers").passed
                });
            }
        }
        tasks
            .join_all()
            .await
            .into_iter()
            .filter(|passed| *passed)
            .count()
    });
    assert_eq!(passed, 5);
}

/// System 000 kept all projects in one hash without expiry, and counted in seconds of its clients'
/// clocks.
#[test]
fn system_000_each_bucket_has_a_key_that_expires_and_a_window_to_the_microsecond() {
    let server = Server::start();
    let store = instances(&world::standalone(&server), 1).remove(0);
    let quota = window(3, MINUTE_US, Algorithm::FixedWindow(Align::FirstRequest));
    for project in 0..50 {
        let name = format!("p/projects/{project}");
        let reply =
            world::runtime().block_on(store.decide(&[Ask::take(name.as_bytes(), &quota, 1)]));
        assert!(reply.is_ok_and(|reply| reply.passed));
    }
    assert_eq!(server.command(&["DBSIZE"]).int(), 50);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());

    let world = virtual_time();
    world.advance_micros(123_457);
    assert_eq!(drain(&world, "p/projects/a", &quota), 3);
    world.advance_micros(MINUTE_US - 1);
    assert_eq!(drain(&world, "p/projects/a", &quota), 0);
    world.advance_micros(1);
    assert_eq!(drain(&world, "p/projects/a", &quota), 3);
}

/// System 000's windows admitted twice the limit around a window's edge; a sliding window does not.
#[test]
fn system_000_a_sliding_window_has_no_edge_to_gather_at() {
    let world = virtual_time();
    for algorithm in [
        Algorithm::SlidingWindow,
        Algorithm::SlidingLog,
        Algorithm::BucketedWindow,
    ] {
        let quota = window(60, MINUTE_US, algorithm);
        // A second before the edge of a minute, then one after it.
        let to_edge = MINUTE_US - world.clock.now().as_micros() % MINUTE_US;
        world.advance_micros(to_edge + MINUTE_US - SECOND_US);
        let before = drain(&world, "p/projects/edge", &quota);
        world.advance_micros(2 * SECOND_US);
        let after = drain(&world, "p/projects/edge", &quota);
        assert_eq!(before, 60, "{algorithm:?}");
        assert!(after <= 1, "{algorithm:?}: {after}");
        world.advance_micros(3 * MINUTE_US);
    }
}

/// Upstash's sliding window ignored the cost in its check, and rounded down the units left from the
/// last window.
#[test]
fn upstash_a_sliding_window_checks_the_whole_cost() {
    let world = virtual_time();
    let quota = window(10, MINUTE_US, Algorithm::SlidingWindow);
    let to_edge = MINUTE_US - world.clock.now().as_micros() % MINUTE_US;
    world.advance_micros(to_edge);
    assert!(take(&world, "p/limit/swc", &quota, 9).passed);
    assert!(!take(&world, "p/limit/swc", &quota, 2).passed, "9 + 2 > 10");
    // A third into the next window, six of the nine still count.
    world.advance_micros(MINUTE_US + MINUTE_US / 3);
    assert!(take(&world, "p/limit/swc", &quota, 4).passed);
    // A microsecond later nearly six of them count, and are not rounded to five.
    world.advance_micros(1);
    assert!(!take(&world, "p/limit/swc", &quota, 1).passed);
}
