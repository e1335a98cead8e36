//! A port reserved for one test, with or without a listener.

use std::net::SocketAddr;
use tokio::net::{TcpListener, TcpSocket};

/// An address without a listener by default. While this lives, the kernel gives its port to no
/// other test, which runs at the same time and might listen there.
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

    /// Listens there until the listener is dropped.
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
