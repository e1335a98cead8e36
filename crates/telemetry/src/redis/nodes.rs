//! The nodes, and the last report of each.

use super::figures::ServerFigures;
use super::info::Info;
use crate::stopwatch::Stopwatch;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tidegate::redis::Connection;
use tidegate_redis_client::protocol::{Value, cmd};
use tidegate_redis_client::{Address, CallTimes, NodeChoice, NodeStats};
use tokio::time::{Instant, sleep};
use tracing::debug;

/// The interval at which nodes are queried.
const EVERY: Duration = Duration::from_secs(10);

/// The number of nodes that are shown individually; the calls of all others are shown together.
pub(super) const NODES_MAX: usize = 64;

/// The nodes of one Redis.
#[derive(Debug)]
pub struct Nodes {
    connection: Connection,
    /// The last reports. Replaced as a whole.
    said: ArcSwap<Vec<NodeReport>>,
}

/// A node's reply to `INFO`.
#[derive(Debug)]
struct NodeReport {
    address: Address,
    at: Instant,
    /// The time until the reply.
    took: Duration,
    figures: ServerFigures,
}

/// The figures of one node.
#[derive(Debug)]
pub struct NodeFigures {
    /// The node's address; `other` for the nodes beyond `NODES_MAX`.
    pub name: String,
    /// The calls to the node.
    pub calls: NodeStats,
    /// Its latest reply to `INFO`.
    pub said: Option<NodeWord>,
}

/// The last report of a node.
#[derive(Debug)]
pub struct NodeWord {
    /// The time since the report.
    pub age: Duration,
    /// The time until the reply.
    pub took: Duration,
    /// The figures in the reply.
    pub figures: ServerFigures,
}

impl Nodes {
    /// Creates the metrics of the nodes of `connection`.
    pub fn new(connection: Connection) -> Self {
        Self {
            connection,
            said: ArcSwap::default(),
        }
    }

    /// Queries all nodes repeatedly. Off the path of any decision, and past the circuit breakers, which are
    /// for decisions.
    pub async fn keep(self: Arc<Self>) {
        loop {
            self.ask_all().await;
            sleep(EVERY).await;
        }
    }

    async fn ask_all(&self) {
        let stats = self.connection.node_stats();
        let asked = stats.iter().filter(|node| node.is_connected);
        let asked = asked.take(NODES_MAX).map(|node| self.ask(&node.address));
        let reports = join_all(asked).await.into_iter().flatten();
        self.said.store(Arc::new(reports.collect()));
    }

    /// Queries one node. Returns `None` if it does not reply, or denies Tidegate the command.
    async fn ask(&self, address: &Address) -> Option<NodeReport> {
        let watch = Stopwatch::start();
        let info = cmd("INFO");
        let asked = self.connection.command(NodeChoice::Node(address), &info);
        let reply = match asked.await {
            Ok(reply) => reply,
            Err(error) => {
                debug!(event = "redis_info_failed", %error, "cannot read INFO from a Redis node");
                return None;
            }
        };
        let took = watch.elapsed();
        let text = match reply {
            Value::BulkString(bytes) => String::from_utf8(bytes).ok()?,
            Value::SimpleString(text) | Value::VerbatimString { text, .. } => text,
            _ => return None,
        };
        let database = self.connection.settings().database;
        Some(NodeReport {
            address: address.clone(),
            at: Instant::now(),
            took,
            figures: ServerFigures::of(&Info::new(text), database),
        })
    }

    /// Returns the topology: `standalone`, `sentinel` or `cluster`.
    pub fn mode(&self) -> String {
        self.connection.mode().to_string()
    }

    /// Returns all nodes in topology order; those from the sixty-fifth on as one.
    pub fn all(&self) -> Vec<NodeFigures> {
        let reports = self.said.load_full();
        let mut nodes: Vec<NodeFigures> = Vec::new();
        for calls in self.connection.node_stats() {
            if nodes.len() > NODES_MAX
                && let Some(other) = nodes.last_mut()
            {
                other.add(&calls);
                continue;
            }
            let is_alone = nodes.len() < NODES_MAX;
            let word = reports.iter().find(|it| it.address == calls.address);
            nodes.push(NodeFigures {
                name: if is_alone {
                    calls.address.to_string()
                } else {
                    "other".to_owned()
                },
                said: word.filter(|_| is_alone).map(|report| NodeWord {
                    age: report.at.elapsed(),
                    took: report.took,
                    figures: report.figures.clone(),
                }),
                calls,
            });
        }
        nodes
    }

    /// Returns the latencies of decisions over all nodes together.
    pub fn answered(&self) -> CallTimes {
        let each = self.connection.node_stats().into_iter();
        each.fold(CallTimes::default(), |sum, node| sum.and(&node.answered))
    }
}

impl NodeFigures {
    fn add(&mut self, other: &NodeStats) {
        let calls = &mut self.calls;
        calls.is_connected &= other.is_connected;
        calls.is_trusted &= other.is_trusted;
        calls.failed = calls.failed.saturating_add(other.failed);
        calls.given_up = calls.given_up.saturating_add(other.given_up);
        calls.held_back = calls.held_back.saturating_add(other.held_back);
        calls.answered = calls.answered.and(&other.answered);
    }
}
