//! Finds out the topology, and keeps it up to date.

use super::sentinel_memory::KnownMaster;
use super::shared::{ConnectionInner, TopologyView};
use super::{cluster, sentinel};
use crate::jitter::jittered;
use crate::settings::RedisTopology;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

/// The interval of topology refreshes while something is wrong.
const UNWELL: Duration = Duration::from_millis(250);
/// The shortest interval between refreshes, regardless of how often one is requested.
const APART: Duration = Duration::from_millis(100);
/// The interval of refreshes of a healthy Cluster.
const CLUSTER: Duration = Duration::from_secs(15);
/// The interval of refreshes of a healthy Sentinel group.
const SENTINEL: Duration = Duration::from_secs(10);

/// The task that does it. A standalone server needs none: it is where it is.
pub(super) async fn steer(shared: Arc<ConnectionInner>) {
    let usual = match &shared.settings.mode {
        RedisTopology::Standalone => {
            let first = shared.settings.addresses.first().cloned();
            return shared.install(TopologyView {
                masters: first.into_iter().map(|a| (a, Vec::new())).collect(),
                replicas: Vec::new(),
            });
        }
        RedisTopology::Sentinel { .. } => SENTINEL,
        RedisTopology::Cluster => CLUSTER,
    };
    let mut memory = KnownMaster::default();
    loop {
        let found = match &shared.settings.mode {
            RedisTopology::Sentinel { master } => {
                sentinel::look(&shared, master, &mut memory).await
            }
            _ => cluster::look(&shared).await,
        };
        let failure = match found {
            Ok(view) => {
                shared.install(view);
                None
            }
            Err(error) => {
                tracing::debug!(event = "redis_topology_failed", %error, "cannot read the Redis topology");
                Some(error)
            }
        };
        let is_known = failure.is_none();
        shared.discovered(failure);
        let looked = Instant::now();
        let pause = if is_known && shared.is_well() {
            usual
        } else {
            UNWELL
        };
        tokio::select! {
            () = shared.refresh.notified() => {
                sleep_until(looked + jittered(APART)).await;
            }
            () = sleep(jittered(pause)) => {}
        }
    }
}
