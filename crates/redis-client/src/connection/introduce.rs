//! Authentication on a new connection, and the server's reply to it.

use super::dial::Driver;
use super::handshake;
use crate::address::Address;
use crate::error::{CallError, ConnectError, ConnectErrorKind};
use crate::settings::{ConnectionSettings, Credentials};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Pipeline, ProtocolVersion, RedisConnectionInfo, ServerError, Value,
};
use std::fmt;
use tokio::io::{AsyncRead, AsyncWrite};

/// The most calls that may wait to be written. Beyond it callers wait, within their deadlines.
const QUEUE: usize = 1024;

/// The reply of a server that has no password to a client that sends one.
const NEEDS_NONE: &str = "called without any password configured";

/// The login for a server.
#[derive(Debug)]
pub(super) struct ServerLogin {
    credentials: Credentials,
    database: u32,
    /// True if the credentials are the master's, and it is unknown whether this server has the same.
    is_guess: bool,
}

impl ServerLogin {
    /// To those that hold the data.
    pub(super) fn node(settings: &ConnectionSettings) -> Self {
        Self {
            credentials: settings.credentials(),
            database: settings.database,
            is_guess: false,
        }
    }

    /// Returns the login for sentinels. Without sentinel credentials it is the login of the data
    /// nodes.
    pub(super) fn sentinel(settings: &ConnectionSettings) -> Self {
        Self {
            credentials: settings.sentinel_credentials(),
            database: 0,
            is_guess: settings.sentinel.is_none(),
        }
    }

    /// `AUTH`, if there is anything to tell.
    pub(super) fn add_auth(&self, pipe: &mut Pipeline) -> bool {
        let Credentials { user, password } = &self.credentials;
        if user.is_none() && password.is_none() {
            return false;
        }
        pipe.cmd("AUTH");
        if let Some(user) = user {
            pipe.arg(user);
        }
        // A user without a password is still announced, or we would stay the default one.
        pipe.arg(password.as_ref().map_or("", |password| password.secret()));
        true
    }

    /// Returns the server's error text without the secrets that it repeats.
    fn reply_text(&self, error: &ServerError) -> String {
        let reply = CallError::server(error);
        let detail = reply.detail();
        // A server that does not know `AUTH` repeats its arguments.
        let (detail, _) = detail
            .split_once(", with args beginning with")
            .unwrap_or((detail, ""));
        let secret = self.credentials.password.as_ref();
        let secret = secret.map_or("", |password| password.secret());
        match (detail, secret) {
            ("", _) => error.code().to_owned(),
            (_, "") => detail.to_owned(),
            _ => detail.replace(secret, "***"),
        }
    }

    /// Why `AUTH` was refused, and what to do about it; `None` if it does not matter.
    pub(super) fn unwelcome(&self, error: &ServerError, address: &Address) -> Option<ConnectError> {
        let reply = self.reply_text(error);
        if reply.contains(NEEDS_NONE) {
            if self.is_guess {
                // Every client is the default user there.
                return None;
            }
            let message = format!(
                "Redis at {address} has no password for the default user: remove `password`, or \
                 set `user`. Redis returned: {reply}"
            );
            return Some(ConnectError::new(ConnectErrorKind::Refused, message));
        }
        let user = self.credentials.user.as_deref().unwrap_or("default");
        if error.code() != "WRONGPASS" {
            let whom = format!("rejected the user '{user}'");
            return Some(refused(error, address, &whom, &reply));
        }
        let hint = if self.is_guess {
            " (these are the credentials of the master: for sentinels, set `sentinel_user` and \
             `sentinel_password`)"
        } else {
            ""
        };
        let message =
            format!("Redis at {address} rejected the password of the user '{user}': {reply}{hint}");
        Some(ConnectError::new(ConnectErrorKind::Refused, message))
    }
}

