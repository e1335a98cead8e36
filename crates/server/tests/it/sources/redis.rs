//! A hash of a real Redis.

use super::kit::{AWAY, Program, REFUSED, SERVED, nth_rate, policy, under_load};
use crate::kit::folder::Folder;
use tidegate_redis_client::{Address, Connection, ConnectionSettings, RedisTopology};
use tidegate_redis_shared::{RedisDocuments, WriteOutcome};
use tidegate_testkit::redis::Server as Redis;

const KEY: &str = "tidegate:policies";
const CHANNEL: &[u8] = b"tidegate:policies:changed";

/// A long refresh, so that polling notices nothing during a test.
const SELDOM: &str = "1h";

pub(super) fn config(redis: &Redis, refresh: &str) -> String {
    let url = redis.url();
    format!("sources: [{{ redis: {{ url: '{url}' }}, refresh: {refresh} }}]")
}

/// Connects like another instance or an operator.
pub(super) async fn connect(redis: &Redis) -> Connection {
    let address = Address::new("127.0.0.1", redis.port());
    let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]);
    Connection::open(settings, Vec::new()).await.unwrap()
}

/// Changes documents as instances do; returns the version.
async fn change(connection: &Connection, changes: &[(&str, Option<&str>)]) -> String {
    let documents = RedisDocuments::new(connection.clone(), KEY);
    let version = documents.version().await.unwrap();
    let made = documents.change(&version, CHANNEL, changes);
    match made.await.unwrap() {
        WriteOutcome::To(version) => version,
        WriteOutcome::Conflict(now) => panic!("{now}"),
    }
}

pub(super) async fn set(connection: &Connection, name: &str, rate: &str) -> String {
    let document = policy(name, rate);
    change(connection, &[(&format!("policy/{name}"), Some(&document))]).await
}

#[tokio::test]
async fn instances_are_notified_of_a_change_and_converge() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", "5/s").await;
    let text = config(&redis, SELDOM);
    let (mut a, mut b) = (Program::start(&text).await, Program::start(&text).await);
    // Both subscribe before the first change.
    for program in [&a, &b] {
        assert_eq!(program.band("api").await, "5/s");
    }
    listened_to_by(&redis, 2).await;
    let version = set(&connection, "api", "6/s").await;
    for program in [&mut a, &mut b] {
        program.serves("redis", &version).await;
        assert_eq!(program.band("api").await, "6/s");
    }
}

/// Waits for this many subscribers.
async fn listened_to_by(redis: &Redis, count: i64) {
    loop {
        let reply = redis.command(&["PUBSUB", "NUMSUB", "tidegate:policies:changed"]);
        if format!("{reply:?}").contains(&format!("Int({count})")) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_lost_message_is_made_up_by_the_next_version_check() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", "5/s").await;
    let mut program = Program::start(&config(&redis, "200ms")).await;
    // Written by hand, without a notification.
    let document = policy("api", "7/s");
    connection
        .hset(
            KEY.as_bytes(),
            &[("policy/api", document.as_str()), ("version", "99")],
        )
        .await
        .unwrap();
    program.serves("redis", "99").await;
    assert_eq!(program.band("api").await, "7/s");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_change_during_an_unreadable_secret_was_never_served() {
    let (redis, folder) = (Redis::start(), Folder::make());
    let connection = connect(&redis).await;
    set(&connection, "api", "5/s").await;
    let secret = folder.write("secret", "x".repeat(32));
    let text = format!(
        "client: {{ jwt: {{ secret_file: '{secret}' }} }}\n{}",
        config(&redis, SELDOM)
    );
    let mut program = Program::start(&text).await;
    listened_to_by(&redis, 1).await;
    // Fewer than are open: existing connections continue, and no file can be opened.
    program.process.allow_files(3).await;
    let version = set(&connection, "api", "6/s").await;
    program.process.logs(REFUSED, ("source", "redis")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("Too many open files"), "{log}");
    program.process.allow_files(256).await;
    // No further message, and no further polling.
    program.serves("redis", &version).await;
    assert_eq!(program.band("api").await, "6/s");
    assert_eq!(program.loads("redis", "rejected").await, 1);
}

#[tokio::test]
async fn a_redis_outage_keeps_the_config_and_recovers() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", "5/s").await;
    let mut program = Program::start(&config(&redis, "200ms")).await;
    redis.kill9();
    program.process.logs(AWAY, ("source", "redis")).await;
    assert_eq!(program.band("api").await, "5/s");
    redis.restart();
    let connection = connect(&redis).await;
    let version = set(&connection, "api", "8/s").await;
    program.serves("redis", &version).await;
    assert_eq!(program.band("api").await, "8/s");
}

#[tokio::test]
async fn an_invalid_document_does_not_affect_the_others() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", "5/s").await;
    let mut program = Program::start(&config(&redis, "200ms")).await;
    let (good, bad) = (policy("web", "1/s"), policy("api", "fast"));
    let changes = [
        ("policy/web", Some(good.as_str())),
        ("policy/api", Some(bad.as_str())),
    ];
    change(&connection, &changes).await;
    program.process.logs(REFUSED, ("source", "redis")).await;
    assert_eq!(program.band("api").await, "5/s");
    change(&connection, &[("policy/api", Some("{\"name\": \"api\""))]).await;
    program.process.logs(REFUSED, ("source", "redis")).await;
    let log = program.process.logged.join("\n");
    assert!(log.contains("`policy/api`: not JSON"), "{log}");
    assert_eq!(program.band("api").await, "5/s");
    let version = set(&connection, "api", "6/s").await;
    program.serves("redis", &version).await;
    assert_eq!(
        (program.band("api").await, program.band("web").await),
        ("6/s".into(), "1/s".into())
    );
}

