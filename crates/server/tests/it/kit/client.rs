//! A client that sends exactly the given bytes.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Bound of every wait for the server. No test needs a tenth of it.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A connection.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    /// Bytes read beyond the last response.
    ahead: Vec<u8>,
    /// The first line of the last request, for messages.
    asked: String,
}

/// A response.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Waits for something that must happen, so that a program that hangs fails the test that waits for it.
pub(crate) async fn in_time<T>(what: &str, future: impl Future<Output = T>) -> T {
    let happened = timeout(PATIENCE, future).await;
    happened.unwrap_or_else(|_| panic!("did not happen within {PATIENCE:?}: {what}"))
}

/// Sends a check request on a new connection.
pub(crate) async fn post(address: SocketAddr, body: &str) -> Reply {
    Client::connect(address).await.post(body).await
}

/// Sends a GET on a new connection.
pub(crate) async fn get(address: SocketAddr, path: &str) -> Reply {
    let request = format!("GET {path} HTTP/1.1\r\nhost: test\r\n\r\n");
    Client::connect(address).await.ask(&request).await
}

/// Returns a check request with this body.
pub(crate) fn question(body: &str) -> String {
    let length = body.len();
    format!(
        "POST /v1/check HTTP/1.1\r\nhost: test\r\ncontent-type: application/json\r\n\
         content-length: {length}\r\n\r\n{body}"
    )
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let connecting = TcpStream::connect(address);
        let what = format!("a connection to {address}");
        Self::over(in_time(&what, connecting).await.unwrap())
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Client<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
            asked: String::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &str) {
        self.try_send(bytes).await.unwrap();
    }

    pub(crate) async fn try_send(&mut self, bytes: &str) -> io::Result<()> {
        bytes
            .lines()
            .next()
            .unwrap_or_default()
            .clone_into(&mut self.asked);
        let what = format!("sending {:?}", self.asked);
        let sending = async {
            self.stream.write_all(bytes.as_bytes()).await?;
            self.stream.flush().await
        };
        in_time(&what, sending).await
    }

    /// Sends a request and reads the response.
    pub(crate) async fn ask(&mut self, request: &str) -> Reply {
        self.send(request).await;
        self.reply().await
    }

    /// Sends a check request.
    pub(crate) async fn post(&mut self, body: &str) -> Reply {
        self.ask(&question(body)).await
    }

    /// Returns the next response.
    pub(crate) async fn reply(&mut self) -> Reply {
        self.try_reply()
            .await
            .unwrap()
            .expect("a reply, not the end")
    }

    /// Returns the next response, or `None` if the server closes first.
    pub(crate) async fn try_reply(&mut self) -> io::Result<Option<Reply>> {
        let Some(head) = self.head().await? else {
            return Ok(None);
        };
        let mut reply = Reply::parse(&head);
        let length = reply
            .header("content-length")
            .map_or(0, |text| text.parse().unwrap());
        while self.ahead.len() < length {
            if !self.read().await? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        let body = self.ahead.drain(..length).collect();
        reply.body = String::from_utf8(body).unwrap();
        Ok(Some(reply))
    }

    /// Returns what comes until the server closes.
    pub(crate) async fn rest(&mut self) -> String {
        while self.read().await.unwrap() {}
        String::from_utf8(std::mem::take(&mut self.ahead)).unwrap()
    }

    /// Returns true if the server has closed without sending more.
    pub(crate) async fn is_closed(&mut self) -> bool {
        matches!(self.read().await, Ok(false) | Err(_))
    }

    async fn head(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(end) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                let head = self.ahead.drain(..end + 4).collect();
                return Ok(Some(String::from_utf8(head).unwrap()));
            }
            if !self.read().await? {
                return if self.ahead.is_empty() {
                    Ok(None)
                } else {
                    Err(io::ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// Reads available bytes; returns `false` at the end.
    async fn read(&mut self) -> io::Result<bool> {
        let what = format!("more bytes after {:?} was sent", self.asked);
        let reading = self.stream.read_buf(&mut self.ahead);
        Ok(in_time(&what, reading).await? > 0)
    }
}

impl Reply {
    fn parse(head: &str) -> Self {
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Self {
            status: status.parse().unwrap(),
            headers: lines.map(header).collect(),
            body: String::new(),
        }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(other, _)| other == name);
        values.next().map(|(_, value)| value.as_str())
    }

    /// Returns the names of its headers, sorted.
    pub(crate) fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        names
    }

    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// Returns true if its single decision allows the request.
    pub(crate) fn is_allowed(&self) -> bool {
        assert_eq!(self.status, 200, "{}", self.body);
        self.json()["allowed"].as_bool().unwrap()
    }
}
