//! HTTP/1 messages, read byte for byte: strictly, and without normalization.

use std::fmt;
use std::io::{self, ErrorKind};
use tokio::io::{AsyncRead, AsyncReadExt};

/// The head of a message. Each byte becomes one character, so that none is lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// Its first line.
    pub(crate) line: String,
    /// Names as sent; values without surrounding whitespace.
    pub(crate) fields: Vec<(String, String)>,
}

/// How the end of the body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// No body.
    Nothing,
    Length(usize),
    Chunks,
    /// At the end of the connection.
    End,
}

/// The body of a message, and its trailers.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) framing: Framing,
    pub(crate) bytes: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
}

/// Reads messages from a connection.
pub(crate) struct Messages<S> {
    pub(crate) stream: S,
    /// Bytes read beyond the last message.
    pub(crate) ahead: Vec<u8>,
}

/// Returns each byte as one character.
pub(crate) fn text(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

impl Head {
    fn parse(bytes: &[u8]) -> Self {
        let head = text(bytes);
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let fields = lines.map(field).collect();
        Self { line, fields }
    }

    /// Returns the values of a header, in the order of arrival.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let fields = self.fields.iter();
        fields
            .filter(move |(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }

    /// Returns the single value of a header; panics if there are more.
    pub(crate) fn get<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        let mut values = self.all(name);
        let value = values.next();
        assert_eq!(values.next(), None, "{name} is there twice: {self:#?}");
        value
    }

    /// Returns true if a list header contains this word.
    pub(crate) fn says(&self, name: &str, word: &str) -> bool {
        let mut words = self.all(name).flat_map(|value| value.split(','));
        words.any(|other| other.trim().eq_ignore_ascii_case(word))
    }

    /// Returns the status of a response.
    pub(crate) fn status(&self) -> u16 {
        let status = self.line.split(' ').nth(1);
        status
            .and_then(|it| it.parse().ok())
            .unwrap_or_else(|| panic!("no status: {self:?}"))
    }

    /// Returns the framing of a request body.
    pub(crate) fn framing_of_request(&self) -> Framing {
        if self.says("transfer-encoding", "chunked") {
            return Framing::Chunks;
        }
        let length = self.get("content-length");
        length.map_or(Framing::Nothing, |it| Framing::Length(it.parse().unwrap()))
    }

    /// Returns the framing of the body of a response to `method`.
    pub(crate) fn framing_of_reply(&self, method: &str) -> Framing {
        if method == "HEAD" || matches!(self.status(), 100..=199 | 204 | 304) {
            return Framing::Nothing;
        }
        match self.framing_of_request() {
            Framing::Nothing => Framing::End,
            framing => framing,
        }
    }
}

fn field(line: &str) -> (String, String) {
    let (name, value) = line
        .split_once(':')
        .unwrap_or_else(|| panic!("no header: {line:?}"));
    (name.to_owned(), value.trim_matches([' ', '\t']).to_owned())
}

impl<S: AsyncRead + Unpin> Messages<S> {
    pub(crate) fn new(stream: S) -> Self {
        let ahead = Vec::new();
        Self { stream, ahead }
    }

    /// Returns the next head; `None` if the connection ends before it.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Head>> {
        loop {
            let end = self.ahead.windows(4).position(|four| four == b"\r\n\r\n");
            if let Some(end) = end {
                let head: Vec<u8> = self.ahead.drain(..end + 4).collect();
                return Ok(Some(Head::parse(&head)));
            }
            if !self.more().await? {
                return if self.ahead.is_empty() {
                    Ok(None)
                } else {
                    Err(ErrorKind::UnexpectedEof.into())
                };
            }
        }
    }

    /// Returns the body that follows a head.
    pub(crate) async fn content(&mut self, framing: Framing) -> io::Result<Content> {
        let mut content = Content {
            framing,
            bytes: Vec::new(),
            trailers: Vec::new(),
        };
        match framing {
            Framing::Nothing => {}
            Framing::Length(length) => content.bytes = self.exactly(length).await?,
            Framing::End => {
                while self.more().await? {}
                content.bytes = std::mem::take(&mut self.ahead);
            }
            Framing::Chunks => self.chunks(&mut content).await?,
        }
        Ok(content)
    }

    async fn chunks(&mut self, content: &mut Content) -> io::Result<()> {
        while let Some(chunk) = self.chunk().await? {
            content.bytes.extend(chunk);
        }
        loop {
            let line = self.line().await?;
            if line.is_empty() {
                return Ok(());
            }
            content.trailers.push(field(&line));
        }
    }

    /// Returns the next chunk; `None` for the last one, which trailers may follow.
    pub(crate) async fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let line = self.line().await?;
        let size = line.split(';').next().unwrap();
        let size = usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("a size: {line:?}"));
        if size == 0 {
            return Ok(None);
        }
        let chunk = self.exactly(size).await?;
        assert_eq!(self.line().await?, "", "after a chunk");
        Ok(Some(chunk))
    }

    async fn line(&mut self) -> io::Result<String> {
        loop {
            let end = self.ahead.windows(2).position(|two| two == b"\r\n");
            if let Some(end) = end {
                let line: Vec<u8> = self.ahead.drain(..end + 2).collect();
                return Ok(text(&line[..end]));
            }
            self.need().await?;
        }
    }

    pub(crate) async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.ahead.len() < length {
            self.need().await?;
        }
        Ok(self.ahead.drain(..length).collect())
    }

    async fn need(&mut self) -> io::Result<()> {
        if self.more().await? {
            return Ok(());
        }
        Err(ErrorKind::UnexpectedEof.into())
    }

    /// Reads available bytes; returns `false` at the end.
    pub(crate) async fn more(&mut self) -> io::Result<bool> {
        self.ahead.reserve(64 << 10);
        Ok(self.stream.read_buf(&mut self.ahead).await? > 0)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            framing,
            bytes,
            trailers,
        } = self;
        write!(f, "{framing:?}, {} bytes: ", bytes.len())?;
        let begin = bytes.len().min(200);
        write!(f, "{:?}, {trailers:?}", text(&bytes[..begin]))
    }
}
