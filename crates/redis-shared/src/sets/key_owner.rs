//! The server of a Cluster that has a key.

use tidegate_redis_client::protocol;
use tidegate_redis_client::{Address, CallError, Connection, NodeChoice, RedisTopology, slot};

/// The location of a key. On topologies other than a Cluster all keys are in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyOwner {
    /// The master of its slot.
    owner: Option<Address>,
    /// The server's redirection, if the key has moved on.
    elsewhere: Option<String>,
}

/// The codes of redirections.
const REDIRECTIONS: [&str; 2] = ["ASK", "MOVED"];

impl KeyOwner {
    pub(super) async fn of(connection: &Connection, key: &[u8]) -> Result<Self, CallError> {
        let here = slot(key);
        let mut nodes = connection.nodes().into_iter();
        let is_owner = |slots: &[std::ops::RangeInclusive<u16>]| {
            let mut slots = slots.iter();
            slots.any(|range| range.contains(&here))
        };
        let owner = nodes.find(|node| is_owner(&node.slots));
        let owner = owner.filter(|_| *connection.mode() == RedisTopology::Cluster);
        // If no server has the slot, a command with the key gives a better error.
        let Some(owner) = owner.map(|node| node.address) else {
            return Ok(Self::default());
        };
        let mut command = protocol::cmd("EXISTS");
        command.arg(key);
        let answer = connection.command(NodeChoice::Node(&owner), &command).await;
        let elsewhere = match answer {
            Ok(_) => None,
            Err(error) => match error.code() {
                Some(code) if REDIRECTIONS.contains(&code) => Some(error.detail().to_owned()),
                _ => return Err(error),
            },
        };
        Ok(Self {
            owner: Some(owner),
            elsewhere,
        })
    }
}
