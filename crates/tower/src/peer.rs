//! Who is at the other end of the connection.

use crate::RequestHead;
use std::net::{IpAddr, SocketAddr};

/// Who is at the other end of the connection, as a request extension.
///
/// Whoever accepts connections notes it on each request, or tells the service itself once for each
/// connection: [`RateLimit::peer`](crate::RateLimit::peer).
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

/// The peer, as far as somebody noted it on the request.
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

// Over TLS, tonic notes it in a type that is there only with one of tonic's cryptographic libraries.
// Which one is for the application to choose, so there it tells by a function of its own.
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
    fn each_of_those_who_note_a_peer_is_understood() {
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
        // A bare address is somebody else's note about something else.
        assert_eq!(noted_on(address), None);
    }
}
