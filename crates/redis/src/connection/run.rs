//! One call: sent to whom it concerns, followed where it is redirected, sent again where that is
//! safe, and never after its deadline.

use super::breaker::CallHealth;
use super::cluster;
use super::handshake;
use super::node::RedisNode;
use super::pace::jittered;
use super::permit::CallPermit;
use super::shared::ConnectionInner;
use crate::error::{CallEffect, CallError, CallErrorKind};
use crate::script::Script;
use crate::settings::RedisTopology;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// A call that was redirected, or met a server without its script, so many times is given up.
const HOPS_MAX: u32 = 5;

/// The pause before a call that was not executed is sent again; doubled each time.
const PAUSE: Duration = Duration::from_millis(1);

/// What a call does, as far as sending it again is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// It takes: carried out twice it charges twice, and nothing worse; or it gives back what can be
    /// given back but once. May be sent once more when nobody knows whether it was carried out.
    Consume,
    /// It gives back, or does who knows what: never sent again unless it was surely not executed.
    Refund,
}

/// What is to be sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandCall<'a> {
    pub(super) command: &'a Cmd,
    /// The script that it calls by its hash, if it does.
    pub(super) script: Option<&'a Script>,
    pub(super) repeat: Repeat,
    /// Whether the node's breaker is asked and told.
    pub(super) is_guarded: bool,
    pub(super) deadline: Instant,
}

/// What is known about a call at the moment its time is up.
#[derive(Debug, Default)]
struct CallProgress {
    node: Option<Arc<RedisNode>>,
    /// Sent, and not yet answered.
    is_under_way: bool,
    /// Sent once before, and nobody knows whether that was carried out.
    is_ambiguous: bool,
}

/// Whom to send to next.
#[derive(Debug)]
struct NextNode {
    node: Arc<RedisNode>,
    /// The slot is on its way there: ask for an exception.
    is_asking: bool,
}

