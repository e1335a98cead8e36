//! Opening the doors: sockets bound, certificates read, nothing accepted yet.

use super::tls;
use super::token::Token;
use crate::doors::Protocols;
use crate::failure::Failure;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use tidegate_policy::config::{Listen, Listener};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The doors of this server, bound. Connections wait in the kernel until [`run`](super::run).
#[derive(Debug)]
pub struct Listeners {
    /// The HTTP API, if it is open.
    pub http: Option<BoundDoor>,
    /// Envoy's rate limit service, if it is open.
    pub grpc: Option<BoundDoor>,
    /// The protocol of Redis, if it is open.
    pub resp: Option<BoundDoor>,
    /// The reverse proxy, if it is open.
    pub gateway: Option<BoundDoor>,
    /// Health and metrics.
    pub admin: BoundDoor,
}

/// One door: a socket, and what it takes to come in.
pub struct BoundDoor {
    pub(super) socket: TcpListener,
    /// Where it listens: with the port that the system chose, where 0 was asked for.
    pub address: SocketAddr,
    pub(super) tls: Option<TlsAcceptor>,
    pub(super) token: Option<Token>,
}

/// Binds all doors, or says which one could not be opened, and what to do about it.
pub async fn bind(listen: &Listen) -> Result<Listeners, Failure> {
    let (one, both, two) = (
        Protocols::Http1.alpn(),
        Protocols::Http1AndHttp2.alpn(),
        Protocols::Http2.alpn(),
    );
    let http = bind_if("http", listen.http.as_ref(), one).await?;
    let grpc = bind_if("grpc", listen.grpc.as_ref(), two).await?;
    let resp = bind_if("resp", listen.resp.as_ref(), &[]).await?;
    let gateway = bind_if("gateway", listen.gateway.as_ref(), both).await?;
    let admin = bind_door("admin", &listen.admin, Protocols::Http1.alpn()).await?;
    Ok(Listeners {
        http,
        grpc,
        resp,
        gateway,
        admin,
    })
}

/// Binds a door if it is to be open.
async fn bind_if(
    name: &str,
    listener: Option<&Listener>,
    alpn: &[&[u8]],
) -> Result<Option<BoundDoor>, Failure> {
    match listener {
        Some(listener) => bind_door(name, listener, alpn).await.map(Some),
        None => Ok(None),
    }
}

async fn bind_door(name: &str, listener: &Listener, alpn: &[&[u8]]) -> Result<BoundDoor, Failure> {
    // Files first: a certificate that cannot be read is a mistake in the configuration, whether or
    // not the address is free.
    let tls = listener.tls.as_ref();
    let tls = tls.map(|tls| tls::acceptor(tls, alpn)).transpose();
    let tls = tls.map_err(|why| Failure::input(format!("listen.{name}.tls: {why}")))?;
    let asked = listener.address;
    let socket = TcpListener::bind(asked).await;
    let socket = socket.map_err(|error| Failure::runtime(cannot_bind(name, asked, &error)))?;
    Ok(BoundDoor {
        address: socket.local_addr().unwrap_or(asked),
        socket,
        tls,
        token: listener.token.clone().map(Token::new),
    })
}

fn cannot_bind(name: &str, address: SocketAddr, error: &io::Error) -> String {
    let variable = format!("TIDEGATE_LISTEN_{}", name.to_ascii_uppercase());
    let help = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "another program listens there; stop it, or choose another port: \
             --{name} ADDRESS, {variable}, or listen.{name} in the configuration"
        ),
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege; choose a higher one".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; 127.0.0.1 is this machine alone, \
             0.0.0.0 every address that it has"
                .to_owned()
        }
        _ => format!("see listen.{name} in the configuration"),
    };
    format!("the {name} door cannot listen on {address}: {error}\n   help: {help}")
}

impl BoundDoor {
    /// Whether it speaks TLS.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Whether callers need a token.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }
}

impl fmt::Debug for BoundDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundDoor")
            .field("address", &self.address)
            .field("tls", &self.has_tls())
            .field("token", &self.has_token())
            .finish_non_exhaustive()
    }
}
