//! Checks before a connection is used: the server is new enough, is a master if it has to be, and has the
//! scripts.

use super::version::NodeVersion;
use crate::address::Address;
use crate::error::{CallError, ConnectError, ConnectErrorKind};
use crate::script::Script;
use redis::aio::MultiplexedConnection;
use redis::{RedisError, Value};

/// The requirements of a connection.
#[derive(Debug)]
pub(super) struct HandshakeTerms<'a> {
    pub(super) client_name: &'a str,
    pub(super) scripts: &'a [Script],
    /// True if the server has to be a master.
    pub(super) is_master: bool,
}

/// One round trip.
pub(super) async fn prepare(
    connection: &mut MultiplexedConnection,
    address: &Address,
    demands: &HandshakeTerms<'_>,
) -> Result<(), ConnectError> {
    let mut pipe = redis::pipe();
    pipe.cmd("CLIENT").arg("SETNAME").arg(demands.client_name);
    pipe.cmd("INFO").arg("server");
    pipe.cmd("ROLE");
    add_scripts(&mut pipe, demands.scripts.iter());
    let count = pipe.len();
    let replies = connection.send_packed_commands(&pipe, 0, count).await;
    let replies = replies.map_err(|error| lost(address, &error))?;
    let mut replies = replies.into_iter();
    // The client name is optional: an error is ignored.
    replies.next();
    check_version(address, replies.next().as_ref())?;
    check_role(address, replies.next().as_ref(), demands.is_master)?;
    for reply in replies {
        if let Value::ServerError(error) = reply {
            return Err(unwilling(address, &error));
        }
    }
    Ok(())
}

/// Returns true if the server responds, and is a master if it has to be.
pub(super) async fn is_fine(connection: &mut MultiplexedConnection, is_master: bool) -> bool {
    let mut command = redis::Cmd::new();
    command.arg(if is_master { "ROLE" } else { "PING" });
    match connection.send_packed_command(&command).await {
        Ok(reply) => !is_master || role(&reply) != Some("slave"),
        Err(_) => false,
    }
}

/// Adds `SCRIPT LOAD` of each.
pub(super) fn add_scripts<'a>(
    pipe: &mut redis::Pipeline,
    scripts: impl Iterator<Item = &'a Script>,
) {
    for script in scripts {
        pipe.cmd("SCRIPT").arg("LOAD").arg(script.text());
    }
}

/// Checks the version of a server. A server that hides it is assumed to be new enough.
fn check_version(address: &Address, reply: Option<&Value>) -> Result<(), ConnectError> {
    let text = match reply {
        Some(Value::BulkString(text)) => String::from_utf8_lossy(text),
        Some(Value::ServerError(error)) if error.code() != "NOPERM" => {
            return Err(unwilling(address, error));
        }
        // A user without the permission to ask is assumed to be right.
        _ => return Ok(()),
    };
    let Some(version) = NodeVersion::parse(&text) else {
        return Ok(());
    };
    match version.too_old_for() {
        None => Ok(()),
        Some(floor) => Err(ConnectError::new(
            ConnectErrorKind::Version,
            format!("{version} at {address} is too old: {floor} or later is needed"),
        )),
    }
}

/// Checks that the server is a master.
fn check_role(
    address: &Address,
    reply: Option<&Value>,
    must_be_master: bool,
) -> Result<(), ConnectError> {
    if must_be_master && reply.and_then(role) == Some("slave") {
        let message = format!("Redis at {address} is a replica, not the master");
        return Err(ConnectError::new(ConnectErrorKind::NotReady, message));
    }
    Ok(())
}

/// Reads the role from the reply to `ROLE`.
fn role(reply: &Value) -> Option<&str> {
    let Value::Array(parts) = reply else {
        return None;
    };
    match parts.first()? {
        Value::BulkString(role) => str::from_utf8(role).ok(),
        _ => None,
    }
}

/// An error reply to something that a limiter cannot do without.
pub(super) fn unwilling(address: &Address, error: &redis::ServerError) -> ConnectError {
    let message = CallError::server(error).at(address);
    match error.code() {
        "NOAUTH" => ConnectError::new(
            ConnectErrorKind::Refused,
            format!("Redis at {address} requires a password"),
        ),
        "NOPERM" => ConnectError::new(ConnectErrorKind::Refused, message.to_string()),
        _ => ConnectError::new(ConnectErrorKind::NotReady, message.to_string()),
    }
}

/// Returns the error of a connection that was lost during the handshake.
pub(super) fn lost(address: &Address, error: &RedisError) -> ConnectError {
    let message = format!("Redis at {address} closed the connection: {error}");
    ConnectError::new(ConnectErrorKind::Unreachable, message)
}
