//! Binding the listeners: sockets bound, certificates read, nothing accepted yet.

use super::frontend::Protocols;
use super::socket::{self, Socket};
use super::tls::ListenerTls;
use super::token::ListenerToken;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_policy::listen::{ConnectionAge, Listen, ListenAddress, Listener};
use tracing::warn;

/// The number of connections that the kernel holds for a listener until they are accepted. The system's own
/// bound (`net.core.somaxconn` on Linux, 4,096 by default) applies as well.
const BACKLOG: u32 = 4_096;

/// The bound listeners of this server. Connections wait in the kernel until they are accepted.
#[derive(Debug)]
pub struct Listeners {
    /// The HTTP API, if it is open.
    pub http: Option<BoundListener>,
    /// Envoy's rate limit service, if it is open.
    pub grpc: Option<BoundListener>,
    /// The Redis protocol, if it is open.
    pub resp: Option<BoundListener>,
    /// The reverse proxy, if it is open.
    pub gateway: Option<BoundListener>,
    /// Health and metrics.
    pub admin: BoundListener,
}

/// One listener: a socket and its access settings.
///
/// A bound socket accepts nothing yet: connections wait in the kernel, up to its backlog, so that no client is
/// rejected while the server starts.
pub struct BoundListener {
    pub(crate) socket: Socket,
    /// The listen address, with the port that the system chose if port 0 was configured.
    pub address: ListenAddress,
    /// The TLS of its connections, if it has any.
    pub tls: Option<Arc<ListenerTls>>,
    /// The token that callers need, if they need one.
    pub token: Option<ListenerToken>,
    /// The maximum number of connections of one address, if configured.
    pub of_address: Option<usize>,
    /// The maximum age of a connection, if it has one.
    pub age: Option<ConnectionAge>,
}

impl Listeners {
    /// Returns the listeners that are open, by name.
    pub fn each(&self) -> impl Iterator<Item = (&'static str, &BoundListener)> {
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

/// The reason why a listener could not be opened, and the remedy.
#[derive(Debug)]
pub enum BindError {
    /// Its settings are invalid.
    Settings(String),
    /// Its address cannot be used.
    Socket(String),
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Settings(what) | Self::Socket(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for BindError {}

/// Binds all listeners. Returns an error that names the listener that failed, and the remedy.
///
/// Files of TLS are read before a socket is bound. If one listener fails, the others are closed again.
///
/// # Errors
///
/// [`BindError::Settings`] if a certificate, a key or a CA cannot be used; [`BindError::Socket`] if an address is
/// taken, not of this machine, or needs rights that the process lacks.
pub async fn bind(listen: &Listen) -> Result<Listeners, BindError> {
    let (one, both, two) = (
        Protocols::Http1.alpn(),
        Protocols::Http1AndHttp2.alpn(),
        Protocols::Http2.alpn(),
    );
    let open =
        async |name, listener: &Option<Listener>, alpn: &'static [&'static [u8]]| match listener {
            Some(listener) => bind_one(name, listener, alpn, false).await.map(Some),
            None => Ok(None),
        };
    Ok(Listeners {
        http: open("http", &listen.http, one).await?,
        grpc: open("grpc", &listen.grpc, two).await?,
        resp: open("resp", &listen.resp, &[]).await?,
        gateway: open("gateway", &listen.gateway, both).await?,
        admin: bind_one("admin", &listen.admin, one, listen.admin_may_move).await?,
    })
}

/// Binds a listener. If `may_move`, a free port replaces one that is taken.
async fn bind_one(
    name: &'static str,
    listener: &Listener,
    alpn: &'static [&'static [u8]],
    may_move: bool,
) -> Result<BoundListener, BindError> {
    // Read files first: an unreadable certificate is a mistake in the configuration, even if the address is
    // taken.
    let tls = listener.tls.as_ref();
    let tls = tls.map(|tls| ListenerTls::read(tls, alpn)).transpose();
    let tls = tls.map_err(|why| BindError::Settings(format!("listen.{name}.tls: {why}")))?;
    let asked = &listener.address;
    let mut bound = socket::listen_on(asked, BACKLOG).await;
    if let (true, Some(tcp)) = (may_move, asked.tcp())
        && bound.as_ref().is_err_and(is_taken)
    {
        let free = SocketAddr::new(tcp.ip(), 0).into();
        bound = socket::listen_on(&free, BACKLOG).await;
        if let Ok((_, address)) = &bound {
            warn!(
                event = "default_address_taken",
                listener = name,
                taken = %asked,
                %address,
                "the default address is taken; listening on a free port"
            );
        }
    }
    let (socket, address) =
        bound.map_err(|error| BindError::Socket(cannot_bind(name, asked, &error)))?;
    Ok(BoundListener {
        address,
        socket,
        tls: tls.map(Arc::new),
        token: listener.token.clone().map(ListenerToken::new),
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
            "another program uses this port; stop it, or set another port: --{name} ADDRESS, \
             {variable}, or listen.{name} in the configuration"
        ),
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege; use a higher one".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address; localhost:PORT is this machine only, :PORT \
             is every address"
                .to_owned()
        }
        _ => format!("see listen.{name} in the configuration"),
    };
    format!("the {name} listener cannot listen on {address}: {error}\n   help: {help}")
}

impl BoundListener {
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

impl fmt::Debug for BoundListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundListener")
            .field("address", &self.address)
            .field("tls", &self.has_tls())
            .field("token", &self.has_token())
            .finish_non_exhaustive()
    }
}
