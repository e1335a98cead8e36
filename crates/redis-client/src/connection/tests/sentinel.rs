use super::*;
use tidegate_testkit::redis::SentinelGroup;

fn sentinel_settings(group: &SentinelGroup) -> ConnectionSettings {
    let sentinels = group.sentinels().iter().map(address).collect();
    let mode = RedisTopology::Sentinel {
        master: group.name().to_owned(),
    };
    ConnectionSettings::new(mode, sentinels).connect_timeout(AGES)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_master_is_discovered_and_followed_after_a_failover() {
    let group = SentinelGroup::start();
    let settings = sentinel_settings(&group);
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    assert_eq!(connection.nodes()[0].address, address(group.master()));
    run(&connection, "a", RepeatEffect::Consume).await.unwrap();
    let changes = *connection.changes().borrow();

    let old = group.kill_master();
    let new = tokio::task::block_in_place(|| group.await_master_other_than(old));
    let from = Instant::now();
    run_until_it_works(&connection, "a").await;
    assert!(
        from.elapsed() < Duration::from_secs(5),
        "{:?}",
        from.elapsed()
    );
    assert_eq!(connection.nodes()[0].address, address(new));
    assert!(*connection.changes().borrow() > changes);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demoted_master_is_abandoned() {
    let group = SentinelGroup::start();
    let settings = sentinel_settings(&group);
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    let old = group.master();
    // It lives on as a replica: only READONLY shows it.
    group.sentinels()[0]
        .command(&["SENTINEL", "FAILOVER", group.name()])
        .done();
    let new = tokio::task::block_in_place(|| group.await_master_other_than(old));
    run_until_it_works(&connection, "a").await;
    assert_eq!(connection.nodes()[0].address, address(new));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_master_is_replaced_by_its_successor() {
    let group = SentinelGroup::start();
    let settings = sentinel_settings(&group).connect_timeout(Duration::from_secs(1));
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    let old = group.master();
    old.stop();
    // The connection stays open; only the silence shows it.
    let heir = async {
        loop {
            run_until_it_works(&connection, "a").await;
            let now = connection.nodes()[0].address.clone();
            if now != address(old) {
                return now;
            }
        }
    };
    let heir = timeout(AGES, heir).await.unwrap();
    assert!(group.servers().iter().any(|server| address(server) == heir));
    old.cont();
}

/// Sentinels often have no password although the master has one.
#[tokio::test(flavor = "multi_thread")]
async fn sentinels_without_a_password_are_queried_as_well() {
    let group = SentinelGroup::start();
    for server in group.servers() {
        for setting in ["masterauth", "requirepass"] {
            server
                .command(&["CONFIG", "SET", setting, "hunter2"])
                .done();
        }
    }
    let settings = sentinel_settings(&group).password("hunter2");
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    run(&connection, "a", RepeatEffect::Refund).await.unwrap();
}

#[tokio::test]
async fn an_unknown_master_name_is_reported() {
    let server = SentinelGroup::start();
    let sentinels = server.sentinels().iter().map(address).collect();
    let mode = RedisTopology::Sentinel {
        master: "nobody".to_owned(),
    };
    let error = Connection::open(ConnectionSettings::new(mode, sentinels), vec![])
        .await
        .unwrap_err();
    let text = error.to_string();
    assert!(text.contains("has no master named 'nobody'"), "{text}");
}