#[tokio::test]
async fn an_empty_hash_adds_nothing_to_the_file() {
    let redis = Redis::start();
    let own = "policies: [{ name: own, limits: [{ name: all, rate: 1/s }] }]";
    let text = format!("{}\n{own}", config(&redis, "200ms"));
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("own").await, "1/s");
    let connection = connect(&redis).await;
    let version = set(&connection, "api", "5/s").await;
    program.serves("redis", &version).await;
    assert_eq!(
        (program.band("own").await, program.band("api").await),
        ("1/s".into(), "5/s".into())
    );
}

#[tokio::test]
async fn a_manual_document_without_a_counter_was_not_seen() {
    let redis = Redis::start();
    let own = "policies: [{ name: own, limits: [{ name: all, rate: 1/s }] }]";
    let text = format!("{}\n{own}", config(&redis, "100ms"));
    let mut program = Program::start(&text).await;
    for rate in ["5/s", "6/s"] {
        let document = policy("api", rate);
        redis.command(&["HSET", KEY, "policy/api", &document]).int();
        program.process.logs(SERVED, ("source", "redis")).await;
        assert_eq!(program.band("api").await, rate);
    }
}

#[tokio::test]
async fn the_last_document_can_be_deleted_with_a_counter() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    let own = "policies: [{ name: own, limits: [{ name: all, rate: 1/s }] }]";
    let text = format!("{}\n{own}", config(&redis, "100ms"));
    set(&connection, "api", "5/s").await;
    let mut program = Program::start(&text).await;
    assert_eq!(program.band("api").await, "5/s");
    let version = change(&connection, &[("policy/api", None)]).await;
    program.serves("redis", &version).await;
    let question = r#"{"policy": "api", "path": "/"}"#;
    assert_eq!(crate::kit::post(program.http, question).await.status, 400);
}

#[tokio::test]
async fn changes_require_the_expected_version() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    let first = set(&connection, "api", "5/s").await;
    set(&connection, "api", "6/s").await;
    let late = policy("api", "7/s");
    let changes = [("policy/api", Some(late.as_str()))];
    let documents = RedisDocuments::new(connection.clone(), KEY);
    let made = documents.change(&first, CHANNEL, &changes).await;
    assert!(matches!(made, Ok(WriteOutcome::Conflict(_))), "{made:?}");
    // A new document is not mistaken for the previous one.
    connection.del(&[KEY]).await.unwrap();
    assert_ne!(set(&connection, "api", "5/s").await, first);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn under_load_every_question_is_answered_while_a_hash_changes() {
    let redis = Redis::start();
    let connection = connect(&redis).await;
    set(&connection, "api", &nth_rate(0)).await;
    let mut program = Program::start(&config(&redis, "1s")).await;
    under_load(&mut program, "api", async |program, _, rate| {
        let version = set(&connection, "api", &rate).await;
        program.serves("redis", &version).await;
    })
    .await;
    assert!(
        program
            .process
            .logged
            .iter()
            .any(|line| line.contains(SERVED))
    );
}
