//! The connection to a statsd server.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tidegate_config::statsd::StatsdProtocol;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpStream, UdpSocket, lookup_host};
use tokio::time::timeout;

/// The longest datagram that no Ethernet fragments, with room for tunnel headers; the same as in gostats.
const DATAGRAM_MAX: usize = 1_432;

/// The most that is written to a connection at once.
const WRITE_MAX: usize = 16 << 10;

/// The maximum time to connect, and to write a packet.
const TIME_MAX: Duration = Duration::from_secs(1);

/// A connection that is opened when it is needed.
#[derive(Debug)]
pub(super) struct Sink {
    /// Host and port; resolved for every connection.
    address: String,
    protocol: StatsdProtocol,
    connection: Option<StatsdConnection>,
}

#[derive(Debug)]
enum StatsdConnection {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Sink {
    pub(super) fn new(address: &str, protocol: StatsdProtocol) -> Self {
        Self {
            address: address.to_owned(),
            protocol,
            connection: None,
        }
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Returns the length of the largest packet.
    pub(super) fn packet_max(&self) -> usize {
        match self.protocol {
            StatsdProtocol::Udp => DATAGRAM_MAX,
            StatsdProtocol::Tcp => WRITE_MAX,
        }
    }

    /// Sends a packet, and stores in `taken` how much of it the system has accepted, even if the call fails
    /// or is cancelled. After an error the next packet gets a new connection.
    pub(super) async fn send(&mut self, packet: &[u8], taken: &mut usize) -> io::Result<()> {
        let sent = timeout(TIME_MAX, self.try_send(packet, taken)).await;
        let sent = sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        if sent.is_err() {
            self.connection = None;
        }
        sent
    }

    async fn try_send(&mut self, packet: &[u8], taken: &mut usize) -> io::Result<()> {
        // A connection that the server has closed would accept one more packet, and lose it.
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.is_closed() => connection,
            _ => self.connect().await?,
        };
        match &mut connection {
            StatsdConnection::Udp(socket) => {
                *taken = socket.send(packet).await?;
            }
            StatsdConnection::Tcp(stream) => {
                while let Some(rest) = packet.get(*taken..).filter(|rest| !rest.is_empty()) {
                    let written = stream.write(rest).await?;
                    if written == 0 {
                        return Err(io::ErrorKind::WriteZero.into());
                    }
                    *taken = taken.saturating_add(written);
                }
            }
        }
        self.connection = Some(connection);
        Ok(())
    }

    async fn connect(&self) -> io::Result<StatsdConnection> {
        if self.protocol == StatsdProtocol::Tcp {
            let stream = TcpStream::connect(&self.address).await?;
            return Ok(StatsdConnection::Tcp(stream));
        }
        let mut addresses: Vec<SocketAddr> = lookup_host(&self.address).await?.collect();
        // Prefer IPv4: servers more often listen on it, and a datagram cannot find out.
        addresses.sort_by_key(SocketAddr::is_ipv6);
        let Some(address) = addresses.first() else {
            return Err(io::Error::other("the name has no address"));
        };
        let socket = match address {
            SocketAddr::V4(_) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).await?,
            SocketAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0)).await?,
        };
        socket.connect(address).await?;
        Ok(StatsdConnection::Udp(socket))
    }
}

impl StatsdConnection {
    /// Returns true if the server has closed the connection. Statsd servers send nothing.
    fn is_closed(&self) -> bool {
        match self {
            Self::Udp(_) => false,
            Self::Tcp(stream) => match stream.try_read(&mut [0; 1]) {
                Ok(read) => read == 0,
                Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Sink, StatsdConnection};
    use tidegate_config::statsd::StatsdProtocol;
    use tokio::net::TcpListener;

    #[tokio::test]
    async fn a_closed_connection_is_reopened_before_a_packet_is_lost() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut sink = Sink::new(&address, StatsdProtocol::Tcp);
        sink.send(b"a:1|c\n", &mut 0).await.unwrap();
        let (first, _) = listener.accept().await.unwrap();
        let Some(StatsdConnection::Tcp(stream)) = &sink.connection else {
            panic!("no connection");
        };
        let port = stream.local_addr().unwrap();
        drop(first);
        stream.readable().await.unwrap();
        sink.send(b"a:2|c\n", &mut 0).await.unwrap();
        let (_, second) = listener.accept().await.unwrap();
        assert_ne!(second, port);
    }

    #[tokio::test(start_paused = true)]
    async fn a_partly_sent_packet_reports_its_sent_length() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut sink = Sink::new(&address, StatsdProtocol::Tcp);
        // More than the buffers of both ends hold: the server reads nothing.
        let packet = vec![b'x'; 64 << 20];
        let mut taken = 0;
        let error = sink.send(&packet, &mut taken).await.unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(0 < taken && taken < packet.len(), "{taken}");
        assert!(sink.connection.is_none());
    }
}
