//! The target of requests.

use std::fmt;
use std::net::Ipv6Addr;

/// The target of requests: a parsed URL. It displays as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// The protocol.
    pub scheme: UpstreamScheme,
    /// A name in lower case, or an address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The prefix of the path of every request: empty, or starting with `/` and not ending with it.
    pub prefix: String,
    /// The share of the traffic relative to other upstreams; from 1 to 1000.
    pub weight: u32,
    /// The use of HTTP/2 over TLS. Without TLS, [`UpstreamScheme::H2c`] selects it.
    pub http2: Http2Use,
}

/// The protocol of an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamScheme {
    /// HTTP/1.1 without TLS.
    Http,
    /// HTTP/2 without TLS, with prior knowledge.
    H2c,
    /// TLS.
    Https,
}

/// The use of HTTP/2 over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Http2Use {
    /// The upstream chooses, by ALPN.
    #[default]
    Auto,
    /// HTTP/2 only.
    Always,
    /// HTTP/1.1 only.
    Never,
}

// === impl Upstream ===

impl Upstream {
    /// Returns host and port in the form of a `Host` header: without the default port of the scheme, IPv6 in
    /// brackets.
    pub fn authority(&self) -> String {
        let host = BracketedHost(&self.host);
        if self.port == self.scheme.port() {
            host.to_string()
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

/// Displays the URL without the weight.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            UpstreamScheme::Http => "http",
            UpstreamScheme::H2c => "h2c",
            UpstreamScheme::Https => "https",
        };
        let host = BracketedHost(&self.host);
        write!(f, "{scheme}://{host}:{}{}", self.port, self.prefix)
    }
}

// === impl UpstreamScheme ===

impl UpstreamScheme {
    /// Returns the default port of the scheme.
    pub fn port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https => 443,
        }
    }
}

/// A host in the form that a port can follow.
struct BracketedHost<'a>(&'a str);

impl fmt::Display for BracketedHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.parse::<Ipv6Addr>().is_ok() {
            write!(f, "[{}]", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}
