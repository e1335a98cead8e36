//! Finds the master through the sentinels.

use super::handshake;
use super::introduce::ServerLogin;
use super::sentinel_memory::{KnownMaster, SentinelView};
use super::shared::{ConnectionInner, TopologyView};
use crate::address::Address;
use crate::error::{CallError, ConnectError, ConnectErrorKind};
use redis::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// The time to wait for other sentinels once one has replied. One that was cut off during a failover
/// replies quickly too, with the old master.
const SECOND_OPINION: Duration = Duration::from_millis(50);

/// Asks all sentinels at the same time, and trusts the one with the latest failover, unless a later one
/// is known already.
pub(super) async fn look(
    shared: &Arc<ConnectionInner>,
    name: &str,
    memory: &mut KnownMaster,
) -> Result<TopologyView, ConnectError> {
    let count = shared.settings.addresses.len();
    let (sender, mut opinions) = mpsc::channel(count.max(1));
    for address in shared.settings.addresses.clone() {
        let (asking, sender, name) = (Arc::clone(shared), sender.clone(), name.to_owned());
        shared.tasks.spawn(async move {
            let opinion = ask(&asking, &address, &name).await;
            // The receiver is gone once enough others have replied.
            drop(sender.try_send(opinion));
        });
    }
    drop(sender);
    gather(&mut opinions, count, memory).await
}

/// Collects the replies of the sentinels and decides. Waits for all of them until one reports news, then
/// for a moment longer.
async fn gather(
    opinions: &mut mpsc::Receiver<Result<SentinelView, ConnectError>>,
    asked: usize,
    memory: &mut KnownMaster,
) -> Result<TopologyView, ConnectError> {
    let mut heard = Vec::new();
    let mut failure = None;
    let mut until = None;
    for _ in 0..asked {
        let next = match until {
            None => opinions.recv().await,
            Some(until) => timeout_at(until, opinions.recv()).await.unwrap_or(None),
        };
        match next {
            None => break,
            Some(Ok(opinion)) => {
                // One that contradicts what we know counts only together with others.
                if memory.is_news(&opinion) {
                    until.get_or_insert_with(|| Instant::now() + SECOND_OPINION);
                }
                heard.push(opinion);
            }
            Some(Err(error)) => {
                failure.get_or_insert(error);
            }
        }
    }
    if heard.is_empty() {
        let nobody = || not_ready("no sentinel responded".to_owned());
        return Err(failure.unwrap_or_else(nobody));
    }
    let master = memory.judge(&heard, asked, Instant::now());
    Ok(TopologyView {
        masters: master.into_iter().map(|at| (at, Vec::new())).collect(),
        replicas: Vec::new(),
    })
}

/// Asks one sentinel for the master and the epoch of its last failover.
async fn ask(
    shared: &ConnectionInner,
    address: &Address,
    name: &str,
) -> Result<SentinelView, ConnectError> {
    let asked = async {
        let login = ServerLogin::sentinel(&shared.settings);
        let (mut connection, mut driver) = shared.dialer.dial(address, &login).await?;
        let mut pipe = redis::pipe();
        pipe.cmd("SENTINEL")
            .arg("get-master-addr-by-name")
            .arg(name);
        pipe.cmd("SENTINEL").arg("MASTER").arg(name);
        let replies = tokio::select! {
            replies = connection.send_packed_commands(&pipe, 0, 2) => replies,
            () = &mut driver => return Err(not_ready(format!("the sentinel at {address} closed \
                the connection"))),
        };
        let replies = replies.map_err(|error| handshake::lost(address, &error))?;
        opinion(&replies, address, name)
    };
    timeout(shared.settings.connect_timeout, asked)
        .await
        .unwrap_or_else(|_| Err(shared.too_slow(address)))
}

