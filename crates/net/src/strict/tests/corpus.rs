//! Requests, by name: rejected ones with their reason, and valid ones.

use crate::strict::reason::StrictReason::{self, *};

/// Requests of attackers that want two programs to disagree. The first request in each is cut as short as
/// possible.
pub(crate) const BAD: &[(&str, &str, StrictReason)] = &[
    // Content-Length against Transfer-Encoding.
    (
        "CL.TE",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG",
        LengthAndEncoding,
    ),
    (
        "TE.CL",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n5c\r\nGPOST",
        LengthAndEncoding,
    ),
    (
        "CL.TE with a zero length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        LengthAndEncoding,
    ),
    (
        "TE.TE, the second unknown",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n",
        Encoding,
    ),
    (
        "TE.TE, twice the same",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        Encoding,
    ),
    (
        "TE.TE, identity first",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n",
        Encoding,
    ),
    (
        "a list of encodings",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        Encoding,
    ),
    (
        "chunked twice in a list",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, chunked\r\n\r\n",
        Encoding,
    ),
    (
        "chunked in a list of one",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked,\r\n\r\n",
        Encoding,
    ),
    (
        "chunked with a letter before it",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n",
        Encoding,
    ),
    (
        "chunked in quotes",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n",
        Encoding,
    ),
    (
        "chunked behind a vertical tab",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \x0bchunked\r\n\r\n",
        Encoding,
    ),
    (
        "chunked with a parameter",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked;q=1\r\n\r\n",
        Encoding,
    ),
    (
        "an empty encoding",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n\r\n",
        Encoding,
    ),
    (
        "chunked behind a page of spaces",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:                                                                 chunked\r\n\r\n",
        Encoding,
    ),
    (
        "an encoding in HTTP/1.0",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
        Encoding,
    ),
    (
        "an encoding by underscore",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer_Encoding: chunked\r\n\r\n",
        Lookalike,
    ),
    (
        "a length by underscore",
        "POST / HTTP/1.1\r\nHost: a\r\nContent_Length: 5\r\n\r\n",
        Lookalike,
    ),
    // Lengths.
    (
        "two lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        Length,
    ),
    (
        "two equal lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\n",
        Length,
    ),
    (
        "a list of equal lengths",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\n",
        Length,
    ),
    (
        "a length with a sign",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\n",
        Length,
    ),
    (
        "a negative length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n",
        Length,
    ),
    (
        "a hexadecimal length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\n",
        Length,
    ),
    (
        "a length in two parts",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5 5\r\n\r\n",
        Length,
    ),
    (
        "a length with a point",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5.0\r\n\r\n",
        Length,
    ),
    (
        "an empty length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \r\n\r\n",
        Length,
    ),
    (
        "a length that wraps around",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\n",
        Length,
    ),
    (
        "a length in other digits",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \u{0665}\r\n\r\n",
        Length,
    ),
    // Line ends.
    (
        "LF after the request line",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        BareLf,
    ),
    (
        "LF after a header",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
        BareLf,
    ),
    (
        "LF after a length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\n\r\n",
        BareLf,
    ),
    (
        "LF at the end of a head",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        BareLf,
    ),
    (
        "LF before a request",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        BareLf,
    ),
    (
        "LF in a name",
        "GET / HTTP/1.1\r\nHost: a\r\nX\n: b\r\n\r\n",
        BareLf,
    ),
    (
        "LF in a target",
        "GET /\n HTTP/1.1\r\nHost: a\r\n\r\n",
        BareLf,
    ),
    (
        "CR in a value",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n",
        BareCr,
    ),
    ("CR CR LF", "GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", BareCr),
    (
        "CR after a head",
        "GET / HTTP/1.1\r\nHost: a\r\n\rGET",
        BareCr,
    ),
    (
        "CR after a length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\rX\r\n\r\n",
        BareCr,
    ),
    (
        "CR before the version",
        "GET /\rHTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "NUL in a value",
        "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
        Nul,
    ),
    (
        "NUL in a name",
        "GET / HTTP/1.1\r\nHost: a\r\nX\0: b\r\n\r\n",
        Nul,
    ),
    (
        "NUL in a length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\0\r\n\r\n",
        Nul,
    ),
    // Names.
    (
        "a folded header",
        "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n c\r\n\r\n",
        Fold,
    ),
    (
        "an encoding folded by a tab",
        "POST / HTTP/1.1\r\nHost: a\r\nX: b\r\n\tTransfer-Encoding: chunked\r\n\r\n",
        Fold,
    ),
    (
        "a first header that is folded",
        "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
        Fold,
    ),
    (
        "an encoding folded into its value",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\r\n chunked\r\n\r\n",
        Encoding,
    ),
    (
        "a space before a colon",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n",
        Name,
    ),
    (
        "a tab before a colon",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length\t: 5\r\n\r\n",
        Name,
    ),
    (
        "a space in a name",
        "POST / HTTP/1.1\r\nHost: a\r\nContent Length: 5\r\n\r\n",
        Name,
    ),
    (
        "a line without a colon",
        "GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n",
        Name,
    ),
    (
        "a line without a name",
        "GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n",
        Name,
    ),
    (
        "a name in quotes",
        "GET / HTTP/1.1\r\nHost: a\r\n\"X\": b\r\n\r\n",
        Name,
    ),
    (
        "a name that is not ASCII",
        "GET / HTTP/1.1\r\nHost: a\r\nX\u{e4}: b\r\n\r\n",
        Name,
    ),
    // Hosts.
    ("no host", "GET / HTTP/1.1\r\nX: b\r\n\r\n", NoHost),
    (
        "nothing but a request line",
        "GET / HTTP/1.1\r\n\r\n",
        NoHost,
    ),
    (
        "two hosts",
        "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n",
        TwoHosts,
    ),
    (
        "two equal hosts",
        "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
        TwoHosts,
    ),
    (
        "two hosts in HTTP/1.0",
        "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        TwoHosts,
    ),
    // Request lines.
    (
        "two spaces after the method",
        "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "two spaces before the version",
        "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a tab after the method",
        "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a space after the version",
        "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a space within the target",
        "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a control within the target",
        "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    ("no version", "GET /\r\n\r\n", RequestLine),
    (
        "a version of another major",
        "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a version of two digits",
        "GET / HTTP/1.10\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a version of another minor",
        "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a version in small letters",
        "GET / http/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    (
        "a method in brackets",
        "G(T / HTTP/1.1\r\nHost: a\r\n\r\n",
        RequestLine,
    ),
    // Between requests.
    (
        "a space before a request",
        " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        Garbage,
    ),
    (
        "two empty lines before a request",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        Garbage,
    ),
    (
        "CR before a request",
        "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        BareCr,
    ),
    (
        "more than the length says",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na\0",
        Garbage,
    ),
    ("a TLS greeting", "\u{16}\u{3}\u{1}", Garbage),
    // Chunks.
    (
        "a chunk with a sign",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+1\r\na\r\n0\r\n\r\n",
        ChunkSize,
    ),
    (
        "a chunk behind a space",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n 1\r\na\r\n0\r\n\r\n",
        ChunkSize,
    ),
    (
        "a chunk before a space",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\na\r\n0\r\n\r\n",
        ChunkSize,
    ),
    (
        "a chunk with a prefix",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0x1\r\na\r\n0\r\n\r\n",
        ChunkSize,
    ),
    (
        "a chunk without a size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        ChunkSize,
    ),
    (
        "a chunk of an extension alone",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n;a\r\n",
        ChunkSize,
    ),
    (
        "a chunk that wraps around",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n10000000000000001\r\na\r\n",
        ChunkSize,
    ),
    (
        "LF after a chunk's size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n",
        BareLf,
    ),
    (
        "CR after a chunk's size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\ra\r\n0\r\n\r\n",
        BareCr,
    ),
    (
        "LF in an extension",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;x\n2e\r\na\r\n0\r\n\r\n",
        BareLf,
    ),
    (
        "NUL in an extension",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;\0\r\na\r\n0\r\n\r\n",
        Nul,
    ),
    (
        "a chunk longer than its size",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        ChunkEnd,
    ),
    (
        "a chunk that LF ends",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\n0\r\n\r\n",
        BareLf,
    ),
    (
        "a chunk that CR ends",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r0\r\n\r\n",
        ChunkEnd,
    ),
    (
        "a trailer that is a length",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
        Trailer,
    ),
    (
        "a trailer that is a host",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nHost: b\r\n\r\n",
        Trailer,
    ),
    (
        "a trailer that is folded",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: b\r\n c\r\n\r\n",
        Fold,
    ),
    (
        "a trailer that LF ends",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: b\n\r\n",
        BareLf,
    ),
    (
        "trailers that CR ends",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\rGET",
        BareCr,
    ),
];

/// Unusual, but all programs read them alike. With the number of requests.
pub(crate) const GOOD: &[(&str, &str, u64)] = &[
    ("the least", "GET / HTTP/1.1\r\nHost:\r\n\r\n", 1),
    ("HTTP/1.0", "GET / HTTP/1.0\r\n\r\n", 1),
    (
        "HTTP/1.0 with a length",
        "POST / HTTP/1.0\r\nContent-Length: 2\r\n\r\nab",
        1,
    ),
    (
        "an empty line before it",
        "\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        1,
    ),
    (
        "an empty line between two",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        2,
    ),
    (
        "a method of one's own",
        "M-SEARCH * HTTP/1.1\r\nhOsT: a\r\n\r\n",
        1,
    ),
    (
        "an absolute target",
        "GET http://a/?b#c HTTP/1.1\r\nHost: a\r\n\r\n",
        1,
    ),
    (
        "a target that is not ASCII",
        "GET /\u{e4} HTTP/1.1\r\nHost: a\r\n\r\n",
        1,
    ),
    (
        "spaces around values",
        "GET / HTTP/1.1\r\nHost: \t a \t \r\nX:b\r\nY: \r\nZ:\r\n\r\n",
        1,
    ),
    (
        "a length among spaces",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\t 2 \t\r\n\r\nab",
        1,
    ),
    (
        "a length with zeros",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 002\r\n\r\nab",
        1,
    ),
    (
        "no length",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        2,
    ),
    (
        "a body that looks like a request",
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\n\n\0\r\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        2,
    ),
    (
        "a value that is not ASCII",
        "GET / HTTP/1.1\r\nHost: a\r\nX: \u{e4}\r\n\r\n",
        1,
    ),
    (
        "a header twice",
        "GET / HTTP/1.1\r\nHost: a\r\nCookie: a\r\nCookie: b\r\n\r\n",
        1,
    ),
    (
        "every sign in a name",
        "GET / HTTP/1.1\r\nHost: a\r\n!#$%&'*+-.^_`|~: b\r\n\r\n",
        1,
    ),
    (
        "names that begin alike",
        "GET / HTTP/1.1\r\nHost: a\r\nContent-Length-X: a\r\nX-Transfer-Encoding: b\r\nContent-Lengts: c\r\nHosts: d\r\n\r\n",
        1,
    ),
    (
        "chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0a\r\n0123456789\r\n0\r\n\r\n",
        1,
    ),
    (
        "chunks, said loudly",
        "POST / HTTP/1.1\r\nHost: a\r\nTRANSFER-ENCODING:  Chunked \r\n\r\nA\r\n0123456789\r\n000\r\n\r\n",
        1,
    ),
    (
        "extensions of chunks",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1;a=b;c=\"d\"\r\na\r\n0;e\r\n\r\n",
        1,
    ),
    (
        "trailers",
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: a\r\nY:\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        2,
    ),
    (
        "a body that is expected",
        "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nab",
        1,
    ),
    (
        "three at once",
        "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n",
        3,
    ),
];
