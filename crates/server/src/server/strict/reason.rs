//! Why a request is refused before anybody reads it.

/// Why a request is refused. Each is something that two programs could read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StrictReason {
    /// What stands where a request begins is the beginning of none.
    Garbage,
    /// Not `METHOD SP target SP HTTP/1.x`.
    RequestLine,
    /// A line that ends in LF alone.
    BareLf,
    /// A CR that no LF follows.
    BareCr,
    /// A NUL.
    Nul,
    /// A header that goes on in the next line.
    Fold,
    /// A header's name with a space, without a colon, or of what no name is made of.
    Name,
    /// No `Host` in HTTP/1.1.
    NoHost,
    /// Two of them.
    TwoHosts,
    /// A `Content-Length` that is not one number, said once.
    Length,
    /// A `Transfer-Encoding` that is not `chunked`, said once, in HTTP/1.1.
    Encoding,
    /// Both of them.
    LengthAndEncoding,
    /// Something that is one of the two to programs that take `_` for `-`.
    Lookalike,
    /// A chunk whose size is not one hexadecimal number.
    ChunkSize,
    /// An extension of a chunk that is too long.
    ChunkExtension,
    /// A chunk that does not end where it says.
    ChunkEnd,
    /// A trailer that would have changed how the request is read.
    Trailer,
}

impl StrictReason {
    /// As metrics and logs have it.
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
