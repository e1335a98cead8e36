//! Instances that hear of each other: what each serves, in words that one of before understands too.

use crate::world::{self, address};
use std::sync::Arc;
use std::time::Duration;
use tidegate_redis::{
    CallError, CallErrorKind, Connection, ConnectionSettings, Heartbeat, RedisTopology, Roll,
};
use tidegate_testkit::redis::{Acl, Server, TestLogin, until};
use tokio::task::JoinSet;

const KEY: &str = "tg:instances";

/// What instances of before send: enters us, drops those that are gone, and counts.
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
    opened.expect("it is there")
}

fn start(connection: &Connection) -> Heartbeat {
    let _context = world::runtime().enter();
    Heartbeat::start(connection, "tg:")
}

fn call(heartbeat: &Heartbeat) -> Roll {
    asked(heartbeat).expect("it may be read")
}

/// Who is there, where that may be read.
fn asked(heartbeat: &Heartbeat) -> Option<Roll> {
    let called: Result<_, CallError> = world::runtime().block_on(heartbeat.call());
    called.expect("Redis is there")
}

fn members(server: &Server) -> i64 {
    server.command(&["ZCARD", KEY]).int()
}

/// Name and version of each.
fn told(roll: &Roll) -> Vec<(&str, Option<&str>)> {
    let each = roll.instances.iter();
    each.map(|it| {
        let version = it.serves.as_ref().map(|it| it.version.as_str());
        (it.name.as_str(), version)
    })
    .collect()
}

#[test]
fn instances_hear_what_each_of_them_serves() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let (one, two) = (start(&connection), start(&connection));
    one.tell("0123456789abcdef0123456789abcdef", "0.1.0");
    two.tell("0123456789abcdefthe-rest-is-not-told", "0.2.0-rc.1+7");
    until("both say so by themselves", || {
        let all = server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
        all.len() == 2 && all.iter().all(|it| it.contains(" 0123456789abcdef 0."))
    });
    let roll = call(&one);
    let version = Some("0123456789abcdef");
    assert_eq!(told(&roll), [(one.id(), version), (two.id(), version)]);
    assert!(roll.instances[0].is_this && !roll.instances[1].is_this);
    let other = roll.instances[1].serves.as_ref().expect("it was told");
    assert_eq!(other.program, "0.2.0-rc.1+7");
    assert!(other.since < Duration::from_mins(5), "{other:?}");
    // What it says next takes the place of what it said, and nobody is there twice.
    two.tell("another", "0.2.0");
    until("it says so by itself", || {
        let all = server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
        assert_eq!(all.len(), 2, "{all:?}");
        all.iter().any(|it| it.contains(" another 0.2.0 "))
    });
    assert_eq!(told(&call(&one))[1], (two.id(), Some("another")));
    assert_eq!(call(&two).instances.len(), 2);
}

#[test]
fn since_when_does_not_change_while_the_same_is_served() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let one = start(&connection);
    one.tell("same", "1");
    let entry = || server.command(&["ZRANGE", KEY, "0", "-1"]).texts();
    call(&one);
    let first = entry();
    assert!(first[0].contains(" same 1 "), "{first:?}");
    for _ in 0..5 {
        one.tell("same", "1");
        call(&one);
        assert_eq!(entry(), first);
    }
    // What cannot be said is not, and what was said stays.
    one.tell("with a blank", "1");
    one.tell("same", "a\nline");
    call(&one);
    assert_eq!(entry(), first);
}

#[test]
fn instances_of_before_and_these_count_each_other() {
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
        one.tell(version, "1");
        let roll = call(&one);
        let expected = [(one.id(), Some(version)), ("before", None)];
        assert_eq!(told(&roll), expected);
        assert_eq!(before("stay"), "int(2)", "nobody is counted twice");
    }
    assert_eq!(one.live(), 2);
    assert_eq!(before("leave"), "int(1)");
    assert_eq!(told(&call(&one)), [(one.id(), Some("c"))]);
}

