//! Reads the slots of a Cluster's nodes.

use super::handshake;
use super::introduce::ServerLogin;
use super::shared::{ConnectionInner, TopologyView};
use crate::address::Address;
use crate::error::{CallError, ConnectError, ConnectErrorKind};
use crate::jitter::random;
use redis::Value;
use redis::aio::MultiplexedConnection;
use std::ops::RangeInclusive;
use tokio::time::timeout;

/// Asks nodes we are connected to, those that we trust first, then the seeds.
pub(super) async fn look(shared: &ConnectionInner) -> Result<TopologyView, ConnectError> {
    let topology = shared.topology.load_full();
    let mut nodes: Vec<_> = topology.nodes.iter().collect();
    // Another one each time: a node that is cut off from the others does not know that it is wrong.
    let turn = usize::try_from(random()).unwrap_or(0);
    let turn = turn.checked_rem(nodes.len()).unwrap_or(0);
    nodes.rotate_left(turn);
    nodes.sort_by_key(|node| !node.is_trusted());
    for node in nodes {
        let Some(connection) = node.connection() else {
            continue;
        };
        let mut connection = MultiplexedConnection::clone(&connection);
        let asked = ask(&mut connection, &node.address);
        if let Ok(Ok(view)) = timeout(shared.check_timeout(), asked).await {
            return Ok(view);
        }
    }
    let mut failure = None;
    for seed in &shared.settings.addresses {
        match timeout(shared.settings.connect_timeout, ask_seed(shared, seed)).await {
            Ok(Ok(view)) => return Ok(view),
            Ok(Err(error)) => failure.get_or_insert(error),
            Err(_) => failure.get_or_insert(shared.too_slow(seed)),
        };
    }
    Err(failure.unwrap_or_else(|| not_ready("no seed node was given")))
}

/// Connects to a seed node, asks it for the topology, and closes the connection.
async fn ask_seed(shared: &ConnectionInner, seed: &Address) -> Result<TopologyView, ConnectError> {
    let login = ServerLogin::node(&shared.settings);
    let (mut connection, mut driver) = shared.dialer.dial(seed, &login).await?;
    tokio::select! {
        answer = ask(&mut connection, seed) => answer,
        () = &mut driver => Err(not_ready(format!("Redis at {seed} closed the connection"))),
    }
}

/// Asks a node for the topology. A node that knows no slots is no answer, so that another seed comes next.
async fn ask(
    connection: &mut MultiplexedConnection,
    asked: &Address,
) -> Result<TopologyView, ConnectError> {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    match connection.send_packed_command(&command).await {
        Err(error) => Err(handshake::lost(asked, &error)),
        Ok(Value::ServerError(error)) => Err(refused(asked, &error)),
        Ok(reply) => {
            let view = view(&reply, asked);
            view.filter(|view| !view.masters.is_empty())
                .ok_or_else(|| not_ready(format!("Redis at {asked} has no Cluster slots")))
        }
    }
}

/// Returns the error for a node that rejects `CLUSTER SLOTS`. A server that is in no Cluster rejects it
/// with `ERR`, which is an error of the settings.
fn refused(asked: &Address, error: &redis::ServerError) -> ConnectError {
    let reply = CallError::server(error).at(asked).to_string();
    match error.code() {
        "NOAUTH" | "NOPERM" => ConnectError::new(ConnectErrorKind::Refused, reply),
        "ERR" => ConnectError::new(
            ConnectErrorKind::Settings,
            format!("{reply} (is this a Cluster node?)"),
        ),
        _ => not_ready(reply),
    }
}

/// Returns an error for a Cluster that responds and cannot be used now.
fn not_ready(message: impl Into<String>) -> ConnectError {
    ConnectError::new(ConnectErrorKind::NotReady, message)
}

/// Reads `CLUSTER SLOTS`: `[from, to, [host, port, …], replica…]…`.
fn view(reply: &Value, asked: &Address) -> Option<TopologyView> {
    let Value::Array(entries) = reply else {
        return None;
    };
    let mut view = TopologyView::default();
    for entry in entries {
        let Value::Array(parts) = entry else {
            return None;
        };
        let [from, to, master, replicas @ ..] = parts.as_slice() else {
            return None;
        };
        let range = number(from)?..=number(to)?;
        add_master(&mut view, address(master, asked)?, range);
        for replica in replicas {
            // One that cannot be read costs nothing.
            let known = address(replica, asked).filter(|at| !view.replicas.contains(at));
            view.replicas.extend(known);
        }
    }
    Some(view)
}

