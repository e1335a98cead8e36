//! A client as small as tests need it: it writes a command and waits for the answer.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use tokio_rustls::rustls::{ClientConfig, ClientConnection, StreamOwned, pki_types::ServerName};

use super::access::Access;
use super::reply::RespReply;

/// A server that does not reply for this long was stopped or cut off.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// A connection to one server. It blocks, and knows nothing of clusters.
#[derive(Debug)]
pub struct BlockingClient(BufReader<ClientStream>);

impl BlockingClient {
    /// Connects to a port on loopback, with TLS and a login if `access` has them.
    ///
    /// Waits at most five seconds for each reply. [`patience`](Self::patience) changes that.
    pub fn connect(port: u16, access: &Access) -> io::Result<Self> {
        let tcp = TcpStream::connect(("127.0.0.1", port))?;
        tcp.set_nodelay(true)?;
        tcp.set_read_timeout(Some(ANSWER_MAX))?;
        tcp.set_write_timeout(Some(ANSWER_MAX))?;
        let stream = match access.tls_config() {
            None => ClientStream::Plain(tcp),
            Some(config) => ClientStream::tls(tcp, config)?,
        };
        let mut client = Self(BufReader::new(stream));
        if let Some(login) = access.login() {
            let answer = client.try_command(&["AUTH", &login.user, &login.password])?;
            if let Some(message) = answer.error() {
                return Err(io::Error::other(message));
            }
        }
        Ok(client)
    }

    /// Waits this long for each answer from now on.
    pub fn patience(&mut self, limit: Duration) {
        let tcp = self.0.get_ref().tcp();
        tcp.set_read_timeout(Some(limit)).expect("not zero");
    }

    /// Runs a command. Panics if the server cannot be reached; an error reply is returned.
    ///
    /// ```no_run
    /// # use tidegate_testkit::redis::Server;
    /// # let server = Server::start();
    /// let mut client = server.client();
    /// client.command(&["CONFIG", "SET", "maxmemory", "2mb"]).done();
    /// assert_eq!(client.command(&["INCR", "a"]).int(), 1);
    /// assert!(client.command(&["HGETALL", "a"]).error().unwrap().starts_with("WRONGTYPE"));
    /// ```
    pub fn command<W: AsRef<[u8]>>(&mut self, words: &[W]) -> RespReply {
        self.try_command(words).unwrap_or_else(|error| {
            let name = words
                .first()
                .map(|word| String::from_utf8_lossy(word.as_ref()));
            panic!("{} has no answer: {error}", name.unwrap_or_default())
        })
    }

    /// Runs a command.
    ///
    /// # Errors
    ///
    /// The I/O error if the server cannot be reached or does not reply.
    pub fn try_command<W: AsRef<[u8]>>(&mut self, words: &[W]) -> io::Result<RespReply> {
        let mut request = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            let word = word.as_ref();
            request.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            request.extend_from_slice(word);
            request.extend_from_slice(b"\r\n");
        }
        let stream = self.0.get_mut();
        stream.write_all(&request)?;
        stream.flush()?;
        RespReply::read(&mut self.0)
    }
}

#[derive(Debug)]
enum ClientStream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl ClientStream {
    fn tls(tcp: TcpStream, config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from("127.0.0.1").map_err(io::Error::other)?;
        let connection = ClientConnection::new(config, name).map_err(io::Error::other)?;
        Ok(Self::Tls(Box::new(StreamOwned::new(connection, tcp))))
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref(),
        }
    }
}

impl Read for ClientStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.read(buffer),
            Self::Tls(tls) => tls.read(buffer),
        }
    }
}

impl Write for ClientStream {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(tcp) => tcp.write(buffer),
            Self::Tls(tls) => tls.write(buffer),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(tcp) => tcp.flush(),
            Self::Tls(tls) => tls.flush(),
        }
    }
}
