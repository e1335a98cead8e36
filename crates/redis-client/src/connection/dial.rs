//! From an address to a connection: TCP, TLS, credentials.

use super::introduce::{ServerLogin, introduce};
use super::tls;
use crate::address::Address;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::{ConnectionSettings, TlsSettings};
use redis::aio::MultiplexedConnection;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

/// Moves bytes for as long as it is polled; ends when the connection does.
pub(super) type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Bytes both ways, whether or not over TLS.
pub(super) type RedisStream = Box<dyn ByteChannel>;

/// The traits that a [`RedisStream`] needs.
pub(super) trait ByteChannel: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> ByteChannel for S {}

/// Begins a TCP connect again that takes longer: after a lost packet the system itself waits a second,
/// then two, then four, and the network may be back long before.
pub(super) const TCP_CONNECT: Duration = Duration::from_millis(500);

/// Makes connections.
pub(crate) struct Dialer {
    tls: Option<TlsDialer>,
}

/// TLS for every connection, and the name of all servers if it is configured.
struct TlsDialer {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl Dialer {
    /// Prepares TLS, if the settings have it.
    ///
    /// # Errors
    ///
    /// A certificate or a key cannot be read.
    pub(super) fn new(settings: &ConnectionSettings) -> Result<Self, ConnectError> {
        let tls = settings.tls.as_ref().map(TlsDialer::new).transpose()?;
        Ok(Self { tls })
    }

    /// Connects and authenticates. Without a limit of time.
    pub(super) async fn dial(
        &self,
        address: &Address,
        login: &ServerLogin,
    ) -> Result<(MultiplexedConnection, Driver), ConnectError> {
        let stream = reach(address).await?;
        match &self.tls {
            None => introduce(stream, address, login).await,
            Some(tls) => introduce(tls.secure(address, stream).await?, address, login).await,
        }
    }

    /// Opens a byte stream to the server, for callers that speak the protocol themselves. Has no time
    /// limit.
    pub(super) async fn stream(&self, address: &Address) -> Result<RedisStream, ConnectError> {
        let stream = reach(address).await?;
        Ok(match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.secure(address, stream).await?),
        })
    }
}

/// Connects by TCP, to the first address that answers. Without a limit of time.
async fn reach(address: &Address) -> Result<TcpStream, ConnectError> {
    let failed = |error: &dyn fmt::Display| {
        let message = format!("cannot reach Redis at {address}: {error}");
        ConnectError::new(ConnectErrorKind::Unreachable, message)
    };
    let found = lookup_host((address.host.as_str(), address.port)).await;
    let targets: Vec<_> = found.map_err(|error| failed(&error))?.collect();
    loop {
        let mut failure = targets.is_empty().then(|| failed(&"it has no address"));
        for target in &targets {
            match timeout(TCP_CONNECT, TcpStream::connect(target)).await {
                Ok(Ok(stream)) => {
                    // Without it small calls wait for the acknowledgement of earlier ones. Nothing
                    // breaks.
                    drop(stream.set_nodelay(true));
                    return Ok(stream);
                }
                Ok(Err(error)) => failure = Some(failed(&error)),
                Err(_) => {}
            }
        }
        if let Some(failure) = failure {
            return Err(failure);
        }
    }
}

impl TlsDialer {
    fn new(settings: &TlsSettings) -> Result<Self, ConnectError> {
        let name = settings.server_name.clone().map(ServerName::try_from);
        let name = name.transpose().map_err(|error| {
            let message = format!("the server name of TLS is invalid: {error}");
            ConnectError::new(ConnectErrorKind::Settings, message)
        })?;
        Ok(Self {
            config: tls::client_config(settings)?,
            server_name: name,
        })
    }

    /// Performs the TLS handshake.
    async fn secure(
        &self,
        address: &Address,
        stream: TcpStream,
    ) -> Result<TlsStream<TcpStream>, ConnectError> {
        let failed = |error: &dyn fmt::Display| {
            let message = format!("TLS to Redis at {address} failed: {error}");
            ConnectError::new(ConnectErrorKind::Tls, message)
        };
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?,
        };
        let connector = TlsConnector::from(Arc::clone(&self.config));
        let stream = connector.connect(name, stream).await;
        stream.map_err(|error| failed(&error))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("tls", &self.tls.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use tokio::net::TcpSocket;

    /// A server that is stopped, with a full queue: the kernel drops new packets.
    #[tokio::test]
    async fn a_lost_packet_was_awaited_until_the_system_timeout() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
        let listener = socket.listen(1).unwrap();
        let address = listener.local_addr().unwrap();
        let a_moment = Duration::from_millis(50);
        let mut queued = Vec::new();
        while let Ok(connected) = timeout(a_moment, TcpStream::connect(address)).await {
            queued.push(connected.unwrap());
        }
        let redis = Address::new("127.0.0.1", address.port());
        let mut ours = pin!(reach(&redis));
        let mut systems = pin!(TcpStream::connect(address));
        let both = async { tokio::join!(&mut ours, &mut systems) };
        assert!(timeout(a_moment, both).await.is_err(), "both are dropped");
        // The server continues.
        let accept = async {
            loop {
                queued.push(listener.accept().await.unwrap().0);
            }
        };
        tokio::select! {
            biased;
            connected = ours => drop(connected.unwrap()),
            _ = systems => panic!("the kernel's retry came first"),
            () = accept => {}
        }
    }
}
