//! The connection to Redis: one type over a single server, a Sentinel group and a Cluster.
//!
//! ```text
//! Connection ─ run ─▶ topology (slot → node) ─▶ node: breaker, links ─▶ MultiplexedConnection
//!                          ▲                           ▲
//!                        pilot                   keepers, probe       (tasks)
//! ```
//!
//! The pilot finds out the topology, a keeper keeps each link standing, a probe closes each breaker
//! that has opened, and `run` decides by the class of an error whether a call may be sent again.

mod breaker;
mod cluster;
mod commands;
mod dial;
mod figures;
mod handshake;
mod introduce;
mod keeper;
mod listen;
mod node;
mod pace;
mod permit;
mod pilot;
mod probe;
mod redirections;
mod run;
mod scan;
mod sentinel;
mod sentinel_memory;
mod shared;
mod tls;
mod topology;
mod version;

pub use commands::{Ping, Ttl};
pub use figures::{CallTimes, NodeStats};
pub use listen::{ListenerLost, Subscription};
pub use run::RepeatEffect;
pub use scan::KeyScan;

use crate::address::Address;
use crate::error::{CallError, ConnectError};
use crate::script::Script;
use crate::settings::{ConnectionSettings, RedisTopology};
use run::CommandCall;
use shared::{ConnectionInner, LinkStatus};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::{Arc, Weak};
use tokio::sync::watch;
use tokio::time::Instant;

/// A connection to Redis of any topology. Clones share it. It ends when the last clone is dropped.
///
/// # Examples
///
/// ```no_run
/// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use tidegate_redis_client::{Address, Connection, RedisTopology, ConnectionSettings};
///
/// let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![Address::new("127.0.0.1", 6379)]);
/// let connection = Connection::open(settings, Vec::new()).await?;
/// connection.hset(b"greeting", &[("en", "hello")]).await?;
/// assert!(connection.exists(b"greeting").await?);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Connection {
    handle: Arc<Handle>,
}

/// Held by users only, never by tasks: when the last goes, the tasks end.
struct Handle {
    shared: Arc<ConnectionInner>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.tasks.close();
    }
}

/// The node that a command is sent to.
#[derive(Clone, Copy, Debug)]
pub enum NodeChoice<'a> {
    /// The master that serves this key.
    Key(&'a [u8]),
    /// Each master in turn; the reply is an array of theirs, in the order of
    /// [`Connection::nodes`].
    EveryMaster,
    /// This master.
    Node(&'a Address),
}

/// A node, as far as we know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeInfo {
    /// Its address.
    pub address: Address,
    /// Its role.
    pub role: NodeRole,
    /// In a Cluster, the slots that it serves.
    pub slots: Vec<RangeInclusive<u16>>,
    /// True if a connection is up. Replicas have none.
    pub is_connected: bool,
}

/// The role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// It takes writes.
    Master,
    /// It follows a master.
    Replica,
}

impl Connection {
    /// Connects. `scripts` are loaded on every server before it is used.
    ///
    /// # Errors
    ///
    /// The server is unreachable, rejects the credentials, or is older than Redis 6.2 or Valkey 7.2. In a
    /// Cluster every master has to respond.
    pub async fn open(
        settings: ConnectionSettings,
        scripts: Vec<Script>,
    ) -> Result<Self, ConnectError> {
        let connection = Self::start(settings, scripts)?;
        connection.settled().await?;
        Ok(connection)
    }

    /// Waits until the first attempt to connect has ended, and returns its result.
    pub async fn settled(&self) -> Result<(), ConnectError> {
        let mut status = self.shared().status.subscribe();
        let settled = status
            .wait_for(|status| *status != LinkStatus::Starting)
            .await;
        match settled.as_deref() {
            Ok(LinkStatus::Away(error)) => Err(error.clone()),
            // The sender lives as long as the connection.
            Ok(LinkStatus::Starting | LinkStatus::Joined) | Err(_) => Ok(()),
        }
    }

    /// Returns immediately, connects in the background and retries until it succeeds. Logs once what it
    /// is connected to. An unreachable Redis is logged at debug level only: the caller that continues
    /// without it warns, see [`Connection::settled`].
    ///
    /// # Errors
    ///
    /// The settings can never work: there is no address, or a certificate cannot be read.
    pub fn start(settings: ConnectionSettings, scripts: Vec<Script>) -> Result<Self, ConnectError> {
        let shared = Arc::new(ConnectionInner::new(settings, scripts)?);
        shared.tasks.spawn(pilot::steer(Arc::clone(&shared)));
        Ok(Self {
            handle: Arc::new(Handle { shared }),
        })
    }

