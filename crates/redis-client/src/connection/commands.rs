//! Single commands, for callers that need more of Redis than decisions.

use super::run::{CommandCall, RepeatEffect};
use super::scan::KeyScan;
use super::{Connection, NodeChoice};
use crate::address::Address;
use crate::error::{CallEffect, CallError, CallErrorKind};
use crate::script::Script;
use crate::slot::slot;
use redis::{Cmd, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The time limit of a single command, unless decisions have a longer one.
const PATIENCE: Duration = Duration::from_secs(1);

/// The remaining lifetime of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ttl {
    /// There is no such key.
    Missing,
    /// It does not expire.
    Never,
    /// It expires then, to the millisecond.
    In(Duration),
}

/// The result of a ping to one node.
#[derive(Clone, Debug)]
pub struct Ping {
    /// The node.
    pub node: Address,
    /// The time until the reply.
    pub latency: Result<Duration, CallError>,
}

/// Single commands. They wait for at most a second (or the deadline of decisions, if that is longer), are
/// sent again only if they were certainly not executed, and ignore the nodes' circuit breakers.
///
/// # Errors
///
/// All of them fail with a [`CallError`]: the node is unreachable, does not respond in time, or replies
/// with an error. [`CallError::class`] shows whether the command may have been executed.
impl Connection {
    /// Sends any command.
    ///
    /// # Examples
    ///
    /// ```no_run
    /// # async fn example(connection: tidegate_redis_client::Connection) -> Result<(), Box<dyn std::error::Error>> {
    /// use tidegate_redis_client::{NodeChoice, protocol};
    ///
    /// let mut command = protocol::cmd("TYPE");
    /// command.arg("greeting");
    /// let kind = connection.command(NodeChoice::Key(b"greeting"), &command).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub async fn command(&self, route: NodeChoice<'_>, command: &Cmd) -> Result<Value, CallError> {
        self.send(route, command, None).await
    }

    /// Loads a script on every master. (Those given at the start are loaded on every connect.)
    pub async fn load_script(&self, script: &Script) -> Result<(), CallError> {
        let mut command = redis::cmd("SCRIPT");
        command.arg("LOAD").arg(script.text());
        self.command(NodeChoice::EveryMaster, &command)
            .await
            .map(drop)
    }

    /// Calls a script by its hash, and loads it if the server does not have it. All keys must be in one
    /// slot.
    pub async fn evalsha<K, A>(
        &self,
        script: &Script,
        keys: &[K],
        args: &[A],
    ) -> Result<Value, CallError>
    where
        K: AsRef<[u8]>,
        A: AsRef<[u8]>,
    {
        let command = script_command("EVALSHA", script.sha(), keys, args);
        self.send(route_of(keys), &command, Some(script)).await
    }

    /// Runs a script whose source is sent with the call. All keys must be in one slot.
    pub async fn eval<K, A>(&self, text: &str, keys: &[K], args: &[A]) -> Result<Value, CallError>
    where
        K: AsRef<[u8]>,
        A: AsRef<[u8]>,
    {
        let command = script_command("EVAL", text, keys, args);
        self.send(route_of(keys), &command, None).await
    }

    /// Sets fields of a hash. Returns the number of new fields.
    pub async fn hset<F, V>(&self, key: &[u8], fields: &[(F, V)]) -> Result<u64, CallError>
    where
        F: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let mut command = redis::cmd("HSET");
        command.arg(key);
        for (field, value) in fields {
            command.arg(field.as_ref()).arg(value.as_ref());
        }
        count(&self.command(NodeChoice::Key(key), &command).await?)
    }

    /// All fields of a hash and their values; none if there is no such key.
    pub async fn hgetall(&self, key: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>)>, CallError> {
        let mut command = redis::cmd("HGETALL");
        command.arg(key);
        let reply = self.command(NodeChoice::Key(key), &command).await?;
        redis::from_redis_value(reply).map_err(|error| CallError::malformed(error.to_string()))
    }

    /// Deletes keys, in any slots. Returns the number of keys that existed.
    pub async fn del<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<u64, CallError> {
        let mut keys: Vec<_> = keys.iter().map(AsRef::as_ref).collect();
        keys.sort_by_key(|key| slot(key));
        let mut deleted = 0;
        for group in keys.chunk_by(|a, b| slot(a) == slot(b)) {
            let mut command = redis::cmd("DEL");
            command.arg(group);
            deleted += count(&self.command(route_of(group), &command).await?)?;
        }
        Ok(deleted)
    }

    /// Returns true if the key exists.
    pub async fn exists(&self, key: &[u8]) -> Result<bool, CallError> {
        let mut command = redis::cmd("EXISTS");
        command.arg(key);
        let reply = self.command(NodeChoice::Key(key), &command).await?;
        Ok(count(&reply)? > 0)
    }

    /// Returns the remaining lifetime of a key, in milliseconds.
    pub async fn ttl(&self, key: &[u8]) -> Result<Ttl, CallError> {
        let mut command = redis::cmd("PTTL");
        command.arg(key);
        match self.command(NodeChoice::Key(key), &command).await? {
            Value::Int(-2) => Ok(Ttl::Missing),
            Value::Int(-1) => Ok(Ttl::Never),
            reply => Ok(Ttl::In(Duration::from_millis(count(&reply)?))),
        }
    }

    /// Goes through the keys of all masters that match `pattern`, about `count` looked at a time.
    pub fn scan(&self, pattern: impl AsRef<[u8]>, count: usize) -> KeyScan {
        KeyScan::new(self.clone(), pattern.as_ref(), count)
    }

    /// Pings every master.
    pub async fn ping(&self) -> Vec<Ping> {
        let mut pings = Vec::new();
        for node in self.masters() {
            let from = Instant::now();
            let answer = self
                .command(NodeChoice::Node(&node), &redis::cmd("PING"))
                .await;
            let latency = answer.map(|_| from.elapsed());
            pings.push(Ping { node, latency });
        }
        pings
    }

    /// Sends a command, once for each node that `route` names. Such commands do not affect the circuit
    /// breaker: their effect on a node's health differs from that of a decision.
    async fn send(
        &self,
        route: NodeChoice<'_>,
        command: &Cmd,
        script: Option<&Script>,
    ) -> Result<Value, CallError> {
        let shared = self.shared();
        let call = CommandCall {
            command,
            script,
            repeat: RepeatEffect::Refund,
            is_guarded: false,
            deadline: Instant::now() + PATIENCE.max(shared.settings.timeout),
        };
        match route {
            NodeChoice::Key(key) => shared.run(slot(key), &call).await,
            NodeChoice::Node(address) => {
                let node = shared.topology.load().find(address).map(Arc::clone);
                let node = node.ok_or_else(|| {
                    let detail = "it is not a master".to_owned();
                    CallError::new(CallEffect::NotExecuted, CallErrorKind::Unreachable, detail)
                        .at(address)
                })?;
                shared.run_on(&node, &call).await
            }
            NodeChoice::EveryMaster => {
                let topology = shared.topology.load_full();
                let mut replies = Vec::new();
                for node in &topology.nodes {
                    replies.push(shared.run_on(node, &call).await?);
                }
                if replies.is_empty() {
                    let detail = "no master is known".to_owned();
                    return Err(CallError::new(
                        CallEffect::NotExecuted,
                        CallErrorKind::Unreachable,
                        detail,
                    ));
                }
                Ok(Value::Array(replies))
            }
        }
    }
}

/// Returns the call of a script, by its hash or by its source.
fn script_command<K, A>(name: &str, what: &str, keys: &[K], args: &[A]) -> Cmd
where
    K: AsRef<[u8]>,
    A: AsRef<[u8]>,
{
    let mut command = redis::cmd(name);
    command.arg(what).arg(keys.len());
    for key in keys {
        command.arg(key.as_ref());
    }
    for arg in args {
        command.arg(arg.as_ref());
    }
    command
}

/// Without keys any master will do.
fn route_of<K: AsRef<[u8]>>(keys: &[K]) -> NodeChoice<'_> {
    NodeChoice::Key(keys.first().map_or(&[], AsRef::as_ref))
}

/// Reads a reply that is a count.
fn count(reply: &Value) -> Result<u64, CallError> {
    match reply {
        Value::Int(count) => u64::try_from(*count).ok(),
        _ => None,
    }
    .ok_or_else(|| CallError::malformed("unexpected reply: expected a count"))
}
