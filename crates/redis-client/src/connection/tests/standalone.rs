use super::*;
use std::sync::atomic::Ordering;

#[tokio::test]
async fn a_call_is_answered() {
    let server = Server::start();
    let connection = Connection::open(settings(&server), vec![counter()])
        .await
        .unwrap();
    assert!(connection.is_connected());
    assert_eq!(
        run(&connection, "a", RepeatEffect::Consume).await.unwrap(),
        Value::Int(1)
    );
    assert_eq!(
        run(&connection, "a", RepeatEffect::Refund).await.unwrap(),
        Value::Int(2)
    );
}

#[tokio::test]
async fn scripts_are_loaded_on_connecting() {
    let server = Server::start();
    let script = counter();
    let _connection = Connection::open(settings(&server), vec![script.clone()])
        .await
        .unwrap();
    let exists = server.command(&["SCRIPT", "EXISTS", script.sha()]);
    assert_eq!(exists.list()[0].int(), 1);
}

#[tokio::test]
async fn a_flushed_script_is_reloaded_once_for_all_callers() {
    let server = Server::start();
    let connection = Connection::open(settings(&server), vec![counter()])
        .await
        .unwrap();
    let node = Arc::clone(&connection.shared().topology.load().nodes[0]);
    for round in 1..=3 {
        server.command(&["SCRIPT", "FLUSH"]).done();
        let calls = (0..50).map(|_| {
            let connection = connection.clone();
            async move { run(&connection, "a", RepeatEffect::Refund).await }
        });
        let mut set = tokio::task::JoinSet::new();
        calls.for_each(|call| drop(set.spawn(call)));
        for result in set.join_all().await {
            result.unwrap();
        }
        assert_eq!(
            node.loads.load(Ordering::Relaxed),
            round,
            "one load a flush"
        );
    }
    assert_eq!(server.command(&["GET", "a"]).text(), "150");
}

#[tokio::test]
async fn several_connections_are_used_in_turn() {
    let server = Server::start();
    let settings = settings(&server).connections(3).client_name("in-turn");
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    let named = || {
        server
            .command(&["CLIENT", "LIST"])
            .text()
            .matches("name=in-turn")
            .count()
    };
    eventually("three connections", || named() == 3).await;
    for _ in 0..9 {
        run(&connection, "a", RepeatEffect::Consume).await.unwrap();
    }
    let list = server.command(&["CLIENT", "LIST"]).text();
    let used = list
        .lines()
        .filter(|line| line.contains("name=in-turn") && line.contains("cmd=evalsha"));
    assert_eq!(used.count(), 3, "{list}");
}

#[tokio::test]
async fn a_server_that_is_restarted_is_joined_again() {
    let server = Server::start();
    let connection = Connection::open(settings(&server), vec![counter()])
        .await
        .unwrap();
    let changes = connection.changes();
    let before = *changes.borrow();
    run(&connection, "a", RepeatEffect::Consume).await.unwrap();
    server.kill9();
    eventually("the loss is noticed", || !connection.is_connected()).await;
    let error = run(&connection, "a", RepeatEffect::Refund)
        .await
        .unwrap_err();
    assert_eq!(error.class(), CallEffect::NotExecuted);
    server.restart();
    assert_eq!(run_until_it_works(&connection, "a").await, 1);
    assert!(*changes.borrow() > before);
}

#[tokio::test]
async fn a_connection_that_the_server_closes_costs_nothing() {
    let server = Server::start();
    // One connection, so that its recovery is the only event to wait for.
    let settings = settings(&server).connections(1).client_name("idle");
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    for _ in 0..3 {
        let mut changes = connection.changes();
        server
            .command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"])
            .int();
        timeout(AGES, changes.changed()).await.unwrap().unwrap();
        run(&connection, "a", RepeatEffect::Refund).await.unwrap();
    }
}