    /// The topology.
    pub fn mode(&self) -> &RedisTopology {
        &self.settings().mode
    }

    /// Returns the settings that it was opened with.
    pub fn settings(&self) -> &ConnectionSettings {
        &self.shared().settings
    }

    /// Returns true if every master is connected.
    pub fn is_connected(&self) -> bool {
        self.shared().is_connected()
    }

    /// Waits until every master is connected.
    pub async fn connected(&self) {
        let mut changes = self.changes();
        // The sender lives as long as the connection.
        drop(changes.wait_for(|_| self.is_connected()).await);
    }

    /// The nodes, masters first.
    pub fn nodes(&self) -> Vec<NodeInfo> {
        let topology = self.shared().topology.load();
        let masters = topology.nodes.iter().zip(topology.ranges());
        let masters = masters.map(|(node, slots)| NodeInfo {
            address: node.address.clone(),
            role: NodeRole::Master,
            slots,
            is_connected: node.is_up(),
        });
        let replicas = topology.replicas.iter().map(|address| NodeInfo {
            address: address.clone(),
            role: NodeRole::Replica,
            slots: Vec::new(),
            is_connected: false,
        });
        masters.chain(replicas).collect()
    }

    /// The masters, and how calls for decisions have gone since we know each of them.
    pub fn node_stats(&self) -> Vec<NodeStats> {
        let topology = self.shared().topology.load_full();
        topology.nodes.iter().map(|node| node.stats()).collect()
    }

    /// Returns a number that rises with every connect and every change of the topology. Conclusions from
    /// earlier replies may not hold any more.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.shared().changes.subscribe()
    }

    /// Ends the connection and its tasks, for all clones.
    pub async fn close(&self) {
        self.shared().close().await;
    }

    /// Sends `command`, which calls `script`, to the master of `slot`, and follows redirections. Sends it
    /// again only if [`CallEffect`](crate::CallEffect) and [`RepeatEffect`] allow it. Ends at `deadline` at the
    /// latest. If the future is dropped while the command is in flight, the node's circuit breaker counts
    /// that as a failure after half of the time.
    #[expect(
        clippy::too_many_arguments,
        reason = "one caller, and each argument has a different meaning"
    )]
    pub async fn run(
        &self,
        slot: u16,
        script: &Script,
        command: &redis::Cmd,
        repeat: RepeatEffect,
        deadline: Instant,
    ) -> Result<redis::Value, CallError> {
        let call = CommandCall {
            command,
            script: Some(script),
            repeat,
            is_guarded: true,
            deadline,
        };
        self.shared().run(slot, &call).await
    }

    /// Sets the key that probes of failed nodes write to. It must not exist.
    pub fn probe_with(&self, key: String) {
        // The first one stays.
        drop(self.shared().probe_key.set(key));
    }

    /// Returns the addresses of the masters.
    fn masters(&self) -> Vec<Address> {
        let topology = self.shared().topology.load();
        let addresses = topology.nodes.iter().map(|node| node.address.clone());
        addresses.collect()
    }

    /// Returns the state that clones and tasks share.
    fn shared(&self) -> &Arc<ConnectionInner> {
        &self.handle.shared
    }

    /// Runs a task that ends with this connection at the latest. Returns `None` if the connection is
    /// closed.
    pub fn spawn(
        &self,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> Option<tokio::task::AbortHandle> {
        self.shared().tasks.spawn(task)
    }

    /// A reference that does not keep the connection.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection {
            handle: Arc::downgrade(&self.handle),
        }
    }
}

impl ConnectionSettings {
    /// Checks that these settings can work: there is an address, a Cluster has database 0, certificates
    /// can be read.
    pub fn check(&self) -> Result<(), ConnectError> {
        shared::check(self).map(drop)
    }
}

/// A reference for tasks, which must not keep the connection that ends them.
#[derive(Clone, Debug)]
pub struct WeakConnection {
    handle: Weak<Handle>,
}

impl WeakConnection {
    /// Returns the connection, unless its last handle is gone.
    pub fn upgrade(&self) -> Option<Connection> {
        let handle = self.handle.upgrade()?;
        Some(Connection { handle })
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("mode", self.mode())
            .field("nodes", &self.masters())
            .field("is_connected", &self.is_connected())
            .finish()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
