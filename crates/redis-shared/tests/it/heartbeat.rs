//! The list of live instances: the version that each serves, in a form that older versions read
//! too.

use crate::world::{self, address};
use std::sync::Arc;
use std::time::Duration;
use tidegate_redis_client::{
    CallError, CallErrorKind, Connection, ConnectionSettings, RedisTopology,
};
use tidegate_redis_shared::{Heartbeat, Roll};
use tidegate_testkit::redis::{Acl, Server, TestLogin, audit, until};
use tokio::task::JoinSet;

const KEY: &str = "tg:instances";

/// The script of older versions: adds the instance, drops expired ones, and counts.
const BEFORE: &str = "\
local now = tonumber(redis.call('TIME')[1])
local gone = tonumber(ARGV[2])
redis.call('ZADD', KEYS[1], ARGV[3] == 'leave' and 0 or now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - gone)
redis.call('PEXPIRE', KEYS[1], 2000 * gone)
return redis.call('ZCARD', KEYS[1])";

fn settings(server: &Server) -> ConnectionSettings {
    world::patient(ConnectionSettings::new(
        RedisTopology::Standalone,
        vec![address(server)],
    ))
}

fn connect(settings: ConnectionSettings) -> Connection {
    let opened = world::runtime().block_on(Connection::open(settings, Vec::new()));
    opened.expect("the server is up")
}

fn start(connection: &Connection) -> Heartbeat {
    let _context = world::runtime().enter();
    Heartbeat::start(connection, "tg:")
}

fn call(heartbeat: &Heartbeat) -> Roll {
    queried_roll(heartbeat).expect("it may be read")
}

/// Returns the live instances, if they may be read.
fn queried_roll(heartbeat: &Heartbeat) -> Option<Roll> {
    let called: Result<_, CallError> = world::runtime().block_on(heartbeat.call());
    called.expect("Redis is up")
}

fn members(server: &Server) -> i64 {
    server.command(&["ZCARD", KEY]).int()
}

/// Returns name and version of each instance.
fn entries_of(roll: &Roll) -> Vec<(&str, Option<&str>)> {
    let each = roll.instances.iter();
    each.map(|it| {
        let version = it.serves.as_ref().map(|it| it.version.as_str());
        (it.name.as_str(), version)
    })
    .collect()
}

#[test]
fn instances_receive_the_config_versions_of_each_other() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let (one, two) = (start(&connection), start(&connection));
    one.announce("0123456789abcdef0123456789abcdef", "0.1.0", "2026e");
    two.announce(
        "0123456789abcdefthe-rest-is-not-told",
        "0.2.0-rc.1+7",
        "2025b",
    );
    until("both say so by themselves", || {
        let all = server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
        all.len() == 2 && all.iter().all(|it| it.contains(" 0123456789abcdef 0."))
    });
    let roll = call(&one);
    let version = Some("0123456789abcdef");
    assert_eq!(
        entries_of(&roll),
        [(one.id(), version), (two.id(), version)]
    );
    assert!(roll.instances[0].is_this && !roll.instances[1].is_this);
    let other = roll.instances[1]
        .serves
        .as_ref()
        .expect("the outcome was reported");
    assert_eq!(other.program, "0.2.0-rc.1+7");
    assert_eq!(other.zones.as_deref(), Some("2025b"));
    assert!(other.since < Duration::from_secs(300), "{other:?}");
    // A new announcement replaces the old one, and no instance is listed twice.
    two.announce("another", "0.2.0", "2026e");
    until("it says so by itself", || {
        let all = server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
        assert_eq!(all.len(), 2, "{all:?}");
        all.iter().any(|it| it.contains(" another 0.2.0 "))
    });
    assert_eq!(entries_of(&call(&one))[1], (two.id(), Some("another")));
    assert_eq!(call(&two).instances.len(), 2);
}

