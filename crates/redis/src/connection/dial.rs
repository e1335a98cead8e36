//! From an address to a connection: TCP, TLS, credentials.

use super::tls;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::{Address, Credentials, Settings};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ErrorKind, ProtocolVersion, RedisConnectionInfo, RedisError};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// How many calls may wait to be written. Beyond it callers wait, within their deadlines.
const QUEUE: usize = 1024;

/// Moves bytes for as long as it is polled; ends when the connection does.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Makes connections.
pub(crate) struct Dialer {
    tls: Option<Arc<ClientConfig>>,
}

impl Dialer {
    pub(super) fn new(settings: &Settings) -> Result<Self, ConnectError> {
        let tls = settings.tls.as_ref().map(tls::client_config).transpose()?;
        Ok(Self { tls })
    }

    /// Connects and authenticates. Without a limit of time.
    pub(super) async fn dial(
        &self,
        address: &Address,
        credentials: &Credentials,
        database: u32,
    ) -> Result<(MultiplexedConnection, Driver), ConnectError> {
        let target = (address.host.as_str(), address.port);
        let stream = TcpStream::connect(target).await.map_err(|error| {
            let message = format!("cannot reach Redis at {address}: {error}");
            ConnectError::new(ConnectErrorKind::Unreachable, message)
        })?;
        // Without it small calls wait for the acknowledgement of earlier ones. Nothing breaks.
        drop(stream.set_nodelay(true));
        let Some(tls) = &self.tls else {
            return introduce(stream, address, credentials, database).await;
        };
        let failed = |error: &dyn fmt::Display| {
            let message = format!("no TLS with Redis at {address}: {error}");
            ConnectError::new(ConnectErrorKind::Tls, message)
        };
        let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?;
        let connector = TlsConnector::from(Arc::clone(tls));
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| failed(&error))?;
        introduce(stream, address, credentials, database).await
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

/// `AUTH`, `SELECT`.
async fn introduce<S>(
    stream: S,
    address: &Address,
    credentials: &Credentials,
    database: u32,
) -> Result<(MultiplexedConnection, Driver), ConnectError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut info = RedisConnectionInfo::default()
        .set_db(i64::from(database))
        // Nothing here needs RESP3, and RESP2 saves a round trip at connecting.
        .set_protocol(ProtocolVersion::RESP2)
        .set_lib_name("tidegate", env!("CARGO_PKG_VERSION"));
    if let Some(user) = &credentials.user {
        // A user without a password is still announced, or we would stay the default one.
        info = info.set_username(user).set_password("");
    }
    if let Some(password) = &credentials.password {
        info = info.set_password(password.secret());
    }
    // Deadlines are ours: the crate's would count a slow node as a lost one.
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(None)
        .set_connection_timeout(None)
        .set_pipeline_buffer_size(QUEUE);
    let made = MultiplexedConnection::new_with_config(&info, stream, config).await;
    let (connection, driver) = made.map_err(|error| explain(&error, address, credentials))?;
    Ok((connection, Box::pin(driver)))
}

/// What went wrong while we introduced ourselves, for people.
fn explain(error: &RedisError, address: &Address, credentials: &Credentials) -> ConnectError {
    if error.kind() == ErrorKind::Io || error.kind() == ErrorKind::Parse {
        let message = format!(
            "Redis at {address} hung up while we introduced ourselves (does it expect TLS, or not \
             expect it?): {error}"
        );
        return ConnectError::new(ConnectErrorKind::Unreachable, message);
    }
    let said = error.detail().unwrap_or("no reason given");
    if error.kind() == ErrorKind::AuthenticationFailed || matches!(error.code(), Some("WRONGPASS"))
    {
        let user = credentials.user.as_deref().unwrap_or("default");
        let message =
            format!("Redis at {address} refused the password of the user '{user}': {said}");
        return ConnectError::new(ConnectErrorKind::Refused, message);
    }
    let message = format!("Redis at {address} did not take us: {said}");
    ConnectError::new(ConnectErrorKind::Refused, message)
}