#[test]
fn whoever_leaves_is_gone_at_once_and_does_not_come_back() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let (one, two) = (start(&connection), start(&connection));
    two.tell("a", "1");
    call(&two);
    assert_eq!(call(&one).instances.len(), 2);
    world::runtime().block_on(two.close()).expect("it leaves");
    assert_eq!(members(&server), 1);
    two.tell("b", "1");
    let called = world::runtime().block_on(two.call());
    assert_eq!(
        called.map_err(|error| error.kind().clone()),
        Err(CallErrorKind::Closed)
    );
    assert_eq!(members(&server), 1);
    assert_eq!(told(&call(&one)), [(one.id(), None)]);
}

#[test]
fn who_may_not_read_the_list_is_counted_and_saw_itself_alone_and_in_agreement() {
    let rules = "~tg:* resetchannels -@all +@connection +evalsha +script|load +time +info +role \
                 +zadd +zremrangebyscore +zcard +pexpire";
    let server = Server::builder().acl(Acl::limiter(rules)).start();
    let login = TestLogin::limiter();
    let settings = settings(&server).user(login.user).password(login.password);
    let connection = connect(settings);
    let (one, two) = (start(&connection), start(&connection));
    for version in ["a", "b"] {
        one.tell(version, "1");
        for heartbeat in [&one, &two] {
            assert_eq!(asked(heartbeat), None);
            assert_eq!(heartbeat.heard(), None);
        }
        assert_eq!(members(&server), 2);
    }
    assert_eq!((one.live(), two.live()), (2, 2));
    world::runtime().block_on(one.close()).expect("it leaves");
    assert_eq!(members(&server), 1);
}

#[test]
fn those_who_ask_stood_in_line_behind_a_redis_that_hangs() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let one = Arc::new(start(&connection));
    one.tell("a", "1");
    call(&one);
    server.stop();
    // So that what was heard does not do.
    one.tell("b", "1");
    let rolls = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        for _ in 0..20 {
            let one = Arc::clone(&one);
            tasks.spawn(async move { one.roll(Duration::from_millis(20)).await });
        }
        // Each waits 10 s for Redis at most: not even ten of them in a line would be done.
        tokio::time::timeout(Duration::from_secs(90), tasks.join_all()).await
    });
    let rolls = rolls.expect("nobody waits for another");
    for roll in rolls {
        let roll = roll.expect("it was heard before");
        assert_eq!(told(&roll), [(one.id(), Some("a"))]);
    }
    server.cont();
    until("it is asked as ever", || {
        let roll = world::runtime().block_on(one.roll(Duration::from_secs(10)));
        roll.is_some_and(|roll| told(&roll) == [(one.id(), Some("b"))])
    });
}

#[test]
fn all_who_ask_at_one_time_share_what_is_asked() {
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
            .expect("so often")
    };
    let before = calls();
    // All of them ask while nothing can be answered.
    server.stop();
    let tasks = world::runtime().block_on(async {
        let mut tasks = JoinSet::new();
        let (asks, mut asked) = tokio::sync::mpsc::channel(50);
        for _ in 0..50 {
            let (one, asks) = (Arc::clone(&one), asks.clone());
            tasks.spawn(async move {
                asks.send(()).await.expect("somebody counts");
                one.call().await
            });
        }
        for _ in 0..50 {
            asked.recv().await.expect("each asks");
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
    // One under way, one after it, and those that come by themselves.
    let asked = calls() - before;
    assert!((1..25).contains(&asked), "{asked} times");
    // And what was heard a moment ago is not asked again.
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
fn one_of_more_than_are_read_was_there_twice() {
    let server = Server::start();
    let connection = connect(settings(&server));
    let seconds = || -> u64 {
        let time = server.command(&["TIME"]).texts();
        time[0].parse().expect("a number")
    };
    // All of these are heard of before us, and so we are never among those that are read.
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
        one.tell(version, "1");
        call(&one);
        let own = own();
        assert!(own[0].contains(&format!(" {version} 1 ")), "{own:?}");
        assert_eq!(own.len(), 1, "{own:?}");
    }
    // However the seconds are rounded, which are over at another moment here than there.
    let first = own();
    while seconds() < began + 3 {
        call(&one);
        assert_eq!(own(), first);
    }
    world::runtime().block_on(one.close()).expect("it leaves");
    assert_eq!(own(), Vec::<String>::new());
}
