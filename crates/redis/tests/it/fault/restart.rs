//! Servers that restart, with or without their data.

use super::load::{DEADLINE, Load, RECOVERY, alone, forgetful, instances, tokens};
use crate::world;
use tidegate_testkit::redis::{Server, audit};

const CAPACITY: u64 = 40;

fn load() -> Load {
    Load {
        quotas: vec![tokens(20, CAPACITY)],
        subjects: 3,
        tasks: 4,
    }
}

/// Rows 4 and 16: while Redis is down nothing passes. A restart without persistence loses state: at
/// most one capacity per bucket and restart.
#[test]
fn row_4_a_killed_server_costs_at_most_a_capacity_for_each_restart() {
    let _alone = alone();
    let (server, load, losses) = (Server::start(), load(), 2);
    let stores = instances(&world::standalone(&server).timeout(DEADLINE), 2);
    let (recorded, back) = load.run(&stores, |progress| {
        progress.await_answers(300);
        (0..losses)
            .map(|_| {
                server.kill9();
                progress.await_failures(100);
                server.restart();
                let back = progress.await_answers(1);
                progress.await_answers(600);
                back
            })
            .max()
    });
    recorded.report("kill -9 and restart", &load);
    println!("decisions went on after {back:?}");
    assert!(recorded.over(&load) <= losses * CAPACITY);
    assert!(
        recorded.over(&load) >= CAPACITY / 2,
        "the checker detects it"
    );
    assert!(back < Some(RECOVERY), "{back:?}");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// Rows 1, 2 and 12: a paused server replies late or never. The requests that it executes when it
/// continues only reduce admissions.
#[test]
fn row_2_a_paused_server_admits_nothing_more() {
    let _alone = alone();
    let (server, load) = (Server::start(), load());
    let stores = instances(&world::standalone(&server).timeout(DEADLINE), 2);
    let (recorded, back) = load.run(&stores, |progress| {
        progress.await_answers(300);
        (0..3)
            .map(|_| {
                server.stop();
                progress.await_failures(100);
                server.cont();
                let back = progress.await_answers(1);
                progress.await_answers(300);
                back
            })
            .max()
    });
    recorded.report("SIGSTOP and SIGCONT", &load);
    println!("decisions went on after {back:?}");
    assert_eq!(recorded.over(&load), 0);
    assert!(recorded.unknown() > 0);
    assert!(back < Some(RECOVERY), "{back:?}");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// Row 15: forgotten scripts are loaded again, invisibly to callers.
#[test]
fn row_15_script_flush_in_a_loop_costs_a_round_trip_and_nothing_else() {
    let _alone = alone();
    let (server, load) = (Server::start(), load());
    let stores = forgetful(&world::standalone(&server), 2);
    let (recorded, ()) = load.run(&stores, |progress| {
        let mut client = server.client();
        for _ in 0..100 {
            client.command(&["SCRIPT", "FLUSH"]).done();
            progress.await_answers(4);
        }
    });
    recorded.report("SCRIPT FLUSH", &load);
    assert_eq!((recorded.over(&load), recorded.unknown()), (0, 0));
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// Row 16: deleted buckets are full again: one capacity per bucket and deletion.
#[test]
fn row_16_flushall_costs_a_capacity_each_time() {
    let _alone = alone();
    let (server, load, flushes) = (Server::start(), load(), 3);
    let stores = instances(&world::standalone(&server), 2);
    let (recorded, ()) = load.run(&stores, |progress| {
        let mut client = server.client();
        progress.await_answers(400);
        for _ in 0..flushes {
            client.command(&["FLUSHALL"]).done();
            progress.await_answers(600);
        }
    });
    recorded.report("FLUSHALL", &load);
    let over = recorded.over(&load);
    assert!(over <= flushes * CAPACITY, "{over}");
    assert!(over >= CAPACITY / 2, "the checker detects it");
    assert_eq!(recorded.unknown(), 0);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}