#[test]
fn the_start_time_of_a_version_stays_while_it_is_served() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let one = start(&connection);
    one.announce("same", "1", "2026e");
    let entry = || server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
    call(&one);
    let first = entry();
    assert!(first[0].contains(" same 1 "), "{first:?}");
    for _ in 0..5 {
        one.announce("same", "1", "2026e");
        call(&one);
        assert_eq!(entry(), first);
    }
    // An invalid version is not announced, and the previous one stays.
    one.announce("with a blank", "1", "2026e");
    one.announce("same", "a\nline", "2026e");
    one.announce("same", "1", "a blank");
    call(&one);
    assert_eq!(entry(), first);
}

#[test]
fn old_and_new_instances_count_each_other() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let before = |word: &str| {
        let args = ["before", "15", word];
        let sent = connection.eval(BEFORE, &[KEY], &args);
        format!("{:?}", world::runtime().block_on(sent).expect("it counts"))
    };
    assert_eq!(before("stay"), "int(1)");
    let one = start(&connection);
    for version in ["a", "b", "c"] {
        one.announce(version, "1", "2026e");
        let roll = call(&one);
        let expected = [(one.id(), Some(version)), ("before", None)];
        assert_eq!(entries_of(&roll), expected);
        assert_eq!(before("stay"), "int(2)", "no instance is counted twice");
    }
    assert_eq!(one.live(), 2);
    assert_eq!(before("leave"), "int(1)");
    assert_eq!(entries_of(&call(&one)), [(one.id(), Some("c"))]);
}

#[test]
fn an_instance_that_leaves_disappears_at_once() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let (one, two) = (start(&connection), start(&connection));
    two.announce("a", "1", "2026e");
    call(&two);
    assert_eq!(call(&one).instances.len(), 2);
    world::runtime().block_on(two.close()).expect("it leaves");
    assert_eq!(members(&server), 1);
    two.announce("b", "1", "2026e");
    let called = world::runtime().block_on(two.call());
    assert_eq!(
        called.map_err(|error| error.kind().clone()),
        Err(CallErrorKind::Closed)
    );
    assert_eq!(members(&server), 1);
    assert_eq!(entries_of(&call(&one)), [(one.id(), None)]);
}

#[test]
fn an_instance_without_read_permission_saw_only_itself() {
    let rules = "~tg:* resetchannels -@all +@connection +evalsha +script|load +time +info +role \
                 +zadd +zremrangebyscore +zcard +pexpire";
    let server = Server::builder().acl(Acl::limiter(rules)).start();
    let login = TestLogin::limiter();
    let settings = settings(&server).user(login.user).password(login.password);
    let connection = connect(settings);
    let (one, two) = (start(&connection), start(&connection));
    for version in ["a", "b"] {
        one.announce(version, "1", "2026e");
        for heartbeat in [&one, &two] {
            assert_eq!(queried_roll(heartbeat), None);
            assert_eq!(heartbeat.last_roll(), None);
        }
        assert_eq!(members(&server), 2);
    }
    assert_eq!((one.live(), two.live()), (2, 2));
    world::runtime().block_on(one.close()).expect("it leaves");
    assert_eq!(members(&server), 1);
}

#[test]
fn status_requests_queued_behind_a_hanging_redis() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let one = Arc::new(start(&connection));
    one.announce("a", "1", "2026e");
    call(&one);
    server.stop();
    // So that the cached list is outdated.
    one.announce("b", "1", "2026e");
    let rolls = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let one = Arc::clone(&one);
            tasks.spawn(async move { one.roll(Duration::from_millis(20)).await });
        }
        // Each waits for Redis for at most 10 s: ten of them in sequence would take longer.
        tokio::time::timeout(Duration::from_secs(90), tasks.join_all()).await
    });
    let rolls = rolls.expect("no read waits for another");
    for roll in rolls {
        let roll = roll.expect("a cached roll");
        assert_eq!(entries_of(&roll), [(one.id(), Some("a"))]);
    }
    server.cont();
    until("it is asked as ever", || {
        let roll = world::runtime().block_on(one.roll(Duration::from_secs(10)));
        roll.is_some_and(|roll| entries_of(&roll) == [(one.id(), Some("b"))])
    });
}

