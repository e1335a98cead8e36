//! The reasons for rejecting a request before parsing.

/// The reason for rejecting a request. Each is an ambiguity that two programs could read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StrictReason {
    /// The first byte does not begin a request.
    Garbage,
    /// Not `METHOD SP target SP HTTP/1.x`.
    RequestLine,
    /// A line that ends in LF alone.
    BareLf,
    /// A CR that no LF follows.
    BareCr,
    /// A NUL.
    Nul,
    /// A header that continues on the next line.
    Fold,
    /// A header's name with a space, without a colon, or with an invalid character.
    Name,
    /// No `Host` in HTTP/1.1.
    NoHost,
    /// More than one `Host`.
    TwoHosts,
    /// A `Content-Length` that is not exactly one number.
    Length,
    /// A `Transfer-Encoding` that is not exactly one `chunked` in HTTP/1.1.
    Encoding,
    /// Both `Content-Length` and `Transfer-Encoding`.
    LengthAndEncoding,
    /// A name that is one of the two for programs that read `_` as `-`.
    Lookalike,
    /// A chunk whose size is not one hexadecimal number.
    ChunkSize,
    /// An extension of a chunk that is too long.
    ChunkExtension,
    /// A chunk that does not end after its size.
    ChunkEnd,
    /// A trailer that would have changed how the request is read.
    Trailer,
}

impl StrictReason {
    /// Returns the name in metrics and logs.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Garbage => "garbage",
            Self::RequestLine => "request-line",
            Self::BareLf => "bare-lf",
            Self::BareCr => "bare-cr",
            Self::Nul => "nul",
            Self::Fold => "fold",
            Self::Name => "name",
            Self::NoHost => "no-host",
            Self::TwoHosts => "two-hosts",
            Self::Length => "length",
            Self::Encoding => "encoding",
            Self::LengthAndEncoding => "length-and-encoding",
            Self::Lookalike => "lookalike",
            Self::ChunkSize => "chunk-size",
            Self::ChunkExtension => "chunk-extension",
            Self::ChunkEnd => "chunk-end",
            Self::Trailer => "trailer",
        }
    }
}
