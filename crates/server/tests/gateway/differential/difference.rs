//! Why something differs. Each is known, and on purpose.

/// Why something differs between nginx and the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
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

impl Why {
    /// The reason, for those who read a failure.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Asterisk => {
                "nginx does not know the target `*`, which asks a server about itself (RFC 9112, 3.2.4)"
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
            Self::HopByHop => {
                "nginx passes on what belongs to one connection (RFC 9110, 7.6.1: it must not)"
            }
            Self::Length304 => {
                "hyper says nothing of the length that an answer would have had (RFC 9110, 8.6: it may)"
            }
            Self::NoUri => {
                "hyper refuses signs that a URI has in escapes only (RFC 9112, 3.2: it should)"
            }
            Self::Phrase => {
                "hyper takes a phrase beyond ASCII for none (RFC 9112, 4: nobody should read it)"
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
                "where a target says whom it is for, that counts and not `Host` (RFC 9112, 3.2.2)"
            }
            Self::Trailers => {
                "nginx drops trailers, and the wish for them (RFC 9110, 6.5.1: it may); we pass them on"
            }
            Self::Version => {
                "hyper answers an HTTP/1.0 client as HTTP/1.0 (RFC 9110, 2.5 would have it say 1.1)"
            }
        }
    }
}
