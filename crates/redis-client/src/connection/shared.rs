//! State that all clones of a connection and its tasks share.

use super::dial::Dialer;
use super::keeper;
use super::node::{LinkState, RedisNode};
use super::probe;
use super::redirections::RecentRedirections;
use super::topology::{Slots, Topology};
use crate::address::Address;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::script::Script;
use crate::settings::{ConnectionSettings, RedisTopology};
use crate::tasks::ConnectionTasks;
use arc_swap::ArcSwap;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

/// The most nodes. A Cluster has at most about a thousand; redirections beyond that are ignored.
const NODES_MAX: usize = 1024;

/// Time for a check of a connection, unless decisions have longer. Connections that lost packets may
/// stay silent for minutes after the network is back.
pub(super) const CHECK: Duration = Duration::from_millis(500);

/// The shared state of a connection. Its tasks and all clones of the handle refer to it.
#[derive(Debug)]
pub(super) struct ConnectionInner {
    pub(super) settings: ConnectionSettings,
    pub(super) scripts: Vec<Script>,
    pub(super) dialer: Dialer,
    /// Key that probes write to; without it they are `PING`.
    pub(super) probe_key: OnceLock<String>,
    pub(super) topology: ArcSwap<Topology>,
    /// Held while the topology is replaced. Never across an await.
    editing: Mutex<RecentRedirections>,
    /// Wakes the task that finds out the topology.
    pub(super) refresh: Notify,
    /// Why the topology could not be found out, if it could not.
    discovery: Mutex<Option<ConnectError>>,
    pub(super) status: watch::Sender<LinkStatus>,
    /// True once the connection has been logged.
    has_joined: AtomicBool,
    pub(super) changes: watch::Sender<u64>,
    pub(super) tasks: ConnectionTasks,
}

/// The state of the connection, as last logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LinkStatus {
    Starting,
    Away(ConnectError),
    Joined,
}

impl ConnectionInner {
    /// Checks the settings. Opens no connection yet: the pilot does.
    pub(super) fn new(
        settings: ConnectionSettings,
        scripts: Vec<Script>,
    ) -> Result<Self, ConnectError> {
        let dialer = check(&settings)?;
        if settings.mode == RedisTopology::Standalone
            && let [first, _, ..] = settings.addresses.as_slice()
        {
            tracing::warn!(event = "redis_addresses_ignored", %first, "standalone Redis with several addresses; using the first");
        }
        let slots = match settings.mode {
            RedisTopology::Cluster => Slots::unknown(),
            RedisTopology::Standalone | RedisTopology::Sentinel { .. } => Slots::One,
        };
        Ok(Self {
            dialer,
            settings,
            scripts,
            probe_key: OnceLock::new(),
            topology: ArcSwap::from_pointee(Topology::new(slots)),
            editing: Mutex::new(RecentRedirections::default()),
            refresh: Notify::new(),
            discovery: Mutex::new(None),
            status: watch::Sender::new(LinkStatus::Starting),
            has_joined: AtomicBool::new(false),
            changes: watch::Sender::new(0),
            tasks: ConnectionTasks::new(),
        })
    }

    /// Returns true if a replica is of no use.
    pub(super) fn needs_master(&self) -> bool {
        matches!(self.settings.mode, RedisTopology::Sentinel { .. })
    }

    /// Returns true if a master that became a replica has to be looked up again. In a Cluster it
    /// redirects.
    pub(super) fn prefers_master(&self) -> bool {
        self.settings.mode != RedisTopology::Cluster
    }

    /// Returns the error of a node that exceeds the connect timeout.
    pub(super) fn too_slow(&self, address: &Address) -> ConnectError {
        let limit = self.settings.connect_timeout;
        let message = format!("no connection to Redis at {address} within {limit:?}");
        ConnectError::new(ConnectErrorKind::Unreachable, message)
    }

    /// Returns how long a connection may take to answer a check. One that takes longer is replaced.
    pub(super) fn check_timeout(&self) -> Duration {
        let settings = &self.settings;
        CHECK.max(settings.timeout).min(settings.connect_timeout)
    }

