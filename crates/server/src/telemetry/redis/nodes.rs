//! The nodes, and what each said last when asked how it is.

use super::figures::ServerFigures;
use super::info::Info;
use crate::telemetry::stopwatch::Stopwatch;
use arc_swap::ArcSwap;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tidegate::redis::Connection;
use tidegate_redis::protocol::{Value, cmd};
use tidegate_redis::{Address, CallTimes, NodeChoice, NodeStats};
use tokio::time::{Instant, sleep};
use tracing::debug;

/// How often nodes are asked how they are.
const EVERY: Duration = Duration::from_secs(10);

/// How many nodes are shown by themselves; the calls of all others are shown together.
pub(super) const NODES_MAX: usize = 64;

/// The nodes of one Redis.
#[derive(Debug)]
pub(crate) struct Nodes {
    connection: Connection,
    /// What they said last. Replaced whole.
    said: ArcSwap<Vec<NodeReport>>,
}

/// What a node said when it was asked how it is.
#[derive(Debug)]
struct NodeReport {
    address: Address,
    at: Instant,
    /// How long it took to say so.
    took: Duration,
    figures: ServerFigures,
}

/// What is known of a node.
#[derive(Debug)]
pub(crate) struct NodeFigures {
    /// Its address; `other` for those that have no place of their own.
    pub(crate) name: String,
    pub(crate) calls: NodeStats,
    pub(crate) said: Option<NodeWord>,
}

/// What it said last of itself.
#[derive(Debug)]
pub(crate) struct NodeWord {
    pub(crate) age: Duration,
    pub(crate) took: Duration,
    pub(crate) figures: ServerFigures,
}

impl Nodes {
    pub(crate) fn new(connection: Connection) -> Self {
        Self {
            connection,
            said: ArcSwap::default(),
        }
    }

    /// Asks all nodes how they are, again and again. Off the path of any decision, and past the
    /// breakers, which are about decisions.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            self.ask_all().await;
            sleep(EVERY).await;
        }
    }

    async fn ask_all(&self) {
        let stats = self.connection.node_stats();
        let asked = stats.iter().filter(|node| node.is_connected);
        let asked = asked.take(NODES_MAX).map(|node| self.ask(&node.address));
        let said = join_all(asked).await.into_iter().flatten();
        self.said.store(Arc::new(said.collect()));
    }

    /// What one node says; nothing where it does not answer, or may not tell us.
    async fn ask(&self, address: &Address) -> Option<NodeReport> {
        let watch = Stopwatch::start();
        let info = cmd("INFO");
        let asked = self.connection.command(NodeChoice::Node(address), &info);
        let reply = match asked.await {
            Ok(reply) => reply,
            Err(error) => {
                debug!(%error, "a node of Redis does not tell how it is");
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

    /// How they are connected: `standalone`, `sentinel` or `cluster`.
    pub(crate) fn mode(&self) -> String {
        self.connection.mode().to_string()
    }

    /// All of them, in the order of the topology; from the sixty-fifth on as one.
    pub(crate) fn all(&self) -> Vec<NodeFigures> {
        let said = self.said.load_full();
        let mut nodes: Vec<NodeFigures> = Vec::new();
        for calls in self.connection.node_stats() {
            if nodes.len() > NODES_MAX
                && let Some(other) = nodes.last_mut()
            {
                other.add(&calls);
                continue;
            }
            let is_alone = nodes.len() < NODES_MAX;
            let word = said.iter().find(|it| it.address == calls.address);
            nodes.push(NodeFigures {
                name: if is_alone {
                    calls.address.to_string()
                } else {
                    "other".to_owned()
                },
                said: word.filter(|_| is_alone).map(|said| NodeWord {
                    age: said.at.elapsed(),
                    took: said.took,
                    figures: said.figures.clone(),
                }),
                calls,
            });
        }
        nodes
    }

    /// How long answers to decisions took, of all nodes together.
    pub(crate) fn answered(&self) -> CallTimes {
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
