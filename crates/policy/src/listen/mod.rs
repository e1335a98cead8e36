//! The listeners of the program, as plain data: addresses, TLS, tokens, and the age of connections.

pub mod address;

use crate::route::Paths;
use crate::text::Secret;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

pub use address::ListenAddress;

/// The listeners. A listener that is `None` is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// The HTTP API. It is also open, on 127.0.0.1:8080, if no other listener is configured.
    pub http: Option<Listener>,
    /// Envoy's rate limit service, and gRPC health.
    pub grpc: Option<Listener>,
    /// The reverse proxy. It is open if and only if the configuration has routes. Default:
    /// 127.0.0.1:8000.
    pub gateway: Option<Listener>,
    /// Health, metrics and administration; always open. Default: 127.0.0.1:8090.
    pub admin: Listener,
    /// True if no address is configured for `admin`. A free port then replaces the default one if that
    /// is taken, so that several instances can run on one machine.
    pub admin_may_move: bool,
    /// The Redis protocol.
    pub resp: Option<Listener>,
    /// The path parsing rules of the gateway.
    pub paths: Paths,
}

/// A listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The address to listen on.
    pub address: ListenAddress,
    /// The TLS settings, if it uses TLS.
    pub tls: Option<Tls>,
    /// The token that callers must send, if any.
    pub token: Option<Secret>,
    /// The maximum number of connections from one client address. Default: the server's choice.
    pub connections_per_address: Option<usize>,
    /// The maximum age of a connection, if it has one.
    pub age: Option<ConnectionAge>,
}

/// The maximum age of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionAge {
    /// The age at which the server asks the client to close the connection and accepts no new requests.
    pub max: Duration,
    /// The time that requests in flight then have. After it, the server closes the connection.
    pub grace: Duration,
}

impl ConnectionAge {
    /// The default age of gRPC connections, as in envoyproxy/ratelimit.
    pub const GRPC: Self = Self {
        max: Duration::from_secs(86_400),
        grace: Self::GRACE,
    };

    /// The default time that requests in flight have.
    pub const GRACE: Duration = Duration::from_secs(3_600);
}

/// The TLS settings of a listener: paths of PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tls {
    /// The certificate chain.
    pub cert: String,
    /// Its private key.
    pub key: String,
    /// The certificate authorities. Callers must present a certificate that one of these signed.
    pub client_ca: Option<String>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            http: Some(Listener::local(8080)),
            grpc: None,
            gateway: None,
            admin: Listener::local(8090),
            admin_may_move: true,
            resp: None,
            paths: Paths::default(),
        }
    }
}

impl Listener {
    /// Returns a listener on the loopback address.
    pub fn local(port: u16) -> Self {
        Self {
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port).into(),
            tls: None,
            token: None,
            connections_per_address: None,
            age: None,
        }
    }
}
