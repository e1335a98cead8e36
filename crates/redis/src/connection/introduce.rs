//! Who we are, as a server is told when it has taken the connection, and what it says to that.

use super::dial::Driver;
use super::handshake;
use crate::error::{CallError, ConnectError, ConnectErrorKind};
use crate::settings::{Address, ConnectionSettings, Credentials};
use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Pipeline, ProtocolVersion, RedisConnectionInfo, ServerError, Value,
};
use std::fmt;
use tokio::io::{AsyncRead, AsyncWrite};

/// How many calls may wait to be written. Beyond it callers wait, within their deadlines.
const QUEUE: usize = 1024;

/// How a server says to whoever brings a password that it never asked for one.
const NEEDS_NONE: &str = "called without any password configured";

/// Who we are to a server.
#[derive(Debug)]
pub(super) struct ServerLogin {
    credentials: Credentials,
    database: u32,
    /// The credentials are the master's: nobody said that this server has the same, or any.
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

    /// What a server said, without what it should not have repeated.
    fn said(&self, error: &ServerError) -> String {
        let said = CallError::server(error);
        let detail = said.detail();
        // A server that does not know `AUTH` shows what came with it.
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
        let said = self.said(error);
        if said.contains(NEEDS_NONE) {
            if self.is_guess {
                // Whoever comes is the default user there.
                return None;
            }
            let message = format!(
                "Redis at {address} has no password for the default user, and one was given: \
                 remove `password`, or name the `user` whose it is. It said: {said}"
            );
            return Some(ConnectError::new(ConnectErrorKind::Refused, message));
        }
        let user = self.credentials.user.as_deref().unwrap_or("default");
        if error.code() != "WRONGPASS" {
            let whom = format!("did not take us as the user '{user}'");
            return Some(refused(error, address, &whom, &said));
        }
        let hint = if self.is_guess {
            " (they are those of the master: what the sentinels want goes to `sentinel_user` and \
             `sentinel_password`)"
        } else {
            ""
        };
        let message =
            format!("Redis at {address} refused the password of the user '{user}': {said}{hint}");
        Some(ConnectError::new(ConnectErrorKind::Refused, message))
    }
}

/// Makes `stream` a connection on which we are who we should be. One round trip.
pub(super) async fn introduce<S>(
    stream: S,
    address: &Address,
    login: &ServerLogin,
) -> Result<(MultiplexedConnection, Driver), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    // The crate would tell who we are too, but not what the server says to that.
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
    let (mut connection, driver) = made.map_err(|error| hung_up(address, &error))?;
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
        () = &mut driver => return Err(hung_up(address, &"the connection was closed")),
    };
    let mut replies = replies
        .map_err(|error| hung_up(address, &error))?
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
        let whom = format!("did not let us use database {}", login.database);
        return Err(refused(&error, address, &whom, &login.said(&error)));
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

fn refused(error: &ServerError, address: &Address, whom: &str, said: &str) -> ConnectError {
    if error.code() == "NOAUTH" {
        return handshake::unwilling(address, error);
    }
    let kind = if CallError::server(error).is_transient() {
        ConnectErrorKind::NotReady
    } else {
        ConnectErrorKind::Refused
    };
    ConnectError::new(kind, format!("Redis at {address} {whom}: {said}"))
}

fn hung_up(address: &Address, error: &dyn fmt::Display) -> ConnectError {
    let message = format!(
        "Redis at {address} hung up while we introduced ourselves (does it expect TLS, or not \
         expect it?): {error}"
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

    fn said(login: &ServerLogin, reply: &str) -> Option<String> {
        let value = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes()).unwrap();
        let Value::ServerError(error) = value else {
            panic!("an error: {reply}");
        };
        let error = login.unwelcome(&error, &Address::new("a", 1))?;
        assert_eq!(error.kind(), ConnectErrorKind::Refused);
        Some(error.to_string())
    }

    #[test]
    fn a_password_that_nobody_wants_is_to_be_removed() {
        let reply = "ERR AUTH <password> called without any password configured for the default \
                     user. Are you sure your configuration is correct?";
        let text = said(&ServerLogin::node(&settings()), reply).unwrap();
        assert!(text.contains("remove `password`"), "{text}");
        assert!(text.ends_with("It said: AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?"), "{text}");
        // Sentinels are often without, and get the master's only because nobody said otherwise.
        assert_eq!(said(&ServerLogin::sentinel(&settings()), reply), None);
        let own = settings().sentinel(settings().credentials());
        assert!(said(&ServerLogin::sentinel(&own), reply).is_some());
    }

    #[test]
    fn a_wrong_password_is_told_and_where_the_right_one_goes() {
        let reply = "WRONGPASS invalid username-password pair or user is disabled.";
        let told = "Redis at a:1 refused the password of the user 'default': invalid \
                    username-password pair or user is disabled.";
        assert_eq!(
            said(&ServerLogin::node(&settings()), reply).as_deref(),
            Some(told)
        );
        let text = said(&ServerLogin::sentinel(&settings()), reply).unwrap();
        assert!(text.contains("`sentinel_password`"), "{text}");
    }

    #[test]
    fn a_secret_that_the_server_repeats_is_not_told() {
        let login = ServerLogin::node(&settings());
        for reply in [
            "ERR unknown command 'AUTH', with args beginning with: 'hunter2' ",
            "ERR what is hunter2?",
            "NOPERM",
        ] {
            let text = said(&login, reply).unwrap();
            assert!(!text.contains("hunter2"), "{text}");
            assert!(text.contains("did not take us as the user 'default': "));
        }
    }
}
