//! The address at the other end of the connection.

use crate::RequestHead;
use std::net::{IpAddr, SocketAddr};

/// The address at the other end of the connection, as a request extension.
///
/// A server that accepts connections inserts it into each request, or sets it once per connection with
/// [`RateLimit::peer`](crate::RateLimit::peer).
///
/// ```
/// use tidegate_tower::PeerAddr;
///
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddr("192.0.2.1:4711".parse()?));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddr(pub SocketAddr);

impl From<SocketAddr> for PeerAddr {
    fn from(address: SocketAddr) -> Self {
        Self(address)
    }
}

/// Returns the peer address that the server has noted on the request.
pub(crate) fn noted(head: RequestHead<'_>) -> Option<IpAddr> {
    let noted = head.extension::<PeerAddr>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let noted = noted.or_else(|| by_axum(head));
    #[cfg(feature = "tonic")]
    let noted = noted.or_else(|| by_tonic(head));
    noted.map(|address| address.ip())
}

#[cfg(feature = "axum")]
fn by_axum(head: RequestHead<'_>) -> Option<SocketAddr> {
    use axum::extract::ConnectInfo;

    let info = head.extension::<ConnectInfo<SocketAddr>>()?;
    Some(info.0)
}

// Over TLS, tonic notes it in a type that exists only with one of its cryptographic libraries. The application
// chooses that library, so it has to set a function for the peer.
#[cfg(feature = "tonic")]
fn by_tonic(head: RequestHead<'_>) -> Option<SocketAddr> {
    use tonic::transport::server::TcpConnectInfo;

    head.extension::<TcpConnectInfo>()?.remote_addr()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;
    use std::any::Any;

    fn noted_on<T: Any + Clone + Send + Sync>(note: T) -> Option<String> {
        let mut request = Request::new(());
        request.extensions_mut().insert(note);
        noted(RequestHead::of(&request)).map(|ip| ip.to_string())
    }

    #[test]
    fn peer_extensions_of_every_server_are_recognized() {
        let address: SocketAddr = "192.0.2.1:4711".parse().unwrap();
        assert_eq!(noted_on(PeerAddr(address)).as_deref(), Some("192.0.2.1"));
        #[cfg(feature = "axum")]
        {
            let info = axum::extract::ConnectInfo(address);
            assert_eq!(noted_on(info).as_deref(), Some("192.0.2.1"));
        }
        #[cfg(feature = "tonic")]
        {
            let info = tonic::transport::server::TcpConnectInfo {
                local_addr: None,
                remote_addr: Some(address),
            };
            assert_eq!(noted_on(info).as_deref(), Some("192.0.2.1"));
        }
        // A bare address in the extensions has another meaning.
        assert_eq!(noted_on(address), None);
    }
}
