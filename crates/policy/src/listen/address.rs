//! Addresses to listen on: an IP address and a port, or a unix socket.

use crate::text::ConfigFault;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The longest path of a unix socket that every system accepts, in bytes.
const PATH_MAX: usize = 103;

/// The default permissions of a unix socket: its owner and its group may connect.
const MODE: u32 = 0o660;

/// An address to listen on.
///
/// ```
/// use tidegate_policy::listen::ListenAddress;
///
/// let socket: ListenAddress = "unix:/run/tidegate/grpc.sock".parse()?;
/// assert_eq!(socket.to_string(), "unix:/run/tidegate/grpc.sock?mode=660");
/// # Ok::<(), String>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAddress {
    /// An IP address and a port; port 0 means any free port.
    Tcp(SocketAddr),
    /// A unix socket.
    Unix {
        /// The path of its file.
        path: String,
        /// The permissions of its file.
        mode: u32,
    },
}

impl ListenAddress {
    /// Returns true if only programs on this machine can reach the address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix { .. } => true,
        }
    }

    /// Returns the IP address and port, or `None` for a unix socket.
    pub fn tcp(&self) -> Option<SocketAddr> {
        match self {
            Self::Tcp(address) => Some(*address),
            Self::Unix { .. } => None,
        }
    }

    /// Returns true if two listeners cannot use these addresses at the same time.
    pub fn clashes(&self, other: &Self) -> bool {
        match (self, other) {
            // Port 0 is a different port for each listener.
            (Self::Tcp(one), Self::Tcp(other)) => one == other && one.port() != 0,
            (Self::Unix { path, .. }, Self::Unix { path: other, .. }) => path == other,
            _ => false,
        }
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix { path, mode } => write!(f, "unix:{path}?mode={mode:o}"),
        }
    }
}

impl From<SocketAddr> for ListenAddress {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        parse(text).map_err(ConfigFault::into_sentence)
    }
}

/// Reads an address to listen on.
///
/// # Errors
///
/// A message that quotes `text`, and an example.
pub fn parse(text: &str) -> Result<ListenAddress, ConfigFault> {
    let Some(socket) = text.strip_prefix("unix:") else {
        return listen_address(text).map(ListenAddress::Tcp);
    };
    let (path, mode) = match socket.split_once('?') {
        Some((path, setting)) => (path, mode(setting)?),
        None => (socket, MODE),
    };
    let is_fit = path.starts_with('/') && !path.ends_with('/') && !path.contains('\0');
    if !is_fit || path.len() > PATH_MAX {
        let message = format!(
            "{} is not the path of a unix socket",
            ConfigFault::quote(path)
        );
        let help = format!(
            "expected an absolute path of up to {PATH_MAX} bytes, for example `unix:/run/tidegate/http.sock`"
        );
        return Err(ConfigFault::new(message).help(help));
    }
    Ok(ListenAddress::Unix {
        path: path.to_owned(),
        mode,
    })
}

/// Reads an IP address and a port. `localhost:8080` is `127.0.0.1:8080`; `:8080` is `[::]:8080`, which
/// is every address, including IPv4.
fn listen_address(text: &str) -> Result<SocketAddr, ConfigFault> {
    let (host, port) = match text.rsplit_once(':') {
        Some(("localhost", port)) => (Some(IpAddr::V4(Ipv4Addr::LOCALHOST)), port),
        Some(("", port)) => (Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED)), port),
        _ => (None, text.trim_start_matches("*:")),
    };
    match (host, port.parse::<u16>()) {
        (Some(host), Ok(port)) => return Ok(SocketAddr::new(host, port)),
        (None, Ok(port)) => {
            let message = format!("{} has no address to listen on", ConfigFault::quote(text));
            let help = format!(
                "write localhost:{port} for this machine only, or :{port} for every address"
            );
            return Err(ConfigFault::new(message).help(help));
        }
        _ => {}
    }
    text.parse().map_err(|_| {
        let message = format!(
            "{} is not an address to listen on",
            ConfigFault::quote(text)
        );
        ConfigFault::new(message).help(
            "expected an IP address and a port, for example `127.0.0.1:8080` or `[::1]:8080`; \
             `localhost:8080` for this machine only, or `:8080` for every address",
        )
    })
}

/// Reads `mode=660`.
fn mode(setting: &str) -> Result<u32, ConfigFault> {
    let digits = setting.strip_prefix("mode=");
    let digits = digits.filter(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    let mode = digits.and_then(|digits| u32::from_str_radix(digits, 8).ok());
    mode.filter(|mode| *mode <= 0o777).ok_or_else(|| {
        let message = format!("{} is not a setting of a unix socket", ConfigFault::quote(setting));
        ConfigFault::new(message).help(
            "write its permissions in octal digits, for example `unix:/run/tidegate/http.sock?mode=660`",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_as_they_are_read() {
        for (text, shown) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("unix:/run/a.sock", "unix:/run/a.sock?mode=660"),
            ("unix:/run/a.sock?mode=0600", "unix:/run/a.sock?mode=600"),
            ("unix:/run/a.sock?mode=777", "unix:/run/a.sock?mode=777"),
        ] {
            let address: ListenAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert_eq!(shown.parse(), Ok(address));
        }
        for text in [
            "unix:",
            "unix:a.sock",
            "unix:/run/",
            "unix:/run/a?mode=",
            "unix:/run/a?mode=8",
            "unix:/run/a?mode=1777",
            "unix:/run/a?mode=+60",
            "unix:/run/a?owner=root",
            &format!("unix:/{}", "a".repeat(PATH_MAX)),
        ] {
            assert!(text.parse::<ListenAddress>().is_err(), "{text}");
        }
    }

    #[test]
    fn listening_needs_an_address_and_a_port() {
        for (text, read) in [
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("localhost:80", "127.0.0.1:80"),
            (":80", "[::]:80"),
            ("[::]:80", "[::]:80"),
            ("0.0.0.0:0", "0.0.0.0:0"),
        ] {
            assert_eq!(listen_address(text).unwrap().to_string(), read, "{text}");
        }
        for text in [
            "80",
            "*:80",
            "example.com:80",
            "127.0.0.1",
            "localhost:http",
            "localhost",
            ":",
            "::80",
            "::1:80",
            ":65536",
        ] {
            assert!(listen_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn two_listeners_cannot_share_a_port_or_a_socket() {
        let clash = |one: &str, other: &str| parse(one).unwrap().clashes(&parse(other).unwrap());
        assert!(clash("127.0.0.1:1", "127.0.0.1:1"));
        assert!(!clash("127.0.0.1:0", "127.0.0.1:0"));
        assert!(clash("unix:/a", "unix:/a?mode=600"));
        assert!(!clash("unix:/a", "unix:/b"));
    }
}