/// Makes `stream` a connection that is logged in. One round trip.
pub(super) async fn introduce<S>(
    stream: S,
    address: &Address,
    login: &ServerLogin,
) -> Result<(MultiplexedConnection, Driver), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The crate could send the login too, but it hides the server's reply.
    let info = RedisConnectionInfo::default()
        // Nothing here needs RESP3, and RESP2 saves a round trip at connecting.
        .set_protocol(ProtocolVersion::RESP2)
        .set_skip_set_lib_name();
    // Deadlines are ours: the crate's would count a slow node as a lost one.
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let made = MultiplexedConnection::new_with_config(&info, stream, config).await;
    let (mut connection, driver) = made.map_err(|error| closed_during_login(address, &error))?;
    let mut driver: Driver = Box::pin(driver);

    let mut pipe = redis::pipe();
    let has_auth = login.add_auth(&mut pipe);
    if login.database != 0 {
        pipe.cmd("SELECT").arg(login.database);
    }
    add_library(&mut pipe);
    let count = pipe.len();
    let replies = tokio::select! {
        biased;
        replies = connection.send_packed_commands(&pipe, 0, count) => replies,
        () = &mut driver => return Err(closed_during_login(address, &"the connection was closed")),
    };
    let mut replies = replies
        .map_err(|error| closed_during_login(address, &error))?
        .into_iter();
    if has_auth
        && let Some(Value::ServerError(error)) = replies.next()
        && let Some(error) = login.unwelcome(&error, address)
    {
        return Err(error);
    }
    if login.database != 0
        && let Some(Value::ServerError(error)) = replies.next()
    {
        let whom = format!("rejected database {}", login.database);
        return Err(refused(&error, address, &whom, &login.reply_text(&error)));
    }
    Ok((connection, driver))
}

/// A courtesy for `CLIENT LIST`; older servers do not know it.
fn add_library(pipe: &mut Pipeline) {
    let what = [
        ("LIB-NAME", "tidegate"),
        ("LIB-VER", env!("CARGO_PKG_VERSION")),
    ];
    for (name, value) in what {
        pipe.cmd("CLIENT").arg("SETINFO").arg(name).arg(value);
    }
}

/// Returns the error of a login that the server rejects. `reply` is the server's text without secrets.
fn refused(error: &ServerError, address: &Address, whom: &str, reply: &str) -> ConnectError {
    if error.code() == "NOAUTH" {
        return handshake::unwilling(address, error);
    }
    let kind = if CallError::server(error).is_transient() {
        ConnectErrorKind::NotReady
    } else {
        ConnectErrorKind::Refused
    };
    ConnectError::new(kind, format!("Redis at {address} {whom}: {reply}"))
}

/// Returns the error of a server that closes the connection during the login.
fn closed_during_login(address: &Address, error: &dyn fmt::Display) -> ConnectError {
    let message = format!(
        "Redis at {address} closed the connection during the handshake (check the TLS setting): \
         {error}"
    );
    ConnectError::new(ConnectErrorKind::Unreachable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::RedisTopology;

    fn settings() -> ConnectionSettings {
        let mode = RedisTopology::Sentinel {
            master: "m".to_owned(),
        };
        ConnectionSettings::new(mode, vec![Address::new("a", 1)]).password("hunter2")
    }

    fn login_error(login: &ServerLogin, reply: &str) -> Option<String> {
        let value = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        let Value::ServerError(error) = value else {
            panic!("an error: {reply}");
        };
        let error = login.unwelcome(&error, &Address::new("a", 1))?;
        assert_eq!(error.kind(), ConnectErrorKind::Refused);
        Some(error.to_string())
    }

    #[test]
    fn an_unneeded_password_is_reported_for_removal() {
        let reply = "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?";
        let text = login_error(&ServerLogin::node(&settings()), reply).unwrap();
        assert!(text.contains("remove `password`"), "{text}");
        assert!(text.ends_with("Redis returned: AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"), "{text}");
        // Sentinels often have no password; they get the master's by default.
        assert_eq!(
            login_error(&ServerLogin::sentinel(&settings()), reply),
            None
        );
        let own = settings().sentinel(settings().credentials());
        assert!(login_error(&ServerLogin::sentinel(&own), reply).is_some());
    }

    #[test]
    fn a_wrong_password_is_reported_with_its_setting() {
        let reply = "WRONGPASS invalid username-password pair or user is disabled.";
        let message = "Redis at a:1 rejected the password of the user 'default': invalid \
                    username-password pair or user is disabled.";
        assert_eq!(
            login_error(&ServerLogin::node(&settings()), reply).as_deref(),
            Some(message)
        );
        let text = login_error(&ServerLogin::sentinel(&settings()), reply).unwrap();
        assert!(text.contains("`sentinel_password`"), "{text}");
    }

    #[test]
    fn a_secret_echoed_by_the_server_is_not_shown() {
        let login = ServerLogin::node(&settings());
        for reply in [
            "ERR unknown command 'AUTH', with args beginning with: 'hunter2' ",
            "ERR what is hunter2?",
            "NOPERM",
        ] {
            let text = login_error(&login, reply).unwrap();
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("rejected the user 'default': "));
        }
    }
}
