//! Scans of a set that moves from server to server meanwhile.

use super::*;
use tidegate_redis_client::{Address, ConnectionSettings, RedisTopology, slot};
use tidegate_testkit::redis::Cluster;

const AGES: Duration = Duration::from_secs(30);

const KEY: &[u8] = b"set";

async fn open(cluster: &Cluster) -> Connection {
    let nodes = cluster.nodes().iter();
    let addresses = nodes.map(|node| Address::new("127.0.0.1", node.port()));
    let settings = ConnectionSettings::new(RedisTopology::Cluster, addresses.collect())
        .connect_timeout(AGES)
        .timeout(AGES);
    let connection = Connection::open(settings, Vec::new()).await;
    connection.expect("the servers are up")
}

async fn filled(cluster: &Cluster) -> (Connection, Vec<Vec<u8>>) {
    let members: Vec<_> = (0..20_000)
        .map(|i| format!("{i:05}").into_bytes())
        .collect();
    let connection = open(cluster).await;
    let sets = RedisSets::new(connection.clone());
    sets.add_members(KEY, &members).await.unwrap();
    (connection, members)
}

/// Finishes a scan: the members found, and the number of restarts.
async fn rest(walk: &mut SetScan<'_>) -> (Vec<Vec<u8>>, u32) {
    let (mut all, mut again) = (Vec::new(), 0);
    loop {
        match walk.next().await.unwrap() {
            ScanStep::Found(found) => all.extend(found),
            ScanStep::Again => {
                again += 1;
                all.clear();
            }
            ScanStep::End => break,
        }
    }
    all.sort_unstable();
    all.dedup();
    (all, again)
}

async fn some(walk: &mut SetScan<'_>) {
    for _ in 0..5 {
        let step = walk.next().await.unwrap();
        assert!(matches!(step, ScanStep::Found(found) if !found.is_empty()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_that_moves_during_a_scan_is_rescanned() {
    let cluster = Cluster::start(3, 0);
    let (connection, members) = filled(&cluster).await;
    let mut walk = SetScan::new(&connection, ScanVerb::Set, KEY);
    some(&mut walk).await;
    cluster.migrate_slot(slot(KEY), cluster.stranger_to(slot(KEY)));
    let (all, again) = rest(&mut walk).await;
    assert!(again > 0, "a cursor of another server means nothing");
    assert!(all == members, "{} of 20,000", all.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_set_in_a_stalled_migration_is_read_at_its_node() {
    let cluster = Cluster::start(3, 0);
    let (connection, members) = filled(&cluster).await;
    let mut walk = SetScan::new(&connection, ScanVerb::Set, KEY);
    some(&mut walk).await;
    let migration = cluster.begin_migration(slot(KEY), cluster.stranger_to(slot(KEY)));
    assert_eq!(migration.move_keys(10), 1);
    let (all, again) = rest(&mut walk).await;
    assert!(again > 0, "no error, but another server");
    assert!(all == members, "{} of 20,000", all.len());
    let all = RedisSets::new(connection.clone())
        .members(KEY, 20_000, AGES)
        .await
        .unwrap();
    assert!(all.len() >= 20_000);
    migration.finish();
    let all = RedisSets::new(connection.clone())
        .members(KEY, 20_000, AGES)
        .await
        .unwrap();
    assert!(all.len() >= 20_000);
}