#[test]
fn concurrent_status_requests_share_one_call() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let one = Arc::new(start(&connection));
    call(&one);
    let calls = || {
        let stats = server.command(&["INFO", "commandstats"]).text();
        let line = stats.lines().find(|it| it.starts_with("cmdstat_evalsha:"));
        let calls = line.and_then(|it| it.split(['=', ',']).nth(1));
        calls
            .expect("it was called")
            .parse::<u32>()
            .expect("a number of times")
    };
    let before = calls();
    // All of them read while Redis cannot reply.
    server.stop();
    let tasks = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        let (asks, mut asked) = tokio::sync::mpsc::channel(50);
        for _ in 0..50 {
            let (one, asks) = (Arc::clone(&one), asks.clone());
            tasks.spawn(async move {
                asks.send(()).await.expect("the counting task runs");
                one.call().await
            });
        }
        for _ in 0..50 {
            let ask = tokio::time::timeout(Duration::from_secs(60), asked.recv()).await;
            ask.expect("in time").expect("each asks");
        }
        tasks
    });
    server.cont();
    let rolls = world::runtime().block_on(tasks.join_all());
    assert_eq!(rolls.len(), 50);
    assert!(
        rolls.iter().all(|it| matches!(it, Ok(Some(_)))),
        "{rolls:?}"
    );
    // One in flight, one after it, and the regular ones.
    let asked = calls() - before;
    assert!((1..25).contains(&asked), "{asked} times");
    // A list that was just read is not read again.
    let before = calls();
    for _ in 0..20 {
        assert!(
            world::runtime()
                .block_on(one.roll(Duration::from_secs(10)))
                .is_some()
        );
    }
    let asked = calls() - before;
    assert!(asked < 20, "{asked} times");
}

#[test]
fn with_too_many_instances_one_was_listed_twice() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let seconds = || -> u64 {
        let time = server.command(&["TIME"]).texts();
        time[0].parse().expect("a number")
    };
    // All of these are listed before this instance, which is therefore never among those read.
    let (began, others) = (seconds(), 1_200);
    let mut enter = vec!["ZADD".to_owned(), KEY.to_owned()];
    for nth in 0..others {
        enter.extend([began.to_string(), format!("!{nth}")]);
    }
    assert_eq!(server.command(&enter).int(), others);
    let one = start(&connection);
    let own = || {
        let all = server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
        let own = all.into_iter().filter(|it| it.starts_with(one.id()));
        own.collect::<Vec<_>>()
    };
    for version in ["a", "b"] {
        one.announce(version, "1", "2026e");
        call(&one);
        let own = own();
        assert!(own[0].contains(&format!(" {version} 1 ")), "{own:?}");
        assert_eq!(own.len(), 1, "{own:?}");
    }
    // However the seconds are rounded, whose boundaries differ between the machines.
    let first = own();
    while seconds() < began + 3 {
        call(&one);
        assert_eq!(own(), first);
    }
    world::runtime().block_on(one.close()).expect("it leaves");
    assert_eq!(own(), Vec::<String>::new());
}

#[tokio::test]
async fn heartbeats_count_instances() {
    let server = Server::start();
    let connection = Connection::open(settings(&server), vec![]).await.unwrap();
    let members = || server.command(&["ZCARD", "tg:instances"]).int();
    let until = async |count: i64| {
        let wait = async {
            while members() != count {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .expect("heartbeats");
    };
    let first = Heartbeat::start(&connection, "tg:");
    assert_eq!(first.live(), 1);
    until(1).await;
    let second = Heartbeat::start(&connection, "tg:");
    until(2).await;
    let counted = async {
        while second.live() != 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), counted)
        .await
        .unwrap();
    assert!(server.command(&["PTTL", "tg:instances"]).int() > 0);
    second.close().await.unwrap();
    until(1).await;
    assert_eq!(first.live(), 1, "not yet counted again");
}

/// An instance that announces itself leaves no key behind permanently.
#[test]
fn the_list_of_live_instances_expires() {
    let server = Server::start();
    let connections = [(); 2].map(|()| connect(world::standalone(&server)));
    let beats = connections.map(|connection| start(&connection));
    until("both are counted", || members(&server) == 2);
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
    drop(beats);
}
