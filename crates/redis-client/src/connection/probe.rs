//! Finds out when a node that failed can be used again.
//!
//! While a node's breaker is open, decisions are not sent there and do not wait for it. One task for
//! each node sends a probe every [`PAUSE`], and at once over a new connection. The first probe that
//! succeeds closes the breaker for all callers.

use super::keeper::leaving;
use super::node::RedisNode;
use super::run::{CommandCall, RepeatEffect};
use super::shared::ConnectionInner;
use super::topology::Topology;
use crate::jitter::jittered;
use crate::slot::slot;
use redis::Cmd;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause between two probes, give or take a quarter, so that instances do not probe together.
pub(super) const PAUSE: Duration = Duration::from_millis(200);

/// Names tried to find a key that a node of a Cluster serves. Enough for a node with 16 slots or more;
/// one with fewer may get a `PING` instead.
const NAMES_MAX: u32 = 4_096;

/// Runs the task of one node: closes its breaker whenever a probe succeeds.
pub(super) async fn watch(shared: Arc<ConnectionInner>, node: Arc<RedisNode>) {
    let mut retired = node.retired.subscribe();
    loop {
        let is_open = !node.is_trusted();
        tokio::select! {
            () = node.wake_probe.notified() => {}
            () = sleep(jittered(PAUSE)), if is_open => {}
            () = leaving(&mut retired) => return,
        }
        if is_open && node.is_up() && probe(&shared, &node).await {
            node.close_breaker();
            tracing::debug!(event = "redis_probe_succeeded", node = %node.address, "probe succeeded; circuit closed");
        }
    }
}

/// Sends one probe. Returns true if the node would have decided.
async fn probe(shared: &ConnectionInner, node: &Arc<RedisNode>) -> bool {
    let call = CommandCall {
        command: &command(shared, node),
        script: None,
        repeat: RepeatEffect::Refund,
        is_guarded: false,
        // A node that is slower than this is of no use to decisions either.
        deadline: Instant::now() + shared.settings.timeout,
    };
    match shared.run_on(node, &call).await {
        Err(error) if error.is_node_failure() => {
            tracing::debug!(event = "redis_probe_failed", node = %node.address, %error, "probe failed; circuit stays open");
            shared.look_into(&error, node);
            false
        }
        // Errors about the probe alone, such as `MOVED`, are answers too.
        Ok(_) | Err(_) => true,
    }
}

/// Builds a write without effect: it replaces the value of a key that never exists.
///
/// Redis refuses it for every reason for which it would refuse a decision: `LOADING`, `READONLY`, `OOM`,
/// `MISCONF`, `NOREPLICAS`, `BUSY`, `CLUSTERDOWN`. Most of these let a `PING` pass.
fn command(shared: &ConnectionInner, node: &RedisNode) -> Cmd {
    let key = shared.probe_key.get();
    let key = key.and_then(|key| served_by(&shared.topology.load(), node, key));
    match key {
        Some(key) => {
            let mut command = redis::cmd("SET");
            command.arg(key).arg("").arg("XX").arg("PX").arg(1);
            command
        }
        None => redis::cmd("PING"),
    }
}

/// Returns `key`, or the first of `key{0}`, `key{1}`, … that `node` serves.
fn served_by(topology: &Topology, node: &RedisNode, key: &str) -> Option<String> {
    let is_served = |key: &String| {
        let owner = topology.node(slot(key.as_bytes()));
        owner.is_some_and(|owner| owner.address == node.address)
    };
    let tagged = (0..NAMES_MAX).map(|n| format!("{key}{{{n}}}"));
    [key.to_owned()].into_iter().chain(tagged).find(is_served)
}

#[cfg(test)]
mod tests {
    use super::super::topology::Slots;
    use super::super::{dial, shared};
    use super::*;
    use crate::address::Address;

    #[test]
    fn each_node_of_a_cluster_is_probed_with_a_key_that_it_serves() {
        let mut topology = Topology::new(Slots::unknown());
        for port in 0..3 {
            let node = RedisNode::new(Address::new("a", port), 1);
            topology.nodes.push(Arc::new(node));
        }
        topology.slots.assign(0..=8_191, 0);
        topology.slots.assign(8_192..=16_383, 1);
        for (node, slots) in topology.nodes.iter().zip([0..=8_191, 8_192..=16_383]) {
            let key = served_by(&topology, node, "tg:probe").unwrap();
            assert!(key.starts_with("tg:probe"), "{key}");
            assert!(slots.contains(&slot(key.as_bytes())), "{key}");
        }
        let without_slots = &topology.nodes[2];
        assert_eq!(served_by(&topology, without_slots, "tg:probe"), None);
    }

    /// A lost connection is noticed by a check, restored by a TCP connect, and probed after a pause
    /// at most. Only one of these can delay the recovery.
    #[test]
    fn no_wait_after_an_outage_is_longer_than_a_second() {
        for wait in [shared::CHECK, dial::TCP_CONNECT] {
            assert!(wait + PAUSE * 5 / 4 < Duration::from_secs(1));
        }
    }

    #[test]
    fn a_single_node_is_probed_with_the_plain_key() {
        let mut topology = Topology::new(Slots::One);
        topology
            .nodes
            .push(Arc::new(RedisNode::new(Address::new("a", 1), 1)));
        let key = served_by(&topology, &topology.nodes[0], "tg:probe");
        assert_eq!(key.as_deref(), Some("tg:probe"));
    }
}
