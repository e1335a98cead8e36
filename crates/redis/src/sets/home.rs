//! Which server of a Cluster has a key at the moment.

use crate::connection::{Connection, NodeChoice};
use crate::error::CallError;
use crate::key::slot;
use crate::settings::{Address, RedisTopology};

/// Where a key is. On other topologies than a Cluster all keys are in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyOwner {
    /// The master of its slot.
    owner: Option<Address>,
    /// Where that sends us, in its words, if the key has moved on.
    elsewhere: Option<String>,
}

/// How a server says that a key is not with it.
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
        // A command by the key's name says better what is wrong if nobody has it.
        let Some(owner) = owner.map(|node| node.address) else {
            return Ok(Self::default());
        };
        let mut command = redis::cmd("EXISTS");
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
