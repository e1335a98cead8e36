//! Reasons for differences. Each is known and intended.

/// A reason for a difference between nginx and the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DifferenceReason {
    Asterisk,
    Connect,
    Continue,
    Counted,
    Escapes,
    Fragment,
    HopByHop,
    Length304,
    NoUri,
    Phrase,
    Steps,
    TargetFirst,
    Trailers,
    Underscore,
    Version,
}

impl DifferenceReason {
    /// Returns the reason as text for a failure.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Asterisk => {
                "nginx does not support the target `*`, which is about the server itself (RFC 9112, 3.2.4)"
            }
            Self::Connect => {
                "neither is a proxy for CONNECT; nginx calls it a bad request, and we a method that is \
                 not passed on (RFC 9110, 15.5.6)"
            }
            Self::Continue => {
                "nginx asks for a body where none follows; hyper does not (RFC 9110, 10.1.1: clients \
                 must not expect it there)"
            }
            Self::Counted => {
                "nginx gives a length to a body in chunks that was read at once; we pass on chunks as \
                 they come (RFC 9112, 6.3: both mean the same)"
            }
            Self::Escapes => {
                "nginx refuses paths that it cannot decode; we pass on what was sent, and know it by \
                 one spelling, in which such an escape is itself"
            }
            Self::Fragment => "a fragment is no part of a target (RFC 9112, 3.2); hyper drops it",
            Self::HopByHop => "nginx forwards hop-by-hop headers (RFC 9110, 7.6.1: it must not)",
            Self::Length304 => {
                "hyper omits the length that a response to GET would have (RFC 9110, 8.6: it may)"
            }
            Self::NoUri => {
                "hyper rejects characters that a URI has in escapes only (RFC 9112, 3.2: it should)"
            }
            Self::Phrase => {
                "hyper drops a reason phrase beyond ASCII (RFC 9112, 4: clients should ignore it)"
            }
            Self::Steps => {
                "a path with `.` or `..` is sent as it was decided, for not every upstream resolves them; \
                 nginx decides by one and sends the other"
            }
            Self::Underscore => {
                "a name with an underscore is dropped, as nginx does unless told: CGI takes it for a \
                 hyphen, and so for another field"
            }
            Self::TargetFirst => {
                "the host of an absolute target takes precedence over `Host` (RFC 9112, 3.2.2)"
            }
            Self::Trailers => {
                "nginx drops trailers and `TE` (RFC 9110, 6.5.1: it may); Tidegate forwards them"
            }
            Self::Version => {
                "hyper replies to an HTTP/1.0 client with HTTP/1.0 (RFC 9110, 2.5 recommends 1.1)"
            }
        }
    }
}