/// Adds a range of slots to a master, which may be new.
fn add_master(view: &mut TopologyView, address: Address, range: RangeInclusive<u16>) {
    match view.masters.iter_mut().find(|(at, _)| *at == address) {
        Some((_, ranges)) => ranges.push(range),
        None => view.masters.push((address, vec![range])),
    }
}

/// A host that is empty, nil or `?` is the one that we asked.
fn address(value: &Value, asked: &Address) -> Option<Address> {
    let Value::Array(parts) = value else {
        return None;
    };
    let [host, port, ..] = parts.as_slice() else {
        return None;
    };
    let host = match host {
        Value::BulkString(host) => str::from_utf8(host).ok()?,
        Value::SimpleString(host) => host,
        _ => "",
    };
    Some(resolve(host, number(port)?, asked))
}

/// Returns the address of a host as a node reports it: empty and `?` are the host of that node.
fn resolve(host: &str, port: u16, asked: &Address) -> Address {
    match host {
        "" | "?" => Address::new(asked.host.clone(), port),
        host => Address::new(host, port),
    }
}

/// Reads the text of a redirection: `3999 127.0.0.1:6381`.
pub(super) fn redirection(detail: &str, asked: &Address) -> Option<(u16, Address)> {
    let (slot, at) = detail.split_once(' ')?;
    let (host, port) = at.trim().rsplit_once(':')?;
    Some((slot.parse().ok()?, resolve(host, port.parse().ok()?, asked)))
}

/// Reads a port or a slot.
fn number(value: &Value) -> Option<u16> {
    match value {
        Value::Int(number) => u16::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queried_node() -> Address {
        Address::new("seed", 1)
    }

    fn text(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), text("id")])
    }

    fn entry(from: i64, to: i64, nodes: Vec<Value>) -> Value {
        let mut parts = vec![Value::Int(from), Value::Int(to)];
        parts.extend(nodes);
        Value::Array(parts)
    }

    #[test]
    fn slots_are_parsed_and_an_unknown_host_is_the_queried_node() {
        let reply = Value::Array(vec![
            entry(0, 99, vec![node(text("a"), 1), node(text("b"), 2)]),
            entry(100, 200, vec![node(text(""), 3)]),
            entry(201, 300, vec![node(Value::Nil, 4)]),
            entry(301, 16_383, vec![node(text("a"), 1), node(text("?"), 5)]),
        ]);
        let view = view(&reply, &queried_node()).unwrap();
        assert_eq!(
            view.masters,
            [
                (Address::new("a", 1), vec![0..=99, 301..=16_383]),
                (Address::new("seed", 3), vec![100..=200]),
                (Address::new("seed", 4), vec![201..=300]),
            ]
        );
        assert_eq!(
            view.replicas,
            [Address::new("b", 2), Address::new("seed", 5)]
        );
    }

    #[test]
    fn an_invalid_reply_is_no_topology() {
        let broken = [
            Value::Nil,
            Value::Array(vec![Value::Nil]),
            Value::Array(vec![entry(-1, 5, vec![node(text("a"), 1)])]),
            Value::Array(vec![entry(0, 5, vec![])]),
            Value::Array(vec![entry(0, 5, vec![node(text("a"), 70_000)])]),
        ];
        for reply in broken {
            assert_eq!(view(&reply, &queried_node()), None, "{reply:?}");
        }
    }

    #[test]
    fn redirections_are_read() {
        let read = |text| redirection(text, &queried_node());
        assert_eq!(
            read("3999 10.0.0.1:6381"),
            Some((3999, Address::new("10.0.0.1", 6381)))
        );
        assert_eq!(read("1 ::1:7000"), Some((1, Address::new("::1", 7000))));
        assert_eq!(read("1 :7000"), Some((1, Address::new("seed", 7000))));
        for text in ["", "1", "x a:1", "1 a", "1 a:99999", "-1 a:1"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
