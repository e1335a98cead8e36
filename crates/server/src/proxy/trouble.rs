//! Why an upstream gave no answer.

use super::http1::Http1Fault;
use std::error::Error;
use std::fmt;
use std::io;

/// Why there is no answer to a request.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    /// No connection could be made.
    Unreachable(io::Error),
    /// No connection was made in time.
    ConnectTimeout,
    /// All connections that there may be are in use, and none became free in time.
    Full,
    /// The request was sent, or part of it, and no answer came in time.
    ResponseTimeout,
    /// The connection broke, or what came on it is not HTTP.
    Broken(Http1Fault),
    /// What came is HTTP, but nobody could pass it on: this is wrong with it.
    Malformed(&'static str),
    /// The client is to blame: its body did not come as it should.
    Upload(UploadError),
}

/// What was wrong with the body of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UploadError {
    /// It is larger than the route takes.
    TooLarge,
    /// It did not go on in time.
    TooSlow,
    /// It came more slowly than the route accepts.
    TooLittle,
    /// The client went away, or sent something that is not HTTP.
    Broken,
}

impl UpstreamError {
    /// There was nobody left to ask.
    pub(crate) fn nobody() -> Self {
        Self::Unreachable(io::Error::other("no upstream is left to try"))
    }

    /// Whether it speaks against the upstream.
    pub(crate) fn is_the_upstreams(&self) -> bool {
        match self {
            // Whoever asks for an upgrade where none is to be had must not bring the upstream into
            // disrepute.
            Self::Unreachable(error) => error.kind() != io::ErrorKind::Unsupported,
            Self::Full | Self::Upload(_) => false,
            _ => true,
        }
    }
}

impl fmt::Display for UpstreamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "cannot connect: {error}"),
            Self::ConnectTimeout => f.write_str("no connection in time"),
            Self::Full => f.write_str("all its connections are in use"),
            Self::ResponseTimeout => f.write_str("no answer in time"),
            Self::Broken(error) => write!(f, "the connection broke: {error}"),
            Self::Malformed(what) => f.write_str(what),
            Self::Upload(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is too large",
            Self::TooSlow => "the body did not go on",
            Self::TooLittle => "the body came too slowly",
            Self::Broken => "the body ended too early",
        })
    }
}

impl Error for UploadError {}
