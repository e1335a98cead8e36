//! From an address to a connection: TCP, TLS, credentials.

use super::introduce::{Login, introduce};
use super::tls;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::{Address, Settings};
use redis::aio::MultiplexedConnection;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

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
        login: &Login,
    ) -> Result<(MultiplexedConnection, Driver), ConnectError> {
        let target = (address.host.as_str(), address.port);
        let stream = TcpStream::connect(target).await.map_err(|error| {
            let message = format!("cannot reach Redis at {address}: {error}");
            ConnectError::new(ConnectErrorKind::Unreachable, message)
        })?;
        // Without it small calls wait for the acknowledgement of earlier ones. Nothing breaks.
        drop(stream.set_nodelay(true));
        let Some(tls) = &self.tls else {
            return introduce(stream, address, login).await;
        };
        let failed = |error: &dyn fmt::Display| {
            let message = format!("no TLS with Redis at {address}: {error}");
            ConnectError::new(ConnectErrorKind::Tls, message)
        };
        let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?;
        let connector = TlsConnector::from(Arc::clone(tls));
        let stream = connector.connect(name, stream).await;
        let stream = stream.map_err(|error| failed(&error))?;
        introduce(stream, address, login).await
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("tls", &self.tls.is_some())
            .finish()
    }
}