#[tokio::test]
async fn error_replies_have_their_classes() {
    let server = Server::start();
    let connection = Connection::open(settings(&server), vec![counter()])
        .await
        .unwrap();
    server.command(&["LPUSH", "list", "1"]).int();
    let wrong = run(&connection, "list", RepeatEffect::Consume)
        .await
        .unwrap_err();
    assert_eq!(wrong.class(), CallEffect::Executed);
    assert_eq!(wrong.code(), Some("WRONGTYPE"));
    server.command(&["CONFIG", "SET", "maxmemory", "1"]).done();
    let full = run(&connection, "a", RepeatEffect::Consume)
        .await
        .unwrap_err();
    assert_eq!(
        (full.class(), full.code()),
        (CallEffect::NotExecuted, Some("OOM"))
    );
    assert!(full.is_transient());
    server.command(&["CONFIG", "SET", "maxmemory", "0"]).done();
    assert_eq!(
        run(&connection, "a", RepeatEffect::Consume).await.unwrap(),
        Value::Int(1)
    );
}

#[tokio::test]
async fn a_partly_run_script_is_not_reported_as_without_effect() {
    let server = Server::start();
    let rules = ["on", "nopass", "~*", "+@all", "-append"];
    let user = ["ACL", "SETUSER", "half"].iter().chain(&rules);
    server.command(&user.collect::<Vec<_>>()).done();
    let connection = Connection::open(settings(&server).user("half"), vec![])
        .await
        .unwrap();
    let text = "redis.call('INCR', KEYS[1]); return redis.call('APPEND', KEYS[1], 'x')";
    let script = Script::new("half", text.to_owned());
    let command = count(&script, "a");
    let deadline = Instant::now() + AGES;
    let call = connection.run(0, &script, &command, RepeatEffect::Consume, deadline);
    let error = call.await.unwrap_err();
    assert_eq!(
        (error.class(), error.code()),
        (CallEffect::Executed, Some("NOPERM"))
    );
    assert_eq!(server.command(&["GET", "a"]).text(), "1");
}

#[tokio::test]
async fn a_server_that_is_a_replica_for_a_while_is_used_again_afterwards() {
    let server = Server::start();
    let connection = Connection::open(settings(&server).retries(0), vec![counter()])
        .await
        .unwrap();
    let nobody = ["REPLICAOF", "127.0.0.1", "1"];
    server.command(&nobody).done();
    let error = run(&connection, "a", RepeatEffect::Consume)
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.code()),
        (CallEffect::NotExecuted, Some("READONLY"))
    );
    server.command(&["REPLICAOF", "NO", "ONE"]).done();
    assert_eq!(run_until_it_works(&connection, "a").await, 1);
}

#[tokio::test]
async fn closing_ends_all_tasks_and_fails_later_calls() {
    let server = Server::start();
    let connection = Connection::open(settings(&server), vec![counter()])
        .await
        .unwrap();
    let shared = Arc::downgrade(connection.shared());
    assert!(connection.shared().tasks.count() > 0);
    connection.close().await;
    assert_eq!(connection.shared().tasks.count(), 0);
    let error = run(&connection, "a", RepeatEffect::Consume)
        .await
        .unwrap_err();
    assert_eq!(
        (error.class(), error.kind()),
        (CallEffect::NotExecuted, &CallErrorKind::Closed)
    );
    assert!(!connection.is_connected());
    connection.close().await;
    drop(connection);
    assert_eq!(shared.strong_count(), 0);
}

#[tokio::test]
async fn dropping_the_last_clone_ends_all_tasks() {
    let server = Server::start();
    let settings = settings(&server).client_name("leaver");
    let connection = Connection::open(settings, vec![counter()]).await.unwrap();
    let shared = Arc::downgrade(connection.shared());
    let clone = connection.clone();
    drop(connection);
    run(&clone, "a", RepeatEffect::Consume).await.unwrap();
    drop(clone);
    eventually("nothing is left", || shared.strong_count() == 0).await;
    let list = || server.command(&["CLIENT", "LIST"]).text();
    eventually("the server sees nobody", || !list().contains("name=leaver")).await;
}

/// Regression: opening a connection never ended.
#[tokio::test]
async fn a_node_connected_before_its_installation_was_awaited() {
    let server = Server::start();
    let opened = Connection::open(settings(&server), vec![]).await;
    let connection = opened.unwrap();
    let shared = connection.shared();
    // As if both connections were open before the node is in the topology.
    shared.status.send_replace(LinkStatus::Starting);
    shared.install(shared::TopologyView {
        masters: vec![(address(&server), Vec::new())],
        replicas: Vec::new(),
    });
    let settled = timeout(AGES, connection.settled()).await;
    settled.expect("it is known to be connected").unwrap();
}
