//! One call: sent to whom it concerns, followed where it is redirected, sent again where that is
//! safe, and never after its deadline.

use super::breaker::CallHealth;
use super::cluster;
use super::handshake;
use super::node::RedisNode;
use super::permit::CallPermit;
use super::shared::ConnectionInner;
use crate::error::{CallEffect, CallError, CallErrorKind};
use crate::jitter::jittered;
use crate::script::Script;
use crate::settings::RedisTopology;
use redis::aio::MultiplexedConnection;
use redis::{Cmd, RedisError, Value};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout_at};

/// The most times that a call is redirected, or finds its script missing, before it fails.
const HOPS_MAX: u32 = 5;

/// The pause before a call that was not executed is sent again; doubled each time.
const PAUSE: Duration = Duration::from_millis(1);

/// The effect of a call, as far as sending it again is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepeatEffect {
    /// It charges, so that executing it twice charges twice and does nothing worse; or it refunds
    /// something that can be refunded only once. May be sent once more if it is unknown whether it was
    /// executed.
    Consume,
    /// It refunds, or has an unknown effect. Never sent again unless it was certainly not executed.
    Refund,
}

/// A command and the terms of sending it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommandCall<'a> {
    pub(super) command: &'a Cmd,
    /// The script that it calls by its hash, if it does.
    pub(super) script: Option<&'a Script>,
    pub(super) repeat: RepeatEffect,
    /// True if the call respects the node's circuit breaker and reports to it.
    pub(super) is_guarded: bool,
    pub(super) deadline: Instant,
}

/// The state of a call when its time is up.
#[derive(Debug, Default)]
struct CallProgress {
    node: Option<Arc<RedisNode>>,
    /// Sent, and not yet answered.
    is_under_way: bool,
    /// It was sent once before, and it is unknown whether that was executed.
    is_ambiguous: bool,
}

/// The node to send to next.
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

    /// Sends `call` once, to `node` and no other.
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

    /// Sends a call until it succeeds or may not be sent again. Redirections and missing scripts are
    /// bounded by [`HOPS_MAX`], other repeats by the setting `retries`.
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
            // An error from inside a script concerns another command, regardless of its code.
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

    /// Returns the node of a slot. If none is known, requests a refresh of the topology and fails.
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

    /// Returns the target of an error that is a redirection of a Cluster.
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

    /// Wakes the tasks that can fix the cause of an error.
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

    /// Returns the node to send to after an error, or the error if sending again is unsafe or useless.
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
                if call.repeat == RepeatEffect::Refund || progress.is_ambiguous {
                    return Err(error);
                }
                progress.is_ambiguous = true;
                return self.route(slot).map_err(|_| error);
            }
            CallEffect::NotExecuted => {}
        }
        if *error.kind() == CallErrorKind::Unreachable {
            // The node is known to be down, and other tasks wait for it. Another node may serve the slot
            // by now.
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

    /// Loads all scripts, and `script`, unless another call did so since `loads` was read. Calls that
    /// arrive meanwhile wait for it.
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
        // Regardless of the result of loading, the call itself was not executed.
        let replies = replies.map_err(|_| unreachable(node))?;
        for reply in replies {
            if let Value::ServerError(error) = reply {
                let error = CallError::server(&error).at(&node.address);
                return Err(error.with_class(CallEffect::NotExecuted));
            }
        }
        node.loads.fetch_add(1, Ordering::Release);
        tracing::debug!(event = "redis_scripts_loaded", node = %node.address, "scripts loaded again");
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

/// Writes one command, after `ASKING` if it was redirected so, and waits for the reply.
async fn transmit(
    connection: &MultiplexedConnection,
    is_asking: bool,
    command: &Cmd,
) -> Result<Value, RedisError> {
    let mut connection = connection.clone();
    if !is_asking {
        return connection.send_packed_command(command).await;
    }
    // One message, so that no other command comes between.
    let mut pipe = redis::pipe();
    pipe.cmd("ASKING").add_command(command.clone());
    let replies = connection.send_packed_commands(&pipe, 0, 2).await?;
    Ok(replies.into_iter().nth(1).unwrap_or(Value::Nil))
}

/// Returns the error of a call whose time is up. It may have been executed if it was in flight, now or
/// before.
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

/// Returns the error of a call to a node without a connection.
fn unreachable(node: &RedisNode) -> CallError {
    let detail = node.failure().map(|error| error.to_string());
    CallError::new(
        CallEffect::NotExecuted,
        CallErrorKind::Unreachable,
        detail.unwrap_or_default(),
    )
    .at(&node.address)
}
