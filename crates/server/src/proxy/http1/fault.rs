//! What goes wrong with connections to upstreams.

use std::error::Error;
use std::fmt;
use std::io;

/// How a connection failed, or what on it was not HTTP.
#[derive(Debug)]
pub(crate) enum Http1Fault {
    /// It was closed, or something came on it, before anything was asked.
    Stale,
    /// Nothing more can be read from it or written to it.
    Io(io::Error),
    /// The upstream closed it before the answer was complete.
    Ended,
    /// What came is not HTTP: this is wrong with it.
    NotHttp(&'static str),
    /// It was HTTP/2, and this is what hyper says of it.
    Http2(hyper::Error),
}

impl Http1Fault {
    pub(super) const TOO_LARGE: Self = Self::NotHttp("its head is too large");
}

impl fmt::Display for Http1Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stale => f.write_str("it was closed while it waited for a request"),
            Self::Io(error) => error.fmt(f),
            Self::Ended => f.write_str("it was closed before the answer was complete"),
            Self::NotHttp(what) => write!(f, "what came is not HTTP: {what}"),
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
