//! A port that belongs to one test, whether or not anybody listens there.

use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// An address at which nobody listens, unless told to. For as long as this lives the system gives its
/// port to nobody else: other tests run at the same time, and one of them might answer.
pub(crate) struct Place {
    pub(crate) address: SocketAddr,
    _bound: TcpSocket,
}

impl Place {
    pub(crate) fn reserve() -> Self {
        let bound = bind("127.0.0.1:0".parse().unwrap());
        Self {
            address: bound.local_addr().unwrap(),
            _bound: bound,
        }
    }

    /// Listens there, until what this returns is dropped.
    pub(crate) fn listen(&self) -> TcpListener {
        bind(self.address).listen(1024).unwrap()
    }
}

/// Several may bind one port as long as at most one of them listens.
fn bind(address: SocketAddr) -> TcpSocket {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket
}
