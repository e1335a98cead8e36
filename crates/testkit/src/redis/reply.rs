//! Replies of a server, in the protocol's second version.

use std::io::{self, BufRead};

/// An answer of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RespReply {
    /// Nothing there.
    Nil,
    /// A number.
    Int(i64),
    /// A status such as `OK`.
    Status(String),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// A list.
    Array(Vec<RespReply>),
    /// A refusal, with its class in front: `WRONGTYPE …`.
    Error(String),
}

impl RespReply {
    /// Returns the answer as text. Panics if it is an error, a list or nothing.
    pub fn text(&self) -> String {
        match self {
            Self::Status(text) => text.clone(),
            Self::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Self::Int(number) => number.to_string(),
            other => panic!("expected text, the server answered {other:?}"),
        }
    }

    /// Returns the answer as bytes. Panics if it is no string.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Bulk(bytes) => bytes,
            other => panic!("expected bytes, the server answered {other:?}"),
        }
    }

    /// Returns the answer as a number. Panics if it is none.
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            other => panic!("expected a number, the server answered {other:?}"),
        }
    }

    /// Returns the parts of the answer. Panics if it is no list.
    pub fn list(&self) -> &[Self] {
        match self {
            Self::Array(parts) => parts,
            other => panic!("expected a list, the server answered {other:?}"),
        }
    }

    /// Returns the parts of the answer as text. Panics if it is no list of text.
    pub fn texts(&self) -> Vec<String> {
        self.list().iter().map(Self::text).collect()
    }

    /// Returns the message, if the answer is an error.
    pub fn error(&self) -> Option<&str> {
        match self {
            Self::Error(message) => Some(message),
            _ => None,
        }
    }

    /// Returns true if the reply is nil.
    pub fn is_nil(&self) -> bool {
        *self == Self::Nil
    }

    /// Returns the answer, which must not be an error: panics with its message.
    #[must_use = "use `done` for a command whose answer does not matter"]
    pub fn good(self) -> Self {
        match self {
            Self::Error(message) => panic!("the server refused: {message}"),
            other => other,
        }
    }

    /// Ignores a reply that is no error; panics with the message of one that is.
    pub fn done(self) {
        drop(self.good());
    }

    /// Reads one answer.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Self> {
        let mut line = Vec::new();
        from.read_until(b'\n', &mut line)?;
        let Some(line) = line.strip_suffix(b"\r\n") else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        let line = String::from_utf8_lossy(line);
        let mut chars = line.chars();
        let kind = chars.next();
        let rest = chars.as_str();
        match kind {
            Some('+') => Ok(Self::Status(rest.to_owned())),
            Some('-') => Ok(Self::Error(rest.to_owned())),
            Some(':') => Ok(Self::Int(number(rest)?)),
            Some('$') => Self::read_bulk(from, number(rest)?),
            Some('*') => Self::read_array(from, number(rest)?),
            _ => Err(io::Error::other(format!("not an answer: {line:?}"))),
        }
    }

    fn read_bulk(from: &mut impl BufRead, length: i64) -> io::Result<Self> {
        let Ok(length) = usize::try_from(length) else {
            return Ok(Self::Nil);
        };
        let mut bytes = vec![0; length + 2];
        from.read_exact(&mut bytes)?;
        bytes.truncate(length);
        Ok(Self::Bulk(bytes))
    }

    fn read_array(from: &mut impl BufRead, length: i64) -> io::Result<Self> {
        let Ok(length) = usize::try_from(length) else {
            return Ok(Self::Nil);
        };
        (0..length)
            .map(|_| Self::read(from))
            .collect::<io::Result<_>>()
            .map(Self::Array)
    }
}

fn number(text: &str) -> io::Result<i64> {
    text.parse()
        .map_err(|_| io::Error::other(format!("not a number: {text:?}")))
}