impl ConnectionInner {
    /// Sends `call` to the master of `slot`.
    pub(super) async fn run(
        self: &Arc<Self>,
        slot: u16,
        call: &CommandCall<'_>,
    ) -> Result<Value, CallError> {
        let mut progress = CallProgress::default();
        if Instant::now() >= call.deadline {
            return Err(late(&progress));
        }
        let sent = timeout_at(call.deadline, self.send(slot, call, &mut progress)).await;
        match sent {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) if progress.is_ambiguous && error.class() == CallEffect::NotExecuted => {
                // The last attempt had no effect, but an earlier one may have.
                Err(error.with_class(CallEffect::Ambiguous))
            }
            Ok(Err(error)) => Err(error),
            Err(_) => Err(late(&progress)),
        }
    }

    /// Sends `call` to `node` and nobody else, once.
    pub(super) async fn run_on(
        &self,
        node: &Arc<RedisNode>,
        call: &CommandCall<'_>,
    ) -> Result<Value, CallError> {
        let mut progress = CallProgress::default();
        let attempt = self.attempt(node, false, call, &mut progress);
        match timeout_at(call.deadline, attempt).await {
            Ok(result) => result,
            Err(_) => Err(late(&progress)),
        }
    }

    async fn send(
        self: &Arc<Self>,
        slot: u16,
        call: &CommandCall<'_>,
        progress: &mut CallProgress,
    ) -> Result<Value, CallError> {
        let mut target = self.route(slot)?;
        let mut hops = 0;
        let mut again = 0;
        loop {
            let NextNode { node, is_asking } = target;
            let loads = node.loads.load(Ordering::Acquire);
            progress.node = Some(Arc::clone(&node));
            let error = match self.attempt(&node, is_asking, call, progress).await {
                Ok(value) => return Ok(value),
                Err(error) => error,
            };
            // What ends a script half way is about something else, whatever its code.
            let may_hop = hops < HOPS_MAX && error.class() == CallEffect::NotExecuted;
            if may_hop && let Some(next) = self.redirected(&error, &node, slot) {
                hops += 1;
                target = next;
                continue;
            }
            if may_hop
                && error.code() == Some("NOSCRIPT")
                && let Some(script) = call.script
            {
                hops += 1;
                self.load(&node, loads, script).await?;
                target = NextNode { node, is_asking };
                continue;
            }
            self.look_into(&error, &node);
            // A slot on its way elsewhere is there in a moment; that is no failure to be counted.
            let is_moving = error.code() == Some("TRYAGAIN");
            if again >= self.settings.retries && !is_moving {
                return Err(error);
            }
            again += 1;
            target = self
                .once_more(error, &node, slot, (call, again, progress))
                .await?;
        }
    }

    /// One message to one node.
    async fn attempt(
        &self,
        node: &Arc<RedisNode>,
        is_asking: bool,
        call: &CommandCall<'_>,
        progress: &mut CallProgress,
    ) -> Result<Value, CallError> {
        let permit = if call.is_guarded {
            CallPermit::ask(self, node, call.deadline).ok_or_else(|| {
                CallError::new(CallEffect::NotExecuted, CallErrorKind::BreakerOpen, "")
                    .at(&node.address)
            })?
        } else {
            CallPermit::free(self, node, call.deadline)
        };
        let connection = match node.connection() {
            Some(connection) => Some(connection),
            None => node.connected().await,
        };
        let Some(connection) = connection else {
            permit.settle(CallHealth::Bad);
            return Err(unreachable(node));
        };
        progress.is_under_way = true;
        let reply = transmit(&connection, is_asking, call.command).await;
        progress.is_under_way = false;
        match reply {
            Ok(Value::ServerError(error)) => {
                let error = CallError::server(&error).at(&node.address);
                permit.settle(if error.is_node_failure() {
                    CallHealth::Bad
                } else {
                    CallHealth::Good
                });
                Err(error)
            }
            Ok(value) => {
                permit.settle(CallHealth::Good);
                Ok(value)
            }
            Err(error) => {
                node.discard(&connection);
                permit.settle(CallHealth::Bad);
                let detail = error.to_string();
                Err(
                    CallError::new(CallEffect::Ambiguous, CallErrorKind::Disconnected, detail)
                        .at(&node.address),
                )
            }
        }
    }

    fn route(&self, slot: u16) -> Result<NextNode, CallError> {
        if let Some(node) = self.topology.load().node(slot) {
            return Ok(NextNode {
                node: Arc::clone(node),
                is_asking: false,
            });
        }
        self.refresh.notify_one();
        if self.tasks.is_closed() {
            return Err(CallError::new(
                CallEffect::NotExecuted,
                CallErrorKind::Closed,
                "",
            ));
        }
        let detail = match self.settings.mode {
            RedisTopology::Cluster => format!("no node serves slot {slot}"),
            RedisTopology::Standalone | RedisTopology::Sentinel { .. } => {
                "no master is known".to_owned()
            }
        };
        Err(CallError::new(
            CallEffect::NotExecuted,
            CallErrorKind::Unreachable,
            detail,
        ))
    }

    /// Where an error sends the call, if it is a redirection of a Cluster.
    fn redirected(
        self: &Arc<Self>,
        error: &CallError,
        node: &RedisNode,
        slot: u16,
    ) -> Option<NextNode> {
        let is_asking = match error.code()? {
            "MOVED" => false,
            "ASK" => true,
            _ => return None,
        };
        if self.settings.mode != RedisTopology::Cluster {
            return None;
        }
        let (_, address) = cluster::redirection(error.detail(), &node.address)?;
        let node = self.follow(address, (!is_asking).then_some(slot))?;
        Some(NextNode { node, is_asking })
    }

    /// Wakes whoever can do something about an error.
    pub(super) fn look_into(&self, error: &CallError, node: &RedisNode) {
        match error.kind() {
            CallErrorKind::Timeout => node.suspect(),
            CallErrorKind::Unreachable | CallErrorKind::Disconnected => self.refresh.notify_one(),
            CallErrorKind::Server(code) => match code.as_str() {
                "READONLY" => {
                    node.suspect();
                    self.refresh.notify_one();
                }
                "CLUSTERDOWN" | "MASTERDOWN" => self.refresh.notify_one(),
                _ => {}
            },
            _ => {}
        }
    }

    /// Whom to send to after an error, or the error where sending again is not safe or of no use.
    async fn once_more(
        &self,
        error: CallError,
        node: &Arc<RedisNode>,
        slot: u16,
        (call, again, progress): (&CommandCall<'_>, u32, &mut CallProgress),
    ) -> Result<NextNode, CallError> {
        match error.class() {
            CallEffect::Executed => return Err(error),
            CallEffect::Ambiguous => {
                if call.repeat == Repeat::Refund || progress.is_ambiguous {
                    return Err(error);
                }
                progress.is_ambiguous = true;
                return self.route(slot).map_err(|_| error);
            }
            CallEffect::NotExecuted => {}
        }
        if *error.kind() == CallErrorKind::Unreachable {
            // It is known to be away, and waiting for it is others' work. Somebody else may serve
            // the slot by now.
            return match self.route(slot) {
                Ok(target) if !Arc::ptr_eq(&target.node, node) => Ok(target),
                _ => Err(error),
            };
        }
        let is_passing = error.code().is_some_and(|code| PASSING.contains(&code));
        let pause = jittered(PAUSE * (1 << again.min(8)));
        if !is_passing || Instant::now() + pause >= call.deadline {
            return Err(error);
        }
        sleep(pause).await;
        self.route(slot).map_err(|_| error)
    }

    /// Loads all scripts, and `script`, unless somebody did since `loads` was read. Those who come
    /// while it is under way wait for it.
    async fn load(&self, node: &RedisNode, loads: u64, script: &Script) -> Result<(), CallError> {
        let _gate = node.load_gate.lock().await;
        if node.loads.load(Ordering::Acquire) != loads {
            return Ok(());
        }
        let Some(connection) = node.connected().await else {
            return Err(unreachable(node));
        };
        let mut pipe = redis::pipe();
        let is_other = |known: &&Script| known.sha() != script.sha();
        let scripts = self.scripts.iter().filter(is_other);
        handshake::add_scripts(&mut pipe, scripts.chain([script]));
        let replies = MultiplexedConnection::clone(&connection)
            .send_packed_commands(&pipe, 0, pipe.len())
            .await;
        // Whatever happens to the loading, the call itself was not executed.
        let replies = replies.map_err(|_| unreachable(node))?;
        for reply in replies {
            if let Value::ServerError(error) = reply {
                let error = CallError::server(&error).at(&node.address);
                return Err(error.with_class(CallEffect::NotExecuted));
            }
        }
        node.loads.fetch_add(1, Ordering::Release);
        tracing::debug!(node = %node.address, "loaded the scripts again");
        Ok(())
    }
}

