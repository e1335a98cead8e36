//! A cluster, put together by hand: no other program is needed for it.

mod create;
mod migration;
mod view;

pub use migration::Migration;

use super::options::ServerOptions;
use super::server::Server;
use super::wait::{until, until_some};
use view::ClusterView;

/// Number of slots of a cluster.
pub const SLOTS: u16 = 16_384;

/// Masters that share all slots, and replicas of them. Everything ends when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    options: ServerOptions,
    nodes: Vec<Server>,
}

impl Cluster {
    /// Starts Redis 7.0 without TLS and users. Replicas are assigned to the masters in turn.
    ///
    /// Takes at least two seconds: so long a new master waits before it accepts writes.
    ///
    /// ```no_run
    /// use tidegate_testkit::redis::Cluster;
    ///
    /// let cluster = Cluster::start(3, 3);
    /// let slot = cluster.slot_of("rl:{tenant}:1");
    /// let dead = cluster.kill_master_of(slot);
    /// let heir = cluster.await_owner_other_than(slot, dead);
    /// assert_ne!(heir.port(), dead.port());
    /// ```
    pub fn start(masters: u16, replicas: u16) -> Self {
        ServerOptions::default().start_cluster(masters, replicas)
    }

    /// Starts the options of the servers; ends with [`ServerOptions::start_cluster`].
    pub fn builder() -> ServerOptions {
        ServerOptions::default()
    }

    /// All servers, dead ones too: first those that began as masters.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// Returns the URLs for the limiter, one for each node.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// All URLs with commas between them.
    pub fn url(&self) -> String {
        self.urls().join(",")
    }

    /// Returns the slot of a key.
    pub fn slot_of(&self, key: &str) -> u16 {
        let slot = self.any().command(&["CLUSTER", "KEYSLOT", key]).int();
        u16::try_from(slot).expect("a slot is small")
    }

    /// Returns the master that owns a slot. Waits until there is one.
    pub fn owner_of(&self, slot: u16) -> &Server {
        until_some(&format!("slot {slot} has an owner"), || {
            self.find_owner(slot)
        })
    }

    /// Returns a master that does not own the slot, to move it to. Waits until there is one.
    pub fn stranger_to(&self, slot: u16) -> &Server {
        until_some("there is another master", || {
            self.masters()
                .into_iter()
                .find(|server| ClusterView::of(server).is_some_and(|view| !view.owns(slot)))
        })
    }

    /// Returns the running servers that are masters by their own account.
    pub fn masters(&self) -> Vec<&Server> {
        self.running()
            .filter(|server| ClusterView::of(server).is_some_and(|view| view.is_master()))
            .collect()
    }

    /// Kills the master that owns a slot, and returns it.
    pub fn kill_master_of(&self, slot: u16) -> &Server {
        let owner = self.owner_of(slot);
        owner.kill9();
        owner
    }

    /// Waits until a slot has an owner that is not `old` and all running nodes agree.
    pub fn await_owner_other_than(&self, slot: u16, old: &Server) -> &Server {
        let heir = until_some(&format!("slot {slot} has another owner"), || {
            self.find_owner(slot)
                .filter(|owner| owner.port() != old.port())
        });
        self.await_healthy();
        heir
    }

    /// Waits until every running node considers the cluster healthy, all agree on the owners of
    /// slots, and every running replica follows its master.
    pub fn await_healthy(&self) {
        until("all nodes find the cluster well and agree on it", || {
            let views: Option<Vec<ClusterView>> = self.running().map(ClusterView::of).collect();
            views.is_some_and(|views| {
                let maps: Vec<_> = views.iter().map(ClusterView::slot_map).collect();
                views.iter().all(ClusterView::is_well)
                    && maps.windows(2).all(|pair| pair.first() == pair.last())
            })
        });
    }

    /// Starts to move a slot to another master and leaves it half way; [`Migration::move_keys`] and
    /// [`Migration::finish`] continue.
    pub fn begin_migration<'a>(&'a self, slot: u16, to: &'a Server) -> Migration<'a> {
        Migration::begin(self, slot, to)
    }

    /// Moves a slot and all its keys to another master, as a reshard does.
    pub fn migrate_slot(&self, slot: u16, to: &Server) {
        self.begin_migration(slot, to).finish();
    }

    /// Keys without expiry on any master, see [`audit`](super::audit).
    pub fn audit(&self, exceptions: &[&str]) -> Vec<String> {
        self.masters()
            .into_iter()
            .flat_map(|server| super::audit(&mut server.client(), exceptions))
            .collect()
    }

    fn running(&self) -> impl Iterator<Item = &Server> {
        self.nodes.iter().filter(|server| server.is_running())
    }

    fn any(&self) -> &Server {
        self.running().next().expect("a running node")
    }

    /// Returns the node that claims the slot. If two do for a moment, the one elected later is
    /// right.
    fn find_owner(&self, slot: u16) -> Option<&Server> {
        self.running()
            .filter_map(|server| Some((server, ClusterView::of(server)?)))
            .filter(|(_, view)| view.owns(slot))
            .max_by_key(|(_, view)| view.epoch())
            .map(|(server, _)| server)
    }
}
