//! Servers that reply with an error.

use super::load::{connect, forgetful};
use crate::world;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;
use std::time::Duration;
use tidegate_core::{Ask, Quota, Reply, Store, StoreError, StoreErrorKind};
use tidegate_redis::{RedisBuckets, RedisOptions};
use tidegate_redis_client::ConnectionSettings;
use tidegate_testkit::redis::{Acl, Server, ServerProgram, audit, until, until_some};
use tokio::task::JoinHandle;

type Decision = JoinHandle<Result<Reply, StoreError>>;

fn quota() -> Quota {
    let month_us = 30 * 86_400_000_000;
    Quota::new(1_000, month_us).build().expect("a valid quota")
}

fn take(store: &RedisBuckets, bucket: &str) -> Result<Reply, StoreError> {
    let quota = quota();
    let asks = [Ask::take(bucket.as_bytes(), &quota, 1)];
    world::runtime().block_on(store.decide(&asks))
}

/// Retries until there is a reply; returns what remains.
fn left(store: &RedisBuckets, bucket: &str) -> u64 {
    let reply = until_some("the store decides", || take(store, bucket).ok());
    reply.outcomes[0].remaining
}

fn soon(server: &Server) -> ConnectionSettings {
    world::standalone(server).timeout(Duration::from_millis(200))
}

/// A bucket's key holds a foreign value. Only that bucket fails, even if others are in the same
/// call, and the value is kept.
#[test]
fn a_foreign_or_broken_value_fails_for_its_bucket_alone() {
    let server = world::shared_server();
    let store = forgetful(&world::standalone(server), 1).remove(0);
    let (quota, window) = (quota(), quota().with_refundable(true));
    let key = |bucket: &str| store.key(bucket.as_bytes());
    let mut client = server.client();
    let mut command = |words: &[&[u8]]| client.command(words).done();
    command(&[b"RPUSH", &key("p/limit/list"), b"a"]);
    command(&[b"PEXPIRE", &key("p/limit/list"), b"600000"]);
    command(&[b"SET", &key("p/limit/text"), b"hello", b"PX", b"600000"]);
    command(&[
        b"SET",
        &key("p/limit/cut"),
        b"\x01\x02\x03",
        b"PX",
        b"600000",
    ]);
    for quota in [quota, window] {
        for bad in ["p/limit/list", "p/limit/text", "p/limit/cut"] {
            let good = ["p/limit/one", "p/limit/two"];
            let [bad, one, two] = [bad, good[0], good[1]].map(|name| {
                let (store, quota) = (store.clone(), quota);
                world::runtime().spawn(async move {
                    store.decide(&[Ask::take(name.as_bytes(), &quota, 1)]).await
                })
            });
            let answer = |task: Decision| world::runtime().block_on(task).expect("it ends");
            let error = answer(bad).expect_err("it is not ours");
            assert_eq!(error.kind(), StoreErrorKind::Corrupt);
            assert!(!error.is_transient(), "an operator has to fix it");
            assert!(answer(one).is_ok_and(|reply| reply.passed));
            assert!(answer(two).is_ok_and(|reply| reply.passed));
        }
    }
    let mut client = server.client();
    let list = client.command(&[&b"LRANGE"[..], &key("p/limit/list"), b"0", b"-1"]);
    assert_eq!(list.texts(), ["a"]);
    let text = client.command(&[&b"GET"[..], &key("p/limit/text")]).text();
    assert_eq!(text, "hello");
}

