//! Binding the listeners: sockets bound, certificates read, nothing accepted yet.

use super::socket::{self, Socket};
use super::tls::DoorTls;
use super::token::DoorToken;
use crate::doors::Protocols;
use crate::failure::Failure;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_policy::config::{ConnectionAge, Listen, ListenAddress, Listener};
use tracing::warn;

/// The number of connections that the kernel holds for a listener until they are accepted. The system's own
/// bound (`net.core.somaxconn` on Linux, 4,096 by default) applies as well.
const BACKLOG: u32 = 4_096;

/// The bound listeners of this server. Connections wait in the kernel until [`run`](super::run).
#[derive(Debug)]
pub struct Listeners {
    /// The HTTP API, if it is open.
    pub http: Option<BoundDoor>,
    /// Envoy's rate limit service, if it is open.
    pub grpc: Option<BoundDoor>,
    /// The Redis protocol, if it is open.
    pub resp: Option<BoundDoor>,
    /// The reverse proxy, if it is open.
    pub gateway: Option<BoundDoor>,
    /// Health and metrics.
    pub admin: BoundDoor,
}

/// One listener: a socket and its access settings.
pub struct BoundDoor {
    pub(super) socket: Socket,
    /// The listen address, with the port that the system chose if port 0 was configured.
    pub address: ListenAddress,
    pub(super) tls: Option<Arc<DoorTls>>,
    pub(super) token: Option<DoorToken>,
    /// The maximum number of connections of one address, if configured.
    pub(super) of_address: Option<usize>,
    /// The maximum age of a connection, if it has one.
    pub(super) age: Option<ConnectionAge>,
}

impl Listeners {
    /// Returns the listeners that are open, by name.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&'static str, &BoundDoor)> {
        let all = [
            ("http", self.http.as_ref()),
            ("grpc", self.grpc.as_ref()),
            ("resp", self.resp.as_ref()),
            ("gateway", self.gateway.as_ref()),
            ("admin", Some(&self.admin)),
        ];
        all.into_iter()
            .filter_map(|(name, bound)| Some((name, bound?)))
    }
}

/// Binds all listeners. Returns an error that names the listener that failed, and the remedy.
pub async fn bind(listen: &Listen) -> Result<Listeners, Failure> {
    let (one, both, two) = (
        Protocols::Http1.alpn(),
        Protocols::Http1AndHttp2.alpn(),
        Protocols::Http2.alpn(),
    );
    let open =
        async |name, listener: &Option<Listener>, alpn: &'static [&'static [u8]]| match listener {
            Some(listener) => bind_door(name, listener, alpn, false).await.map(Some),
            None => Ok(None),
        };
    Ok(Listeners {
        http: open("http", &listen.http, one).await?,
        grpc: open("grpc", &listen.grpc, two).await?,
        resp: open("resp", &listen.resp, &[]).await?,
        gateway: open("gateway", &listen.gateway, both).await?,
        admin: bind_door("admin", &listen.admin, one, listen.admin_may_move).await?,
    })
}

/// Binds a listener. If `may_move`, a free port replaces one that is taken.
async fn bind_door(
    name: &'static str,
    listener: &Listener,
    alpn: &'static [&'static [u8]],
    may_move: bool,
) -> Result<BoundDoor, Failure> {
    // Read files first: an unreadable certificate is a mistake in the configuration, even if the address is
    // taken.
    let tls = listener.tls.as_ref();
    let tls = tls.map(|tls| DoorTls::read(tls, alpn)).transpose();
    let tls = tls.map_err(|why| Failure::input(format!("listen.{name}.tls: {why}")))?;
    let asked = &listener.address;
    let mut bound = socket::listen_on(asked, BACKLOG).await;
    if let (true, Some(tcp)) = (may_move, asked.tcp())
        && bound.as_ref().is_err_and(is_taken)
    {
        let free = SocketAddr::new(tcp.ip(), 0).into();
        bound = socket::listen_on(&free, BACKLOG).await;
        if let Ok((_, address)) = &bound {
            warn!(
                door = name,
                taken = %asked,
                %address,
                "the default address is taken; listening on a free port"
            );
        }
    }
    let (socket, address) =
        bound.map_err(|error| Failure::runtime(cannot_bind(name, asked, &error)))?;
    Ok(BoundDoor {
        address,
        socket,
        tls: tls.map(Arc::new),
        token: listener.token.clone().map(DoorToken::new),
        of_address: listener.connections_per_address,
        age: listener.age,
    })
}

fn is_taken(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrInUse
}

fn cannot_bind(name: &str, address: &ListenAddress, error: &io::Error) -> String {
    let variable = format!("TIDEGATE_LISTEN_{}", name.to_ascii_uppercase());
    let is_socket = address.tcp().is_none();
    let help = match error.kind() {
        io::ErrorKind::AddrInUse if is_socket => format!(
            "stop the program that listens there, or choose another path: --{name} unix:PATH, \
             {variable}, or listen.{name} in the configuration"
        ),
        io::ErrorKind::NotFound if is_socket => "create the folder of the socket".to_owned(),
        io::ErrorKind::PermissionDenied if is_socket => {
            "let this user write to the folder of the socket, or choose another path".to_owned()
        }
        io::ErrorKind::AlreadyExists => {
            "this file is not a socket and is left as it is; remove it, or choose another path"
                .to_owned()
        }
        io::ErrorKind::AddrInUse => format!(
            "another program listens there; stop it, or choose another port: \
             --{name} ADDRESS, {variable}, or listen.{name} in the configuration"
        ),
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege; choose a higher one".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; localhost:PORT is this machine alone, \
             :PORT every address that it has"
                .to_owned()
        }
        _ => format!("see listen.{name} in the configuration"),
    };
    format!("the {name} door cannot listen on {address}: {error}\n   help: {help}")
}

impl BoundDoor {
    /// Returns its address and port, if it is not a unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.address.tcp()
    }

    /// Returns true if it speaks TLS.
    pub fn has_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Returns the expiry of its certificate, in RFC 3339.
    pub fn expiry(&self) -> Option<String> {
        self.tls.as_ref()?.expiry()
    }

    /// Returns true if callers need a token.
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
