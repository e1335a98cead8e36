//! TCP and unix sockets as one type: for listeners and for connections.

use rustix::net::sockopt::set_ipv6_v6only;
use std::fs::{self, Permissions};
use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::pin::Pin;
use std::task::{Context, Poll};
use tidegate_policy::listen::ListenAddress;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UnixListener, UnixSocket, UnixStream};
use tracing::info;

/// The address of clients on a unix socket: they are on this machine.
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A socket to listen on.
#[derive(Debug)]
pub(crate) enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener, SocketFile),
}

/// The connections that the kernel holds for a socket that no longer listens.
#[derive(Debug)]
pub(super) enum AcceptQueue {
    Tcp(std::net::TcpListener),
    Unix {
        socket: std::os::unix::net::UnixListener,
        /// Removed together with the socket.
        _file: SocketFile,
    },
}

/// The file of a unix socket, which is removed on drop if it is still the same.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: String,
    /// Device and inode.
    identity: (u64, u64),
}

/// One connection.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// Listens on `address`, and returns it with the port that the system chose, if it is 0.
pub(super) async fn listen_on(
    address: &ListenAddress,
    backlog: u32,
) -> io::Result<(Socket, ListenAddress)> {
    match address {
        ListenAddress::Tcp(tcp) => {
            let socket = listen_on_tcp(*tcp, backlog)?;
            let bound = socket.local_addr()?.into();
            Ok((Socket::Tcp(socket), bound))
        }
        ListenAddress::Unix { path, mode } => {
            remove_stale(path).await?;
            let socket = UnixSocket::new_stream()?;
            socket.bind(path)?;
            let file = SocketFile::of(path)?;
            // Set before any client can connect, regardless of the umask.
            fs::set_permissions(path, Permissions::from_mode(*mode))?;
            let socket = socket.listen(backlog)?;
            Ok((Socket::Unix(socket, file), address.clone()))
        }
    }
}

/// Listens on `address`. `[::]` is `0.0.0.0` on a machine without IPv6.
fn listen_on_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let is_refused = |error: &io::Error| {
        matches!(
            error.kind(),
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied
        )
    };
    match open(address, backlog) {
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && !is_refused(&error) => {
            let every = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            open(every, backlog).map_err(|_| error)
        }
        opened => opened,
    }
}

fn open(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    prepare(&socket, address)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Sets the options of a socket that is going to listen on `address`.
fn prepare(socket: &TcpSocket, address: SocketAddr) -> io::Result<()> {
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // Include IPv4, regardless of `net.ipv6.bindv6only` on this machine.
        set_ipv6_v6only(socket, false)?;
    }
    // A restart must not wait for the `TIME_WAIT` of connections of the previous process.
    socket.set_reuseaddr(true)
}

/// Removes the socket of a program that has ended. Returns an error if a program listens there, or if the
/// file is not a socket.
async fn remove_stale(path: &str) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if !found.file_type().is_socket() {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    match UnixStream::connect(path).await {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            info!(event = "stale_socket_removed", path, "stale socket removed");
            fs::remove_file(path)
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Err(error),
        // Connected, or the queue of the other program is full.
        Ok(_) | Err(_) => Err(io::ErrorKind::AddrInUse.into()),
    }
}

impl Socket {
    /// Accepts a connection, and returns it with the address of the client.
    pub(super) async fn accept(&self) -> io::Result<(Stream, IpAddr)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept().await?;
                Ok((Stream::Tcp(stream), peer.ip()))
            }
            Self::Unix(socket, _) => {
                let (stream, _) = socket.accept().await?;
                Ok((Stream::Unix(stream), LOCAL))
            }
        }
    }

    /// Stops waiting for connections. The rest are accepted directly from the system: tokio only knows its
    /// state of some time ago.
    pub(super) fn into_queue(self) -> io::Result<AcceptQueue> {
        Ok(match self {
            Self::Tcp(socket) => AcceptQueue::Tcp(socket.into_std()?),
            Self::Unix(socket, file) => AcceptQueue::Unix {
                socket: socket.into_std()?,
                _file: file,
            },
        })
    }
}

impl AcceptQueue {
    /// Returns an established connection, or an error if there is none.
    pub(super) fn next(&self) -> io::Result<(Stream, IpAddr)> {
        match self {
            Self::Tcp(socket) => {
                let (stream, peer) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Stream::Tcp(TcpStream::from_std(stream)?), peer.ip()))
            }
            Self::Unix { socket, .. } => {
                let (stream, _) = socket.accept()?;
                stream.set_nonblocking(true)?;
                Ok((Stream::Unix(UnixStream::from_std(stream)?), LOCAL))
            }
        }
    }
}

impl SocketFile {
    fn of(path: &str) -> io::Result<Self> {
        let path = path.to_owned();
        let identity = identity(&path)?;
        Ok(Self { path, identity })
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // A program that was started meanwhile may have its own there.
        if identity(&self.path).is_ok_and(|identity| identity == self.identity) {
            fs::remove_file(&self.path).ok();
        }
    }
}

fn identity(path: &str) -> io::Result<(u64, u64)> {
    let found = fs::symlink_metadata(path)?;
    Ok((found.dev(), found.ino()))
}

impl Stream {
    /// Sets the options that all connections have.
    pub(super) fn prepare(&self) -> io::Result<()> {
        match self {
            // Responses are small and complete; waiting for more to send would only delay them.
            Self::Tcp(stream) => stream.set_nodelay(true),
            Self::Unix(_) => Ok(()),
        }
    }
}

impl AsyncRead for Stream {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Unix(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    #[inline]
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Unix(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_write_vectored(context, slices),
            Self::Unix(stream) => Pin::new(stream).poll_write_vectored(context, slices),
        }
    }

    #[inline]
    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Tcp(stream) => stream.is_write_vectored(),
            Self::Unix(stream) => stream.is_write_vectored(),
        }
    }

    #[inline]
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_flush(context),
            Self::Unix(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Unix(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::ipv6_v6only;

    #[test]
    fn wildcard_addresses_followed_the_systems_ipv6_only_setting() {
        // The same effect as `net.ipv6.bindv6only`.
        let socket = |address: &str| {
            let socket = TcpSocket::new_v6().ok()?;
            set_ipv6_v6only(&socket, true).unwrap();
            prepare(&socket, address.parse().unwrap()).unwrap();
            Some(ipv6_v6only(&socket).unwrap())
        };
        let Some(every) = socket("[::]:0") else {
            eprintln!("skipped: this machine has no IPv6");
            return;
        };
        assert!(!every);
        // Other addresses are not changed.
        assert_eq!(socket("[::1]:0"), Some(true));
    }

    #[tokio::test]
    async fn a_client_of_ipv4_reaches_a_listener_on_every_address() {
        let every = ":0".parse().unwrap();
        let (socket, bound) = listen_on(&every, 1).await.unwrap();
        let ListenAddress::Tcp(bound) = bound else {
            panic!("{bound:?}");
        };
        let client = TcpStream::connect((Ipv4Addr::LOCALHOST, bound.port()));
        let (client, accepted) = tokio::join!(client, socket.accept());
        client.unwrap();
        let (_, peer) = accepted.unwrap();
        assert_eq!(peer.to_canonical(), LOCAL);
    }
}
