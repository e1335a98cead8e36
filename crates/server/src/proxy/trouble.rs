//! Why an upstream gave no answer.

use std::error::Error;
use std::fmt;
use std::io;

/// Why there is no answer to a request.
#[derive(Debug)]
pub(crate) enum Trouble {
    /// No connection could be made.
    Unreachable(io::Error),
    /// No connection was made in time.
    ConnectTimeout,
    /// The request was sent, or part of it, and no answer came in time.
    ResponseTimeout,
    /// The connection broke, or what came is not HTTP.
    Broken(hyper::Error),
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
    /// The client went away, or sent something that is not HTTP.
    Broken,
}

impl Trouble {
    /// What `error` is about: perhaps the client, whose body it is that hyper could not send on.
    pub(crate) fn of(error: hyper::Error) -> Self {
        match upload_error(&error) {
            Some(upload) => Self::Upload(upload),
            None => Self::Broken(error),
        }
    }

    /// There was nobody left to ask.
    pub(crate) fn nobody() -> Self {
        Self::Unreachable(io::Error::other("no upstream is left to try"))
    }

    /// Whether it speaks against the upstream.
    pub(crate) fn is_the_upstreams(&self) -> bool {
        !matches!(self, Self::Upload(_))
    }

    /// Whether the upstream certainly saw nothing of the request.
    pub(crate) fn is_unreached(&self) -> bool {
        matches!(self, Self::Unreachable(_) | Self::ConnectTimeout)
    }
}

fn upload_error(error: &hyper::Error) -> Option<UploadError> {
    let mut cause = error.source();
    while let Some(error) = cause {
        if let Some(upload) = error.downcast_ref::<UploadError>() {
            return Some(*upload);
        }
        cause = error.source();
    }
    None
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreachable(error) => write!(f, "cannot connect: {error}"),
            Self::ConnectTimeout => f.write_str("no connection in time"),
            Self::ResponseTimeout => f.write_str("no answer in time"),
            Self::Broken(error) => write!(f, "the connection broke: {error}"),
            Self::Upload(error) => error.fmt(f),
        }
    }
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLarge => "the body is too large",
            Self::TooSlow => "the body did not go on",
            Self::Broken => "the body ended too early",
        })
    }
}

impl Error for UploadError {}
