//! From an address to a connection: TCP, TLS, credentials.

use super::introduce::{ServerLogin, introduce};
use super::tls;
use crate::error::{ConnectError, ConnectErrorKind};
use crate::settings::{Address, ConnectionSettings};
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

/// What [`RedisStream`] is of.
pub(super) trait ByteChannel: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> ByteChannel for S {}

/// Begins a TCP connect again that takes longer: after a lost packet the system itself waits a second,
/// then two, then four, and the network may be back long before.
pub(super) const TCP_CONNECT: Duration = Duration::from_millis(500);

/// Makes connections.
pub(crate) struct Dialer {
    tls: Option<Arc<ClientConfig>>,
}

impl Dialer {
    pub(super) fn new(settings: &ConnectionSettings) -> Result<Self, ConnectError> {
        let tls = settings.tls.as_ref().map(tls::client_config).transpose()?;
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
            Some(tls) => introduce(secure(tls, address, stream).await?, address, login).await,
        }
    }

    /// Connects, for whoever speaks for themselves. Without a limit of time.
    pub(super) async fn stream(&self, address: &Address) -> Result<RedisStream, ConnectError> {
        let stream = reach(address).await?;
        Ok(match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(secure(tls, address, stream).await?),
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

async fn secure(
    tls: &Arc<ClientConfig>,
    address: &Address,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, ConnectError> {
    let failed = |error: &dyn fmt::Display| {
        let message = format!("no TLS with Redis at {address}: {error}");
        ConnectError::new(ConnectErrorKind::Tls, message)
    };
    let name = ServerName::try_from(address.host.clone()).map_err(|error| failed(&error))?;
    let connector = TlsConnector::from(Arc::clone(tls));
    let stream = connector.connect(name, stream).await;
    stream.map_err(|error| failed(&error))
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

    /// A server that is stopped, with a queue that is full: the system drops what comes.
    #[tokio::test]
    async fn a_lost_packet_was_waited_for_as_long_as_the_system_does() {
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
        // The server goes on.
        let accept = async {
            loop {
                queued.push(listener.accept().await.unwrap().0);
            }
        };
        tokio::select! {
            biased;
            connected = ours => drop(connected.unwrap()),
            _ = systems => panic!("the system was first"),
            () = accept => {}
        }
    }
}
