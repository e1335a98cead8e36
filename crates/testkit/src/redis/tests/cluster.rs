use crate::redis::{BlockingClient, Cluster, ServerProgram};

/// Writes at the node that owns the key.
fn set(cluster: &Cluster, key: &str) {
    let owner = cluster.owner_of(cluster.slot_of(key));
    owner.command(&["SET", key, "1", "PX", "600000"]).done();
}

#[test]
fn a_replica_takes_over() {
    let cluster = Cluster::start(3, 3);
    assert_eq!(cluster.masters().len(), 3);
    set(&cluster, "a");
    let slot = cluster.slot_of("a");
    let dead = cluster.kill_master_of(slot);
    let heir = cluster.await_owner_other_than(slot, dead);
    heir.command(&["SET", "a", "2", "PX", "600000"]).done();
    dead.restart();
    cluster.await_healthy();
    assert_eq!(cluster.masters().len(), 3);
    assert_eq!(cluster.owner_of(slot).port(), heir.port());
}

#[test]
fn a_slot_migrates_partly_and_then_completely() {
    for flavour in ServerProgram::ALL {
        if flavour.available() {
            let cluster = Cluster::builder().flavour(flavour).start_cluster(3, 0);
            moves_a_slot(&cluster);
        }
    }
}

fn moves_a_slot(cluster: &Cluster) {
    let slot = cluster.slot_of("{a}1");
    for key in ["{a}1", "{a}2", "{a}3"] {
        set(cluster, key);
    }
    let (from, to) = (cluster.owner_of(slot), cluster.stranger_to(slot));
    let migration = cluster.begin_migration(slot, to);
    assert_eq!(migration.move_keys(2), 2);
    let reply = from.command(&["MGET", "{a}1", "{a}2", "{a}3"]);
    assert!(reply.error().unwrap().starts_with("TRYAGAIN"), "{reply:?}");
    let reply = from.command(&["GET", "{a}4"]);
    assert!(reply.error().unwrap().starts_with("ASK"), "{reply:?}");

    migration.finish();
    let reply = from.command(&["GET", "{a}1"]);
    assert!(reply.error().unwrap().starts_with("MOVED"), "{reply:?}");
    assert_eq!(to.command(&["GET", "{a}3"]).text(), "1");
    assert_eq!(cluster.audit(&[]), Vec::<String>::new());
}

#[test]
fn a_guarded_cluster_moves_slots_too() {
    let cluster = super::guarded(Cluster::builder()).start_cluster(3, 0);
    set(&cluster, "rl:a");
    let slot = cluster.slot_of("rl:a");
    let to = cluster.stranger_to(slot);
    cluster.migrate_slot(slot, to);
    let mut limiter = BlockingClient::connect(to.port(), &to.limiter()).unwrap();
    assert_eq!(limiter.command(&["GET", "rl:a"]).text(), "1");
    assert!(limiter.command(&["GET", "b"]).error().is_some());
}
