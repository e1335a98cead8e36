//! Connecting to an upstream.

use super::connection_kind::ConnectionKind;
use super::error::UpstreamError;
use super::stream::UpstreamStream;
use super::tls;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tidegate_policy::route::{Http2Use, Upstream, UpstreamScheme};
use tidegate_policy::tls::ClientTls;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// The settings for connecting to one upstream.
pub(crate) struct DialSettings {
    host: String,
    port: u16,
    /// The address if the host is one: then no lookup is needed.
    address: Option<IpAddr>,
    security: Security,
    time_max: Duration,
}

enum Security {
    None,
    /// HTTP/2 without TLS and without negotiation.
    PriorKnowledge,
    Tls {
        connector: TlsConnector,
        /// The same, but for HTTP/1 only.
        connector_http1: TlsConnector,
        name: ServerName<'static>,
        /// True if anything but HTTP/2 is an error.
        only_http2: bool,
    },
}

/// A connection and its protocol.
pub(crate) struct DialledConnection {
    pub(crate) stream: UpstreamStream,
    pub(crate) is_http2: bool,
}

impl DialSettings {
    /// Creates the settings for `upstream`, with `time_max` to connect. Returns an error message if its TLS
    /// settings are invalid.
    pub(crate) fn new(
        upstream: &Upstream,
        tls: &ClientTls,
        time_max: Duration,
    ) -> Result<Self, String> {
        let security = match upstream.scheme {
            UpstreamScheme::Http => Security::None,
            UpstreamScheme::H2c => Security::PriorKnowledge,
            UpstreamScheme::Https => {
                let name = tls.server_name.as_ref().unwrap_or(&upstream.host);
                Security::Tls {
                    connector: tls::connector(tls, upstream.http2)?,
                    connector_http1: tls::connector(tls, Http2Use::Never)?,
                    name: ServerName::try_from(name.clone())
                        .map_err(|_| format!("`{name}` is not a valid server name"))?,
                    only_http2: upstream.http2 == Http2Use::Always,
                }
            }
        };
        Ok(Self {
            host: upstream.host.clone(),
            port: upstream.port,
            address: upstream.host.parse().ok(),
            security,
            time_max,
        })
    }

    /// Replaces the time limit.
    pub(crate) fn within(mut self, time_max: Duration) -> Self {
        self.time_max = time_max;
        self
    }

    /// Connects within the time limit.
    pub(crate) async fn dial(
        &self,
        manner: ConnectionKind,
    ) -> Result<DialledConnection, UpstreamError> {
        match timeout(self.time_max, self.connect(manner)).await {
            Ok(connected) => connected.map_err(UpstreamError::Unreachable),
            Err(_) => Err(UpstreamError::ConnectTimeout),
        }
    }

    fn can_speak_http1(&self) -> bool {
        match self.security {
            Security::None => true,
            Security::PriorKnowledge => false,
            Security::Tls { only_http2, .. } => !only_http2,
        }
    }

    async fn connect(&self, manner: ConnectionKind) -> io::Result<DialledConnection> {
        let needs_http1 = manner == ConnectionKind::Upgrade;
        if needs_http1 && !self.can_speak_http1() {
            let why = "no connection to it can be upgraded";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let stream = match self.address {
            Some(address) => TcpStream::connect(SocketAddr::new(address, self.port)).await?,
            // Tries every address of the name, in the system's order.
            None => TcpStream::connect((self.host.as_str(), self.port)).await?,
        };
        // Each write is complete; waiting for more would only delay it.
        stream.set_nodelay(true)?;
        let (connector, name, only_http2) = match &self.security {
            Security::None | Security::PriorKnowledge => {
                return Ok(DialledConnection {
                    stream: stream.into(),
                    is_http2: matches!(self.security, Security::PriorKnowledge),
                });
            }
            Security::Tls {
                connector_http1,
                name,
                ..
            } if needs_http1 => (connector_http1, name, false),
            Security::Tls {
                connector,
                name,
                only_http2,
                ..
            } => (connector, name, *only_http2),
        };
        let stream = connector.connect(name.clone(), stream).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        if only_http2 && !is_http2 {
            let why = "it does not support HTTP/2";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(DialledConnection {
            stream: stream.into(),
            is_http2,
        })
    }
}

impl fmt::Debug for DialSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dial({}:{})", self.host, self.port)
    }
}
