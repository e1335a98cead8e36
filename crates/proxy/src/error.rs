//! Reasons why an upstream gave no response.

use super::fault::Http1Fault;
use std::error::Error;
use std::fmt;
use std::io;

/// The reason why there is no response to a request.
#[derive(Debug)]
pub enum UpstreamError {
    /// No connection could be made.
    Unreachable(io::Error),
    /// No connection was made in time.
    ConnectTimeout,
    /// All allowed connections are in use, and none became free in time.
    Full,
    /// The request was sent, or part of it, and no response came in time.
    ResponseTimeout,
    /// The connection broke, or its data is not HTTP.
    Broken(Http1Fault),
    /// The response is HTTP, but cannot be forwarded for this reason.
    Malformed(&'static str),
    /// The client's body failed or was malformed.
    Upload(UploadError),
}

/// The error of a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UploadError {
    /// It exceeds the route's maximum size.
    TooLarge,
    /// A piece did not come in time.
    TooSlow,
    /// It came more slowly than the route accepts.
    TooLittle,
    /// The client disconnected, or sent data that is not HTTP.
    Broken,
}

impl UpstreamError {
    /// Returns the error that no upstream is left to try.
    pub fn no_upstream_left() -> Self {
        Self::Unreachable(io::Error::other("no upstream is left to try"))
    }

    /// Returns true if the error counts against the upstream.
    pub(crate) fn is_the_upstreams(&self) -> bool {
        match self {
            // A client that requests an upgrade that the upstream does not support must not cause its
            // ejection.
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
            Self::ConnectTimeout => f.write_str("connect timeout"),
            Self::Full => f.write_str("all its connections are in use"),
            Self::ResponseTimeout => f.write_str("timeout"),
            Self::Broken(error) => write!(f, "the connection failed: {error}"),
            Self::Malformed(what) => f.write_str(what),
            Self::Upload(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is too large",
            Self::TooSlow => "the body timed out",
            Self::TooLittle => "the body was too slow",
            Self::Broken => "the body ended too early",
        })
    }
}

impl Error for UploadError {}
