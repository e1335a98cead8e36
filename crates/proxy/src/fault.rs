//! Faults of connections to upstreams.

use std::error::Error;
use std::fmt;
use std::io;

/// A connection error, or an invalid HTTP message.
#[derive(Debug)]
pub enum Http1Fault {
    /// It was closed, or received data, before any request was sent.
    Stale,
    /// Reading or writing failed.
    Io(io::Error),
    /// The upstream closed it before the response was complete.
    Ended,
    /// The data is not valid HTTP, for this reason.
    NotHttp(&'static str),
    /// An error of an HTTP/2 connection, from hyper.
    Http2(hyper::Error),
}

impl Http1Fault {
    pub(crate) const TOO_LARGE: Self = Self::NotHttp("its headers are too large");
}

impl fmt::Display for Http1Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("it was closed while idle"),
            Self::Io(error) => error.fmt(f),
            Self::Ended => f.write_str("it was closed before the response was complete"),
            Self::NotHttp(what) => write!(f, "the response is not valid HTTP: {what}"),
            Self::Http2(error) => error.fmt(f),
        }
    }
}

impl Error for Http1Fault {}

impl From<io::Error> for Http1Fault {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<hyper::Error> for Http1Fault {
    fn from(error: hyper::Error) -> Self {
        Self::Http2(error)
    }
}
