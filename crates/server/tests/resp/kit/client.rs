//! A client that sends exactly the given bytes, and reads replies one by one.

use super::in_time;
use std::net::SocketAddr;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

/// A connection.
pub(crate) struct Client<I = TcpStream> {
    pub(crate) stream: I,
    ahead: Vec<u8>,
}

impl Client {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).await.unwrap())
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Client<I> {
    pub(crate) fn over(stream: I) -> Self {
        Self {
            stream,
            ahead: Vec::new(),
        }
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    /// Sends a command, and waits for its reply.
    pub(crate) async fn ask(&mut self, words: &str) -> String {
        self.send(&super::line(words)).await;
        self.reply().await
    }

    /// Returns the next reply, as sent.
    pub(crate) async fn reply(&mut self) -> String {
        loop {
            if let Some(len) = reply_len(&self.ahead) {
                let reply = self.ahead.drain(..len).collect();
                return String::from_utf8(reply).unwrap();
            }
            assert!(self.more().await > 0, "closed: {:?}", self.ahead);
        }
    }

    /// Returns everything until the server closes.
    pub(crate) async fn rest(&mut self) -> String {
        while self.more().await > 0 {}
        String::from_utf8(std::mem::take(&mut self.ahead)).unwrap()
    }

    async fn more(&mut self) -> usize {
        let reading = self.stream.read_buf(&mut self.ahead);
        in_time("something to read", reading).await.unwrap_or(0)
    }
}

/// Returns the length of the first reply, if it is complete.
fn reply_len(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|two| two == b"\r\n")? + 2;
    let number = || -> i64 {
        let text = std::str::from_utf8(&bytes[1..end - 2]).unwrap();
        text.parse().unwrap()
    };
    let len = match bytes[0] {
        b'$' if bytes.starts_with(b"$-1") => end,
        b'$' | b'=' => end + usize::try_from(number()).unwrap() + 2,
        b'*' | b'~' | b'%' => {
            let count = number() * if bytes[0] == b'%' { 2 } else { 1 };
            let mut len = end;
            for _ in 0..count {
                len += reply_len(bytes.get(len..)?)?;
            }
            len
        }
        _ => end,
    };
    (bytes.len() >= len).then_some(len)
}
