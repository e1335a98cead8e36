use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tidegate_testkit::redis::{Cluster, until};

fn cluster_settings(cluster: &Cluster) -> ConnectionSettings {
    let seed = cluster.nodes().first().map(address);
    ConnectionSettings::new(RedisTopology::Cluster, seed.into_iter().collect())
        .connect_timeout(AGES)
}

async fn open(cluster: &Cluster) -> Connection {
    Connection::open(cluster_settings(cluster), vec![counter()])
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn one_seed_leads_to_all_nodes() {
    let cluster = Cluster::start(3, 3);
    let connection = open(&cluster).await;
    let mut nodes = connection.nodes();
    // Replicas are listed once their first gossip has spread.
    nodes.retain(|node| node.role == NodeRole::Master);
    assert_eq!(nodes.len(), 3);
    let slots = nodes.iter().flat_map(|node| &node.slots);
    assert_eq!(
        slots.map(|range| range.clone().count()).sum::<usize>(),
        16_384
    );
    for n in 0..50 {
        let value = run(&connection, &format!("key{n}"), RepeatEffect::Refund)
            .await
            .unwrap();
        assert_eq!(value, Value::Int(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_all_slots_are_deleted_scanned_and_counted() {
    let cluster = Cluster::start(3, 0);
    let connection = open(&cluster).await;
    let keys: Vec<String> = (0..100).map(|n| format!("k:{n}")).collect();
    for key in &keys {
        connection
            .hset(key.as_bytes(), &[("a", "1")])
            .await
            .unwrap();
    }
    let mut scan = connection.scan("k:*", 10);
    let mut seen = std::collections::BTreeSet::new();
    while let Some(batch) = scan.next_batch().await.unwrap() {
        seen.extend(batch);
    }
    assert_eq!(seen.len(), 100);
    assert_eq!(connection.del(&keys).await.unwrap(), 100);
    assert_eq!(connection.ping().await.len(), 3);
}

/// One slot moves back and forth under load: every call is executed exactly once, and none fails.
#[tokio::test(flavor = "multi_thread")]
async fn a_reshard_under_load_loses_and_doubles_nothing() {
    let cluster = Cluster::start(3, 0);
    let connection = open(&cluster).await;
    let keys: Vec<String> = (0..20).map(|n| format!("{{tag}}{n}")).collect();
    let slot = cluster.slot_of("{tag}");
    let done = Arc::new(AtomicU64::new(0));
    let is_over = Arc::new(AtomicBool::new(false));
    let mut load = tokio::task::JoinSet::new();
    for key in keys.clone() {
        let (connection, done) = (connection.clone(), Arc::clone(&done));
        let is_over = Arc::clone(&is_over);
        load.spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                run(&connection, &key, RepeatEffect::Refund).await.unwrap();
                done.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    for _ in 0..4 {
        let before = done.load(Ordering::Relaxed);
        eventually("load", || done.load(Ordering::Relaxed) > before + 200).await;
        tokio::task::block_in_place(|| {
            let to = cluster.stranger_to(slot);
            let migration = cluster.begin_migration(slot, to);
            migration.move_keys(10);
            migration.finish();
        });
    }
    is_over.store(true, Ordering::Relaxed);
    load.join_all().await;
    let mut counted = 0;
    for key in &keys {
        let mut get = redis::cmd("GET");
        get.arg(key);
        let reply = connection
            .command(NodeChoice::Key(key.as_bytes()), &get)
            .await
            .unwrap();
        counted += redis::from_redis_value::<u64>(reply).unwrap();
    }
    assert_eq!(counted, done.load(Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread")]
async fn during_a_migration_calls_follow_the_keys() {
    let cluster = Cluster::start(2, 0);
    let connection = open(&cluster).await;
    run(&connection, "{tag}here", RepeatEffect::Refund)
        .await
        .unwrap();
    let slot = cluster.slot_of("{tag}");
    let to = cluster.stranger_to(slot);
    let migration = cluster.begin_migration(slot, to);
    // A key that has moved, or never existed, is looked up at the other node.
    assert_eq!(
        run(&connection, "{tag}new", RepeatEffect::Refund)
            .await
            .unwrap(),
        Value::Int(1)
    );
    migration.move_keys(10);
    assert_eq!(
        run(&connection, "{tag}here", RepeatEffect::Refund)
            .await
            .unwrap(),
        Value::Int(2)
    );
    to.command(&["SCRIPT", "FLUSH"]).done();
    assert_eq!(
        run(&connection, "{tag}here", RepeatEffect::Refund)
            .await
            .unwrap(),
        Value::Int(3)
    );
    migration.finish();
    assert_eq!(
        run(&connection, "{tag}here", RepeatEffect::Refund)
            .await
            .unwrap(),
        Value::Int(4)
    );
    let owner = connection
        .nodes()
        .into_iter()
        .find(|node| node.slots.iter().any(|range| range.contains(&slot)));
    assert_eq!(owner.unwrap().address, address(to));
}

/// A master that has just joined, and serves no slots yet.
fn newcomer(cluster: &Cluster) -> Server {
    let server = Server::builder().setting("cluster-enabled", "yes").start();
    let port = server.port().to_string();
    for node in cluster.nodes() {
        node.command(&["CLUSTER", "MEET", "127.0.0.1", &port])
            .done();
    }
    let everybody = cluster.nodes().len() + 1;
    until("all nodes know the newcomer, and it knows them", || {
        cluster.nodes().iter().chain([&server]).all(|node| {
            let nodes = node.command(&["CLUSTER", "NODES"]).text();
            let known = nodes.lines().filter(|line| !line.contains("handshake"));
            let info = node.command(&["CLUSTER", "INFO"]).text();
            known.count() == everybody && info.contains("cluster_state:ok")
        })
    });
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_without_slots_but_with_calls_is_kept() {
    let cluster = Cluster::start(2, 0);
    let connection = open(&cluster).await;
    let to = tokio::task::block_in_place(|| newcomer(&cluster));
    let slot = cluster.slot_of("{tag}");
    let migration = cluster.begin_migration(slot, &to);
    run(&connection, "{tag}", RepeatEffect::Refund)
        .await
        .unwrap();
    let find = || {
        let topology = connection.shared().topology.load();
        topology.find(&address(&to)).map(Arc::clone)
    };
    let node = find().expect("the node was called");
    for _ in 0..3 {
        let view = super::super::cluster::look(connection.shared())
            .await
            .unwrap();
        assert_eq!(view.masters.len(), 2);
        connection.shared().install(view);
        assert!(find().is_some_and(|now| Arc::ptr_eq(&now, &node)));
    }
    assert_eq!(
        run(&connection, "{tag}", RepeatEffect::Refund)
            .await
            .unwrap(),
        Value::Int(2)
    );
    assert!(connection.is_connected());
    migration.cancel();
    // A node that is gone must not look like lost data.
    to.kill9();
    eventually("only the others are left", || {
        connection.is_connected() && connection.nodes().len() == 2
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_keys_on_both_sides_of_a_migration_is_not_executed() {
    let cluster = Cluster::start(2, 0);
    let connection = open(&cluster).await;
    for key in ["{tag}a", "{tag}b"] {
        run(&connection, key, RepeatEffect::Refund).await.unwrap();
    }
    let slot = cluster.slot_of("{tag}");
    let migration = cluster.begin_migration(slot, cluster.stranger_to(slot));
    migration.move_keys(1);
    let script = counter();
    let mut command = redis::cmd("EVALSHA");
    command.arg(script.sha()).arg(2).arg("{tag}a").arg("{tag}b");
    let call = |time| {
        connection.run(
            slot,
            &script,
            &command,
            RepeatEffect::Refund,
            Instant::now() + time,
        )
    };
    // The call is sent again until its deadline. If that falls between a message and its reply, the
    // result is unknown, as it should be. Most of the time it falls into a pause.
    let mut error = call(Duration::from_secs(1)).await.unwrap_err();
    for _ in 0..20 {
        if *error.kind() != CallErrorKind::Timeout {
            break;
        }
        error = call(Duration::from_secs(1)).await.unwrap_err();
    }
    assert_eq!(
        (error.class(), error.code()),
        (CallEffect::NotExecuted, Some("TRYAGAIN"))
    );
    migration.finish();
    assert_eq!(call(AGES).await.unwrap(), Value::Int(2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failover_is_followed() {
    let cluster = Cluster::start(3, 3);
    let connection = open(&cluster).await;
    run(&connection, "a", RepeatEffect::Consume).await.unwrap();
    let slot = cluster.slot_of("a");
    let old = cluster.kill_master_of(slot);
    let new = tokio::task::block_in_place(|| cluster.await_owner_other_than(slot, old));
    run_until_it_works(&connection, "a").await;
    eventually("all masters are connected", || connection.is_connected()).await;
    let nodes = connection.nodes();
    assert!(
        nodes
            .iter()
            .any(|node| node.address == address(new) && node.is_connected)
    );
    assert!(
        !nodes
            .iter()
            .any(|node| node.address == address(old) && node.role == NodeRole::Master)
    );
}