/// Errors without effect that may be gone in a moment. The others of that class are there to stay
/// for longer than a call has time.
const PASSING: [&str; 5] = [
    "TRYAGAIN",
    "CLUSTERDOWN",
    "LOADING",
    "READONLY",
    "MASTERDOWN",
];

async fn transmit(
    connection: &MultiplexedConnection,
    is_asking: bool,
    command: &Cmd,
) -> Result<Value, RedisError> {
    let mut connection = connection.clone();
    if !is_asking {
        return connection.send_packed_command(command).await;
    }
    // One message, so that nobody's command comes between.
    let mut pipe = redis::pipe();
    pipe.cmd("ASKING").add_command(command.clone());
    let replies = connection.send_packed_commands(&pipe, 0, 2).await?;
    Ok(replies.into_iter().nth(1).unwrap_or(Value::Nil))
}

fn late(progress: &CallProgress) -> CallError {
    let class = if progress.is_under_way || progress.is_ambiguous {
        CallEffect::Ambiguous
    } else {
        CallEffect::NotExecuted
    };
    let error = CallError::new(class, CallErrorKind::Timeout, "");
    match &progress.node {
        Some(node) => error.at(&node.address),
        None => error,
    }
}

fn unreachable(node: &RedisNode) -> CallError {
    let detail = node.failure().map(|error| error.to_string());
    CallError::new(
        CallEffect::NotExecuted,
        CallErrorKind::Unreachable,
        detail.unwrap_or_default(),
    )
    .at(&node.address)
}