    /// Every master is connected, and there is one.
    pub(super) fn is_connected(&self) -> bool {
        let topology = self.topology.load();
        !topology.nodes.is_empty() && topology.nodes.iter().all(|node| node.is_up())
    }

    /// Connected, and no node is held back.
    pub(super) fn is_well(&self) -> bool {
        let topology = self.topology.load();
        let is_well = |node: &Arc<RedisNode>| node.is_up() && node.is_trusted();
        !topology.nodes.is_empty() && topology.nodes.iter().all(is_well)
    }

    /// A connection was made.
    pub(super) fn joined(&self) {
        self.bump();
        self.assess();
    }

    /// A node was lost or cannot be reached.
    pub(super) fn node_failed(&self) {
        self.refresh.notify_one();
        self.assess();
    }

    /// Takes in whether the topology could be found out.
    pub(super) fn discovered(&self, failure: Option<ConnectError>) {
        *self.discovery.lock() = failure;
        self.assess();
    }

    /// Makes `masters` the topology: address and slots of each. Keeps nodes that stay, and those
    /// that redirections led to of late.
    pub(super) fn install(self: &Arc<Self>, view: TopologyView) {
        let mut editing = self.editing.lock();
        let old = self.topology.load_full();
        let mut new = Topology::new(match self.settings.mode {
            RedisTopology::Cluster => Slots::unknown(),
            RedisTopology::Standalone | RedisTopology::Sentinel { .. } => Slots::One,
        });
        for (address, ranges) in view.masters.into_iter().take(NODES_MAX) {
            let known = old.find(&address).map(Arc::clone);
            new.nodes
                .push(known.unwrap_or_else(|| self.add_node(address)));
            for range in ranges {
                new.slots.assign(range, new.nodes.len() - 1);
            }
        }
        new.replicas = view.replicas;
        for address in editing.recent(Instant::now()) {
            let is_other = new.find(address).is_none() && !new.replicas.contains(address);
            // A node that is down would make the whole connection look down.
            let is_fine = |node: &&Arc<RedisNode>| node.is_up() || node.failure().is_none();
            if is_other
                && new.nodes.len() < NODES_MAX
                && let Some(node) = old.find(address).filter(is_fine)
            {
                new.nodes.push(Arc::clone(node));
            }
        }
        for node in &old.nodes {
            if new.find(&node.address).is_none() {
                node.retire();
            }
        }
        let is_same = old.nodes.len() == new.nodes.len()
            && (0..crate::slot::SLOTS).all(|slot| {
                let address = |of: &Topology| of.node(slot).map(Arc::as_ptr);
                address(&old) == address(&new)
            });
        self.topology.store(Arc::new(new));
        drop(editing);
        if !is_same {
            self.bump();
        }
        // Keepers of new nodes run since before the nodes were in the topology, and may have connected.
        self.assess();
    }

    /// The node at `address`, new if need be. If it has a `slot`, it serves that from now on.
    /// `None` if there are too many nodes already.
    pub(super) fn follow(
        self: &Arc<Self>,
        address: Address,
        slot: Option<u16>,
    ) -> Option<Arc<RedisNode>> {
        let mut editing = self.editing.lock();
        editing.note(&address, Instant::now());
        let old = self.topology.load();
        if slot.is_none()
            && let Some(node) = old.find(&address)
        {
            return Some(Arc::clone(node));
        }
        let mut new = Topology::clone(&old);
        let index = new.nodes.iter().position(|node| node.address == address);
        let index = match index {
            Some(index) => index,
            None if new.nodes.len() >= NODES_MAX => return None,
            None => {
                new.nodes.push(self.add_node(address));
                new.nodes.len() - 1
            }
        };
        if let Some(slot) = slot {
            new.slots.assign(slot..=slot, index);
        }
        let node = new.nodes.get(index).map(Arc::clone);
        self.topology.store(Arc::new(new));
        drop(editing);
        if slot.is_some() {
            self.refresh.notify_one();
            self.bump();
        }
        node
    }

