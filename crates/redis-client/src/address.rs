//! The address of a server: host and port.

use std::fmt;

/// The address of a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Address {
    /// A name or an address; IPv6 without brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Address {
    /// An address.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        let host = host.into();
        let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
        Self {
            host: bare.map(str::to_owned).unwrap_or(host),
            port,
        }
    }
}

/// `host:port`, IPv6 in brackets.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_show_ipv6_in_brackets() {
        assert_eq!(Address::new("::1", 6379).to_string(), "[::1]:6379");
        assert_eq!(Address::new("[::1]", 6379), Address::new("::1", 6379));
        assert_eq!(Address::new("redis", 1).to_string(), "redis:1");
    }
}
