//! The cluster as one of its nodes sees it.

use super::{SLOTS, Server};

/// State of the cluster as one node reported it.
pub(super) struct ClusterView {
    nodes: Vec<ClusterNodeLine>,
    is_ok: bool,
    /// A master has no link to its master, and that is as it should be.
    is_linked: bool,
}

/// Slots from the first to the last.
type Range = (u16, u16);

/// A node's name, that of its master, its epoch, its slots.
type SlotClaim<'a> = (&'a str, &'a str, u64, &'a [Range]);

/// A line of `CLUSTER NODES`: `id address flags master ping pong epoch link slots…`.
struct ClusterNodeLine {
    id: String,
    flags: Vec<String>,
    master: String,
    epoch: u64,
    is_connected: bool,
    slots: Vec<Range>,
}

impl ClusterView {
    /// Returns the node's view; `None` if it does not reply.
    pub(super) fn of(server: &Server) -> Option<Self> {
        let nodes = server.ask(&["CLUSTER", "NODES"])?.text();
        let cluster = server.ask(&["CLUSTER", "INFO"])?.text();
        let replication = server.ask(&["INFO", "replication"])?.text();
        Some(Self {
            nodes: nodes
                .lines()
                .map(ClusterNodeLine::parse)
                .collect::<Option<_>>()?,
            is_ok: cluster.contains("cluster_state:ok"),
            is_linked: !replication.contains("master_link_status:down"),
        })
    }

    fn myself(&self) -> Option<&ClusterNodeLine> {
        self.nodes.iter().find(|line| line.is("myself"))
    }

    pub(super) fn is_master(&self) -> bool {
        self.myself().is_some_and(|line| line.is("master"))
    }

    /// The epoch of its election.
    pub(super) fn epoch(&self) -> u64 {
        self.myself().map_or(0, |line| line.epoch)
    }

    /// Returns true if the node claims the slot.
    pub(super) fn owns(&self, slot: u16) -> bool {
        self.is_master() && self.myself().is_some_and(|line| line.has(slot))
    }

    /// Returns true if the node finds all slots served, and is connected to all nodes that are not
    /// dead.
    pub(super) fn is_well(&self) -> bool {
        let settled = |line: &ClusterNodeLine| {
            line.is("myself")
                || line.is("fail")
                || (line.is_connected && !line.is("fail?") && !line.is("handshake"))
        };
        self.is_ok && self.is_linked && self.nodes.iter().all(settled)
    }

    /// Returns the number of nodes that it knows by name and is connected to, itself included.
    pub(super) fn known(&self) -> usize {
        let known = |line: &&ClusterNodeLine| {
            line.is_connected && !line.is("handshake") && !line.is("noaddr")
        };
        self.nodes.iter().filter(known).count()
    }

    /// Returns the number of replicas that it knows of.
    pub(super) fn replicas(&self) -> usize {
        self.nodes.iter().filter(|line| line.is("slave")).count()
    }

    pub(super) fn knows(&self, id: &str) -> bool {
        let named = |line: &ClusterNodeLine| line.id == id && !line.is("handshake");
        self.nodes.iter().any(named)
    }

    /// Returns the owners of slots with their epochs, and the masters of replicas, in an order that
    /// is the same for all nodes.
    ///
    /// The epochs matter: a node that does not know the epoch of a claim takes a slot without
    /// making a more recent one, and loses it again to the next message that it gets.
    pub(super) fn slot_map(&self) -> Vec<SlotClaim<'_>> {
        let alive = self.nodes.iter().filter(|line| !line.is("fail"));
        let mut map: Vec<_> = alive
            .map(|line| (&*line.id, &*line.master, line.epoch, &*line.slots))
            .collect();
        map.sort_unstable();
        map
    }
}

impl ClusterNodeLine {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let id = words.next()?.to_owned();
        let _address = words.next()?;
        let flags = words.next()?.split(',').map(str::to_owned).collect();
        let master = words.next()?.to_owned();
        let (_ping, _pong) = (words.next()?, words.next()?);
        let epoch = words.next()?.parse().ok()?;
        let is_connected = words.next()? == "connected";
        Some(Self {
            id,
            flags,
            master,
            epoch,
            is_connected,
            // A slot in migration is in brackets, and still belongs to its old owner.
            slots: words.filter_map(range).collect(),
        })
    }

    fn is(&self, flag: &str) -> bool {
        self.flags.iter().any(|has| has == flag)
    }

    fn has(&self, slot: u16) -> bool {
        self.slots
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&slot))
    }
}

/// `7` or `0-5460`.
fn range(word: &str) -> Option<Range> {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    let slot = |text: &str| text.parse().ok().filter(|slot| *slot < SLOTS);
    Some((slot(from)?, slot(to)?))
}
