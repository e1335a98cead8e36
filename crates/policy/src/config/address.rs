//! Addresses to listen on: an IP address and a port, or a unix socket.

use super::fault::ConfigFault;
use super::scalar::listen_address;
use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

/// The longest path of a unix socket that every system accepts, in bytes.
const PATH_MAX: usize = 103;

/// The default permissions of a unix socket: its owner and its group may connect.
const MODE: u32 = 0o660;

/// An address to listen on.
///
/// ```
/// use tidegate_policy::config::ListenAddress;
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
    pub(super) fn clashes(&self, other: &Self) -> bool {
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
pub(super) fn parse(text: &str) -> Result<ListenAddress, ConfigFault> {
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
    fn two_listeners_cannot_share_a_port_or_a_socket() {
        let clash = |one: &str, other: &str| parse(one).unwrap().clashes(&parse(other).unwrap());
        assert!(clash("127.0.0.1:1", "127.0.0.1:1"));
        assert!(!clash("127.0.0.1:0", "127.0.0.1:0"));
        assert!(clash("unix:/a", "unix:/a?mode=600"));
        assert!(!clash("unix:/a", "unix:/b"));
    }
}
