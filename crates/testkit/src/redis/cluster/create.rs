//! Creation of a cluster from servers.

use super::view::ClusterView;
use super::{Cluster, SLOTS, Server};
use crate::redis::options::ServerOptions;
use crate::redis::wait::until;

impl ServerOptions {
    /// Starts a cluster, see [`Cluster::start`]. Panics without a master.
    pub fn start_cluster(self, masters: u16, replicas: u16) -> Cluster {
        assert!(masters > 0, "a cluster has at least one master");
        let mut lines = vec![
            "cluster-enabled yes".to_owned(),
            "cluster-config-file nodes.conf".to_owned(),
            format!("cluster-node-timeout {}", self.failover_ms),
            // A replica may be elected after any time without a connection: no operator will
            // intervene.
            "cluster-replica-validity-factor 0".to_owned(),
            // Replicas stay where the test put them.
            "cluster-allow-replica-migration no".to_owned(),
        ];
        if self.has_tls() {
            lines.push("tls-cluster yes".to_owned());
        }
        let nodes = (0..masters + replicas)
            .map(|_| Server::launch(&self, &lines))
            .collect();
        let cluster = Cluster {
            options: self,
            nodes,
        };
        cluster.join(usize::from(masters), usize::from(replicas));
        cluster
    }
}

impl Cluster {
    fn join(&self, masters: usize, replicas: usize) {
        let (masters, followers) = self.nodes.split_at(masters);
        for (number, server) in (1..).zip(masters) {
            share_out(server, number, masters.len());
        }
        for (number, server) in self.nodes.iter().enumerate() {
            for other in self.nodes.iter().skip(number + 1) {
                let port = other.port().to_string();
                let meet = ["CLUSTER", "MEET", "127.0.0.1", &port];
                server.command(&meet).done();
            }
        }
        until("all nodes have met", || {
            let knows_all = |view: ClusterView| view.known() == self.nodes.len();
            self.nodes
                .iter()
                .all(|server| ClusterView::of(server).is_some_and(knows_all))
        });
        for (server, master) in followers.iter().zip(masters.iter().cycle()) {
            let id = master.id();
            until("the replica knows its master", || {
                ClusterView::of(server).is_some_and(|view| view.knows(&id))
            });
            server.command(&["CLUSTER", "REPLICATE", &id]).done();
        }
        until("all nodes know all replicas", || {
            let knows_all = |view: ClusterView| view.replicas() == replicas;
            self.nodes
                .iter()
                .all(|server| ClusterView::of(server).is_some_and(knows_all))
        });
        self.await_healthy();
    }
}

/// Gives the server, the `number`th of `count`, its part of the slots.
fn share_out(server: &Server, number: usize, count: usize) {
    let mut client = server.client();
    // Distinct from the start, else the nodes disagree about which is older.
    let epoch = number.to_string();
    client
        .command(&["CLUSTER", "SET-CONFIG-EPOCH", &epoch])
        .done();
    let slots = usize::from(SLOTS);
    let first = ((number - 1) * slots / count).to_string();
    let last = (number * slots / count - 1).to_string();
    client
        .command(&["CLUSTER", "ADDSLOTSRANGE", &first, &last])
        .done();
}

impl Server {
    /// Returns the name that a node has in its cluster.
    pub(super) fn id(&self) -> String {
        self.command(&["CLUSTER", "MYID"]).text()
    }
}
