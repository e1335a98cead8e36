//! Goes through the keys of all masters in batches.

use super::{Connection, NodeChoice};
use crate::address::Address;
use crate::error::CallError;
use redis::Value;

/// A walk over keys, made by [`Connection::scan`].
///
/// It gives each key that exists from the beginning to the end at least once, perhaps more often,
/// as Redis' `SCAN` does; keys that change nodes meanwhile may be missed.
#[derive(Debug)]
pub struct KeyScan {
    connection: Connection,
    pattern: Vec<u8>,
    count: usize,
    /// Masters still to visit, the present one last.
    nodes: Vec<Address>,
    cursor: Vec<u8>,
}

impl KeyScan {
    /// Returns a scan that starts at the first master.
    pub(super) fn new(connection: Connection, pattern: &[u8], count: usize) -> Self {
        let mut nodes = connection.masters();
        nodes.reverse();
        Self {
            connection,
            pattern: pattern.to_vec(),
            count: count.max(1),
            nodes,
            cursor: b"0".to_vec(),
        }
    }

    /// The next keys, perhaps none; `None` at the end. After an error the walk may be gone on with.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<Vec<u8>>>, CallError> {
        let Some(node) = self.nodes.last() else {
            return Ok(None);
        };
        let mut command = redis::cmd("SCAN");
        command.arg(self.cursor.as_slice());
        command.arg("MATCH").arg(self.pattern.as_slice());
        command.arg("COUNT").arg(self.count);
        let reply = self
            .connection
            .command(NodeChoice::Node(node), &command)
            .await?;
        let (cursor, keys) = read(reply).ok_or_else(|| CallError::malformed("SCAN"))?;
        if cursor == b"0" {
            self.nodes.pop();
        }
        self.cursor = cursor;
        Ok(Some(keys))
    }
}

/// `[cursor, [key…]]`.
fn read(reply: Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let Value::Array(parts) = reply else {
        return None;
    };
    let [cursor, keys] = <[Value; 2]>::try_from(parts).ok()?;
    let (Value::BulkString(cursor), Value::Array(keys)) = (cursor, keys) else {
        return None;
    };
    let keys = keys.into_iter().map(|key| match key {
        Value::BulkString(key) => Some(key),
        _ => None,
    });
    Some((cursor, keys.collect::<Option<_>>()?))
}
