//! A hash of Redis behind sentinels, and in a Cluster: all instances are notified of changes there
//! too.

use super::admin::{admin, administrate};
use super::etcd::limits;
use super::kit::{Program, policy};
use serde_json::Value;
use std::time::Duration;
use tidegate_testkit::redis::{Cluster, SentinelGroup, Server};
use tokio::time::timeout;

const KEY: &str = "tidegate:policies";

/// A long refresh, so that only a notification can explain a change.
const SELDOM: &str = "10min";

/// The time within which a change must arrive, including a failover.
const PATIENCE: Duration = Duration::from_mins(1);

fn config(url: &str) -> String {
    let source = format!("sources: [{{ redis: {{ url: '{url}' }}, refresh: {SELDOM} }}]");
    format!("{source}\n{}", admin())
}

/// Returns two instances that serve the initial hash.
async fn instances(url: &str, master: &Server) -> (Program, Program) {
    let document = policy("api", "1/s");
    let fields = ["policy/api", &document, "version", "1"];
    let words = [&["HSET", KEY][..], &fields].concat();
    master.command(&words).int();
    let text = config(url);
    let (a, b) = (Program::start(&text).await, Program::start(&text).await);
    for program in [&a, &b] {
        assert_eq!(program.band("api").await, "1/s");
    }
    (a, b)
}

/// Changes the rate at `one`, and waits until the `other` serves it.
async fn followed(one: &Program, other: &Program, rate: &str) {
    let changed = async {
        loop {
            let made = administrate(one, "PATCH", "/policies/api", &limits(rate)).await;
            match made {
                (200, _) => return,
                // There is no master at the moment: the same change is sent again.
                (503 | 412, _) => tokio::task::yield_now().await,
                (status, said) => panic!("{status} {said}"),
            }
        }
    };
    timeout(PATIENCE, changed).await.expect("it is changed");
    assert_eq!(one.band("api").await, rate);
    let followed = async { while other.band("api").await != rate {} };
    let followed = timeout(PATIENCE, followed).await;
    let (_, status) = administrate(other, "GET", "/status", &Value::Null).await;
    assert!(followed.is_ok(), "{rate}: {status}");
}

#[tokio::test]
async fn behind_sentinels_changes_arrive_even_after_a_failover() {
    let group = SentinelGroup::start();
    let (a, b) = instances(&group.url(), group.master()).await;
    followed(&a, &b, "2/s").await;
    followed(&b, &a, "3/s").await;
    let dead = group.kill_master();
    group.await_master_other_than(dead);
    followed(&a, &b, "4/s").await;
    followed(&b, &a, "5/s").await;
}

#[tokio::test]
async fn in_a_cluster_changes_reach_instances_through_any_node() {
    let cluster = Cluster::start(3, 3);
    let slot = cluster.slot_of(KEY);
    let (a, b) = instances(&cluster.url(), cluster.owner_of(slot)).await;
    followed(&a, &b, "2/s").await;
    followed(&b, &a, "3/s").await;
    let dead = cluster.kill_master_of(slot);
    cluster.await_owner_other_than(slot, dead);
    followed(&a, &b, "4/s").await;
    followed(&b, &a, "5/s").await;
}
