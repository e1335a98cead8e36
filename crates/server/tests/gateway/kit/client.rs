//! A client that sends exactly the given bytes.

use super::in_time;
use super::message::{Content, Head, Messages};
use std::io;
use std::net::{IpAddr, SocketAddr};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

/// A connection.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) messages: Messages<S>,
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// The statuses of interim responses before it.
    pub(crate) interim: Vec<u16>,
    pub(crate) head: Head,
    pub(crate) content: Content,
}

/// Sends a GET on a new connection.
pub(crate) async fn get(address: SocketAddr, target: &str, lines: &[&str]) -> Reply {
    Client::connect(address).await.get(target, lines).await
}

/// Returns a request without a body.
pub(crate) fn request(method: &str, target: &str, lines: &[&str]) -> String {
    let mut head = format!("{method} {target} HTTP/1.1\r\nhost: shop.example\r\n");
    for line in lines {
        head.push_str(line);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }

    /// Connects from another address of this machine.
    pub(crate) async fn connect_from(address: SocketAddr, source: IpAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::new(source, 0)).unwrap();
        Self::over(socket.connect(address).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        let messages = Messages::new(stream);
        Self { messages }
    }

    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).await.unwrap();
    }

    pub(crate) async fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let stream = &mut self.messages.stream;
        in_time("sending", stream.write_all(bytes.as_ref())).await?;
        stream.flush().await
    }

    /// Sends a request and reads the response.
    pub(crate) async fn ask(&mut self, request: impl AsRef<[u8]>) -> Reply {
        let method = method(request.as_ref());
        self.send(request).await;
        self.reply(&method).await
    }

    pub(crate) async fn get(&mut self, target: &str, lines: &[&str]) -> Reply {
        self.ask(request("GET", target, lines)).await
    }

    /// Returns the next head of any kind.
    pub(crate) async fn head(&mut self) -> Head {
        let head = in_time("a head", self.messages.head()).await.unwrap();
        head.expect("an answer, not the end")
    }

    /// Returns the next response, to a request of this method.
    pub(crate) async fn reply(&mut self, method: &str) -> Reply {
        let reply = self.try_reply(method).await.unwrap();
        reply.expect("an answer, not the end")
    }

    /// Returns the same; `None` if the connection ends before it.
    pub(crate) async fn try_reply(&mut self, method: &str) -> io::Result<Option<Reply>> {
        let mut interim = Vec::new();
        loop {
            let Some(head) = in_time("a head", self.messages.head()).await? else {
                return Ok(None);
            };
            if matches!(head.status(), 100 | 102..=199) {
                interim.push(head.status());
                continue;
            }
            let framing = head.framing_of_reply(method);
            let content = in_time("a body", self.messages.content(framing)).await?;
            return Ok(Some(Reply {
                interim,
                head,
                content,
            }));
        }
    }

    /// Returns true if the other side has closed without sending more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        let more = in_time("the end", self.messages.more()).await;
        matches!(more, Ok(false) | Err(_))
    }
}

/// Returns the method of a request.
pub(crate) fn method(request: &[u8]) -> String {
    let end = request.iter().position(|byte| *byte == b' ');
    super::message::text(&request[..end.unwrap_or(0)])
}

impl Reply {
    pub(crate) fn status(&self) -> u16 {
        self.head.status()
    }

    /// Returns the body, which must be text.
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.content.bytes).unwrap()
    }

    /// Returns true if no other request can follow on this connection.
    pub(crate) fn closes(&self) -> bool {
        if self.head.line.starts_with("HTTP/1.0 ") {
            return !self.head.says("connection", "keep-alive");
        }
        self.head.says("connection", "close")
    }
}