/// Reads the reply of a sentinel.
fn opinion(replies: &[Value], asked: &Address, name: &str) -> Result<SentinelView, ConnectError> {
    let (found, details) = (replies.first(), replies.get(1));
    if let Some(Value::ServerError(error)) = found {
        let message = CallError::server(error).at(asked).to_string();
        return Err(ConnectError::new(ConnectErrorKind::Refused, message));
    }
    let master = found.and_then(|found| match found {
        Value::Array(parts) => match parts.as_slice() {
            [host, port] => Some(Address::new(text(host)?, text(port)?.parse().ok()?)),
            _ => None,
        },
        _ => None,
    });
    match master {
        Some(master) => Ok(SentinelView {
            master,
            epoch: details.and_then(epoch).unwrap_or(0),
        }),
        None => Err(ConnectError::new(
            ConnectErrorKind::NotReady,
            format!("the sentinel at {asked} has no master named '{name}'"),
        )),
    }
}

/// `SENTINEL MASTER`: names and values in turn.
fn epoch(details: &Value) -> Option<u64> {
    let Value::Array(fields) = details else {
        return None;
    };
    let field = fields.chunks_exact(2).find_map(|pair| match pair {
        [name, value] if text(name) == Some("config-epoch") => text(value),
        _ => None,
    });
    field?.parse().ok()
}

/// Reads a reply that is a text.
fn text(value: &Value) -> Option<&str> {
    match value {
        Value::BulkString(text) => str::from_utf8(text).ok(),
        Value::SimpleString(text) => Some(text),
        _ => None,
    }
}

/// Returns an error for sentinels that respond and name no master.
fn not_ready(message: String) -> ConnectError {
    ConnectError::new(ConnectErrorKind::NotReady, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;

    fn bulk(text: &str) -> Value {
        Value::BulkString(text.into())
    }

    fn answer(port: &str, epoch: &str) -> Vec<Value> {
        vec![
            Value::Array(vec![bulk("10.0.0.1"), bulk(port)]),
            Value::Array(vec![
                bulk("name"),
                bulk("m"),
                bulk("config-epoch"),
                bulk(epoch),
            ]),
        ]
    }

    #[test]
    fn an_answer_is_read() {
        let asked = Address::new("s", 1);
        let read = opinion(&answer("6379", "7"), &asked, "m").unwrap();
        let expected = SentinelView {
            master: Address::new("10.0.0.1", 6379),
            epoch: 7,
        };
        assert_eq!(read, expected);
        let unknown = opinion(&[Value::Nil, Value::Nil], &asked, "m").unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "the sentinel at s:1 has no master named 'm'"
        );
    }

    #[tokio::test]
    async fn the_latest_failover_wins() {
        let (sender, mut opinions) = mpsc::channel(3);
        let asked = Address::new("s", 1);
        for (port, epoch) in [("1", "3"), ("2", "5"), ("3", "4")] {
            let one = opinion(&answer(port, epoch), &asked, "m");
            sender.send(one).await.unwrap();
        }
        let mut memory = KnownMaster::default();
        let view = gather(&mut opinions, 3, &mut memory).await.unwrap();
        assert_eq!(view.masters, [(Address::new("10.0.0.1", 2), vec![])]);
    }

    #[tokio::test]
    async fn a_view_contradicting_a_later_failover_needs_other_sentinels() {
        let (sender, mut opinions) = mpsc::channel(3);
        let asked = Address::new("s", 1);
        let (known, stale) = (answer("2", "5"), answer("1", "3"));
        let mut memory = KnownMaster::default();
        let first = opinion(&known, &asked, "m");
        sender.send(first).await.unwrap();
        gather(&mut opinions, 3, &mut memory).await.unwrap();

        let one = opinion(&stale, &asked, "m");
        sender.send(one).await.unwrap();
        let mut looking = pin!(gather(&mut opinions, 3, &mut memory));
        timeout(SECOND_OPINION * 2, &mut looking).await.unwrap_err();
        let other = opinion(&known, &asked, "m");
        sender.send(other).await.unwrap();
        let view = looking.await.unwrap();
        assert_eq!(view.masters, [(Address::new("10.0.0.1", 2), vec![])]);
    }

    #[tokio::test]
    async fn hanging_sentinels_do_not_delay_the_others() {
        let (sender, mut opinions) = mpsc::channel(3);
        let one = opinion(&answer("1", "3"), &Address::new("s", 1), "m");
        sender.send(one).await.unwrap();
        let view = gather(&mut opinions, 3, &mut KnownMaster::default())
            .await
            .unwrap();
        assert_eq!(view.masters.len(), 1);
    }
}