/// Row 17: a setting that makes writes fail, and one that fixes it.
fn refuses_and_recovers(setting: &str, bad: &str, good: &str) {
    let server = Server::start();
    let store = connect(
        soon(&server),
        RedisOptions::default().prefix(world::own_prefix()),
    );
    assert_eq!(left(&store, "p/limit/a"), 999);
    let set = |value: &str| server.command(&["CONFIG", "SET", setting, value]).done();
    set(bad);
    for _ in 0..3 {
        let error = take(&store, "p/limit/a").expect_err("it cannot write");
        assert_eq!(error.kind(), StoreErrorKind::Unable, "{error}");
        assert!(error.is_transient());
    }
    set(good);
    assert_eq!(left(&store, "p/limit/a"), 998, "a failure is no charge");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

#[test]
fn row_17_out_of_memory_is_an_error_and_no_charge() {
    refuses_and_recovers("maxmemory", "1", "0");
}

#[test]
fn row_17_too_few_replicas_are_an_error_and_no_charge() {
    refuses_and_recovers("min-replicas-to-write", "1", "0");
}

/// Row 17: another program's script keeps the server busy.
#[test]
fn row_17_a_busy_server_is_an_error_and_no_charge() {
    let server = Server::builder()
        .setting("busy-reply-threshold", "10")
        .start();
    let store = connect(
        soon(&server),
        RedisOptions::default().prefix(world::own_prefix()),
    );
    assert_eq!(left(&store, "p/limit/a"), 999);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = server.client();
            client.patience(Duration::from_secs(30));
            let killed = client.command(&["EVAL", "while true do end", "0"]);
            assert!(killed.error().is_some());
        });
        let mut client = server.client();
        until("it is busy", || {
            let busy = client.command(&["PING"]);
            busy.error().is_some_and(|error| error.starts_with("BUSY"))
        });
        let error = take(&store, "p/limit/a").expect_err("it is busy");
        assert_eq!(error.kind(), StoreErrorKind::Unable, "{error}");
        client.command(&["SCRIPT", "KILL"]).done();
    });
    assert_eq!(left(&store, "p/limit/a"), 998, "a failure is no charge");
    assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
}

/// A revoked right is an error that an operator has to fix. It is no crash, and not reported as a
/// corrupt value.
#[test]
fn a_revoked_permission_is_an_error_without_a_charge() {
    for flavour in ServerProgram::ALL.into_iter().filter(|it| it.available()) {
        let builder = Server::builder().flavour(flavour);
        let server = builder.acl(Acl::limiter(world::RULES)).start();
        let settings = world::with_login(soon(&server));
        let store = connect(
            settings,
            RedisOptions::default().prefix(world::own_prefix()),
        );
        assert_eq!(left(&store, "p/limit/a"), 999);
        let set_user = |rule: &str| server.command(&["ACL", "SETUSER", "limiter", rule]).done();
        let mut expected = 998;
        for right in ["evalsha", "set", "time", "get", "mget"] {
            set_user(&format!("-{right}"));
            // The plain program and the other one, which read differently.
            let mut denied = 0;
            for quota in [quota(), quota().with_refundable(true)] {
                let asks = [Ask::take(b"p/limit/a", &quota, 1)];
                match world::runtime().block_on(store.decide(&asks)) {
                    Ok(_) => expected -= 1,
                    Err(error) => {
                        let kind = error.kind();
                        assert_eq!(kind, StoreErrorKind::Denied, "{flavour:?} {right}: {error}");
                        assert!(!error.is_transient(), "{error}");
                        denied += 1;
                    }
                }
            }
            assert!(denied > 0, "{flavour:?}: nobody needs {right}");
            set_user(&format!("+{right}"));
        }
        assert_eq!(
            left(&store, "p/limit/a"),
            expected,
            "a failure is no charge"
        );
        assert_eq!(audit(&mut server.client(), &[]), Vec::<String>::new());
    }
}

/// A server that has just started loads its data before it serves.
#[test]
fn a_loading_server_is_an_error_and_then_answers() {
    let slow = Server::builder()
        .setting("key-load-delay", "500")
        .setting("loading-process-events-interval-bytes", "1024")
        .setting("enable-debug-command", "yes")
        .start();
    let settings = world::standalone(&slow).retries(0);
    let store = connect(
        settings,
        RedisOptions::default().prefix(world::own_prefix()),
    );
    assert_eq!(left(&store, "p/limit/a"), 999);
    let mut client = slow.client();
    let populate = ["DEBUG", "POPULATE", "1000", "filler", "100"];
    client.command(&populate).done();
    let was_seen = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            client.patience(Duration::from_secs(30));
            while !was_seen.load(SeqCst) {
                client.command(&["DEBUG", "RELOAD"]).done();
            }
        });
        let kind = until_some("it loads", || {
            let error = take(&store, "p/limit/a").err()?;
            let is_loading = error.to_string().contains("LOADING");
            is_loading.then_some(error.kind())
        });
        was_seen.store(true, SeqCst);
        assert_eq!(kind, StoreErrorKind::Unable);
    });
    assert!(left(&store, "p/limit/a") <= 998);
}