    /// Ends everything.
    pub(super) async fn close(&self) {
        self.tasks.finish().await;
        let _editing = self.editing.lock();
        let slots = self.topology.load().slots.clone();
        let old = self.topology.swap(Arc::new(Topology::new(slots)));
        for link in old.nodes.iter().flat_map(|node| &node.links) {
            let closed = ConnectError::new(
                ConnectErrorKind::NotReady,
                "Tidegate closed the \
                connection",
            );
            link.lost(LinkState::Down(closed));
        }
    }

    /// Adds a node, and starts the keepers of its connections and its probe.
    fn add_node(self: &Arc<Self>, address: Address) -> Arc<RedisNode> {
        let node = Arc::new(RedisNode::new(address, self.settings.connections));
        for index in 0..node.links.len() {
            let keeper = keeper::keep(Arc::clone(self), Arc::clone(&node), index);
            // After closing nothing is spawned, and the node stays without connection.
            self.tasks.spawn(keeper);
        }
        self.tasks
            .spawn(probe::watch(Arc::clone(self), Arc::clone(&node)));
        node
    }

    /// Raises the number of changes.
    fn bump(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    /// Records when Redis is lost and when it is back. The caller that decides without it logs that; here
    /// only the first connect is logged, once.
    fn assess(&self) {
        let is_connected = self.is_connected();
        let topology = self.topology.load();
        let failure = || {
            let of_nodes = topology.nodes.iter().find_map(|node| node.failure());
            of_nodes.or_else(|| self.discovery.lock().clone())
        };
        let next = if is_connected {
            LinkStatus::Joined
        } else if let Some(error) = failure() {
            LinkStatus::Away(error)
        } else {
            // It is being tried, and nothing is known yet.
            return;
        };
        self.status.send_if_modified(|status| {
            let is_told = match (&*status, &next) {
                (LinkStatus::Joined, LinkStatus::Joined) => return false,
                // The error may differ from attempt to attempt; an operator has to act only when it
                // becomes a permanent one.
                (LinkStatus::Away(old), LinkStatus::Away(new)) => {
                    new.kind() == old.kind() || new.is_transient()
                }
                _ => false,
            };
            if !is_told {
                self.tell(&next);
            }
            *status = next;
            true
        });
    }

    /// Logs a change of the connection's state.
    fn tell(&self, status: &LinkStatus) {
        let mode = &self.settings.mode;
        match status {
            LinkStatus::Starting => {}
            LinkStatus::Joined => {
                let nodes = self.topology.load();
                let nodes: Vec<String> =
                    nodes.nodes.iter().map(|n| n.address.to_string()).collect();
                let tls = self.settings.tls.is_some();
                let user = self.settings.user.as_deref().unwrap_or("default");
                let nodes = nodes.join(",");
                if self.has_joined.swap(true, Ordering::Relaxed) {
                    tracing::debug!(event = "redis_reconnected", %mode, nodes, "connected to Redis again");
                } else {
                    tracing::info!(event = "redis_connected", %mode, nodes, tls, user, "connected to Redis");
                }
            }
            LinkStatus::Away(error) => {
                tracing::debug!(event = "redis_unreachable", %mode, %error, "Redis unreachable; retrying in the background");
            }
        }
    }
}

/// The topology, as found by a refresh.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TopologyView {
    pub(super) masters: Vec<(Address, Vec<std::ops::RangeInclusive<u16>>)>,
    pub(super) replicas: Vec<Address>,
}

/// The means to connect with these settings, or why they can never work.
pub(crate) fn check(settings: &ConnectionSettings) -> Result<Dialer, ConnectError> {
    let wrong = |message: &str| Err(ConnectError::new(ConnectErrorKind::Settings, message));
    if settings.addresses.is_empty() {
        return wrong("no address of Redis was given");
    }
    if settings.mode == RedisTopology::Cluster && settings.database != 0 {
        return wrong("a Redis Cluster has only database 0");
    }
    Dialer::new(settings)
}
