//! Keeps one connection to a node standing, for as long as the node belongs to us.

use super::dial::Driver;
use super::handshake::{self, HandshakeTerms};
use super::introduce::ServerLogin;
use super::node::{LinkState, NodeLink, RedisNode};
use super::pace::Backoff;
use super::shared::ConnectionInner;
use crate::error::{ConnectError, ConnectErrorKind};
use redis::aio::MultiplexedConnection;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

/// A connection that lasted less than this counts as a failure to connect.
pub(super) const STABLE: Duration = Duration::from_secs(1);

/// The time that calls in flight may take after their node has left.
const DRAIN: Duration = Duration::from_secs(1);

/// The reason why a connection ended.
#[derive(Debug, PartialEq, Eq)]
enum LinkEnd {
    /// The server hung up.
    Lost,
    /// It does not answer, or is no master any more.
    Unfit,
    /// The node has left.
    Retired,
}

/// The task of one link.
pub(super) async fn keep(shared: Arc<ConnectionInner>, node: Arc<RedisNode>, index: usize) {
    let Some(link) = node.links.get(index) else {
        return;
    };
    let mut retired = node.retired.subscribe();
    let mut backoff = Backoff::new();
    loop {
        let began = Instant::now();
        let made = tokio::select! {
            made = connect(&shared, &node) => made,
            () = leaving(&mut retired) => break,
        };
        let failure = match made {
            Ok(made) => {
                let since = Instant::now();
                let end = serve(&shared, &node, link, (made, &mut retired)).await;
                let is_stable = since.elapsed() >= STABLE;
                if is_stable {
                    backoff = Backoff::new();
                }
                match end {
                    LinkEnd::Retired => break,
                    // Connections end for many reasons; most are back in a moment.
                    LinkEnd::Lost if is_stable => {
                        link.lost(LinkState::Trying);
                        shared.node_failed();
                        continue;
                    }
                    LinkEnd::Lost => lost_early(&node),
                    LinkEnd::Unfit => unfit(&node),
                }
            }
            Err(error) => error,
        };
        tracing::debug!(event = "redis_connection_failed", node = %node.address, error = %failure, "connection to Redis failed");
        link.lost(LinkState::Down(failure));
        shared.node_failed();
        tokio::select! {
            () = sleep_until(began + backoff.next()) => {}
            () = leaving(&mut retired) => break,
        }
    }
    // Calls that wait here have to be sent elsewhere.
    link.lost(LinkState::Down(left(&node)));
}

/// Connects, logs in, and checks the server. All of it within the connect timeout.
async fn connect(
    shared: &ConnectionInner,
    node: &RedisNode,
) -> Result<(MultiplexedConnection, Driver), ConnectError> {
    let settings = &shared.settings;
    let address = &node.address;
    let demands = HandshakeTerms {
        client_name: &settings.client_name,
        scripts: &shared.scripts,
        is_master: shared.needs_master(),
    };
    let made = async {
        let login = ServerLogin::node(settings);
        let (mut connection, mut driver) = shared.dialer.dial(address, &login).await?;
        tokio::select! {
            prepared = handshake::prepare(&mut connection, address, &demands) => prepared?,
            () = &mut driver => {
                let message = format!("Redis at {address} closed the connection during setup");
                return Err(ConnectError::new(ConnectErrorKind::Unreachable, message));
            }
        }
        Ok((connection, driver))
    };
    timeout(settings.connect_timeout, made)
        .await
        .unwrap_or_else(|_| Err(shared.too_slow(address)))
}

/// Moves the connection's bytes until it is lost, found useless, or not needed any more.
async fn serve(
    shared: &ConnectionInner,
    node: &RedisNode,
    link: &NodeLink,
    ((connection, mut driver), retired): (
        (MultiplexedConnection, Driver),
        &mut watch::Receiver<bool>,
    ),
) -> LinkEnd {
    link.up(connection.clone());
    node.wake_probe.notify_one();
    shared.joined();
    // For checks.
    let mut own = connection;
    loop {
        tokio::select! {
            () = &mut driver => return LinkEnd::Lost,
            () = leaving(retired) => break,
            () = link.suspicion.notified() => {}
        }
        let check = handshake::is_fine(&mut own, shared.prefers_master());
        let check = timeout(shared.check_timeout(), check);
        let is_fine = tokio::select! {
            checked = check => checked.unwrap_or(false),
            () = &mut driver => return LinkEnd::Lost,
        };
        if !is_fine {
            return LinkEnd::Unfit;
        }
    }
    drop(own);
    link.lost(LinkState::Down(left(node)));
    // The driver ends once no handle of the connection is left and the last reply has arrived.
    drop(timeout(DRAIN, driver).await);
    LinkEnd::Retired
}

/// Returns the error of a connection that was lost soon after it was opened.
fn lost_early(node: &RedisNode) -> ConnectError {
    let message = format!(
        "Redis at {} closed the connection soon after the handshake",
        node.address
    );
    ConnectError::new(ConnectErrorKind::Unreachable, message)
}

/// Returns the error of a connection whose server failed a check.
fn unfit(node: &RedisNode) -> ConnectError {
    let message = format!(
        "Redis at {} does not respond, or is no longer a master",
        node.address
    );
    ConnectError::new(ConnectErrorKind::NotReady, message)
}

/// Returns the error of a node that has left the topology.
fn left(node: &RedisNode) -> ConnectError {
    let message = format!(
        "Redis at {} is no longer part of the topology",
        node.address
    );
    ConnectError::new(ConnectErrorKind::NotReady, message)
}

/// Returns when the node has left.
pub(super) async fn leaving(retired: &mut watch::Receiver<bool>) {
    // An error means that the node itself is gone, which is the same.
    drop(retired.wait_for(|retired| *retired).await);
}
