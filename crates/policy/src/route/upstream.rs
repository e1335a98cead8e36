//! Where a request goes.

use crate::config::Secret;
use std::fmt;
use std::net::Ipv6Addr;

/// Where a request goes: a URL, taken apart. It prints as one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// What is spoken there.
    pub scheme: UpstreamScheme,
    /// A name in lower case, or an address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What stands before the path of every request: empty, or with a `/` before it and none after
    /// it.
    pub prefix: String,
    /// How much of the traffic it takes, compared with others; from 1 to 1000.
    pub weight: u32,
    /// Whether HTTP/2 is spoken over TLS. Without TLS, [`UpstreamScheme::H2c`] says so.
    pub http2: Http2Use,
}

/// What is spoken to an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UpstreamScheme {
    /// HTTP/1.1 without TLS.
    Http,
    /// HTTP/2 without TLS, without asking.
    H2c,
    /// TLS.
    Https,
}

/// Whether HTTP/2 is spoken over TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Http2Use {
    /// As the upstream chooses, by ALPN.
    #[default]
    Auto,
    /// HTTP/2 and nothing else.
    Always,
    /// HTTP/1.1 and nothing else.
    Never,
}

/// How TLS is spoken to upstreams. What PEM files hold is read together with the configuration, and
/// never printed: a file of certificates may well have the private key beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UpstreamTls {
    /// Who may have signed the upstream's certificate, in PEM; the system's own where absent.
    pub ca: Option<Secret>,
    /// The name that its certificate must be for, and that it is asked by; the host of the URL where
    /// absent.
    pub server_name: Option<String>,
    /// The certificate to show and its private key.
    pub identity: Option<ClientCertificate>,
}

/// A certificate and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate chain.
    pub cert: Secret,
    /// Its private key.
    pub key: Secret,
}

// === impl Upstream ===

impl Upstream {
    /// Host and port as a `Host` header has them: without the port where the scheme implies it, IPv6
    /// in brackets.
    pub fn authority(&self) -> String {
        let host = Bracketed(&self.host);
        if self.port == self.scheme.port() {
            host.to_string()
        } else {
            format!("{host}:{}", self.port)
        }
    }
}

/// Without its weight.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.scheme {
            UpstreamScheme::Http => "http",
            UpstreamScheme::H2c => "h2c",
            UpstreamScheme::Https => "https",
        };
        let host = Bracketed(&self.host);
        write!(f, "{scheme}://{host}:{}{}", self.port, self.prefix)
    }
}

// === impl Scheme ===

impl UpstreamScheme {
    /// The port where a URL names none.
    pub fn port(self) -> u16 {
        match self {
            Self::Http | Self::H2c => 80,
            Self::Https => 443,
        }
    }
}

/// A host as it stands before a port.
struct Bracketed<'a>(&'a str);

impl fmt::Display for Bracketed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.parse::<Ipv6Addr>().is_ok() {
            write!(f, "[{}]", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}
