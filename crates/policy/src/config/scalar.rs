//! Values that are neither words, rates nor durations.

use super::duration;
use super::fault::ConfigFault;
use super::reader::ConfigReader;
use super::table::FieldReader;
use crate::client::canonical;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::RangeInclusive;

/// The longest name, in bytes: names appear in headers, metrics and keys.
const NAME_MAX: usize = 64;

/// The longest method or header name, in bytes.
const TOKEN_MAX: usize = 256;

/// Reads the name of a policy, a limit or a band.
pub(crate) fn name(text: &str) -> Result<String, ConfigFault> {
    let help = "use up to 64 letters, digits, `-`, `_` and `.`, beginning with a letter or digit";
    let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let starts_well = text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if starts_well && text.len() <= NAME_MAX && text.chars().all(belongs) {
        Ok(text.to_owned())
    } else {
        Err(ConfigFault::new(format!("{} cannot be a name", ConfigFault::quote(text))).help(help))
    }
}

/// Reads a whole number within a range.
pub(super) fn whole(text: &str, range: &RangeInclusive<u64>) -> Result<u64, ConfigFault> {
    let number = duration::number(text);
    number
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let quoted = ConfigFault::quote(text);
            match (*range.start(), *range.end()) {
                (_, u64::MAX) => ConfigFault::new(format!("{quoted} is not a whole number")),
                (from, to) => ConfigFault::new(format!(
                    "{quoted} is not a whole number from {from} to {to}"
                )),
            }
        })
}

/// Reads the name of a header and returns it in lower case.
pub(crate) fn header_name(text: &str) -> Result<String, ConfigFault> {
    if is_token(text) {
        Ok(text.to_ascii_lowercase())
    } else {
        let message = format!(
            "{} cannot be the name of a header",
            ConfigFault::quote(text)
        );
        Err(ConfigFault::new(message).help("for example `X-Tier`"))
    }
}

/// Reads a method and returns it in upper case.
pub(super) fn method(text: &str) -> Result<String, ConfigFault> {
    if is_token(text) && text != "*" {
        Ok(text.to_ascii_uppercase())
    } else {
        Err(
            ConfigFault::new(format!("{} cannot be a method", ConfigFault::quote(text)))
                .help("for example `GET`; leave `method` out for any method"),
        )
    }
}

/// Reads a token (RFC 9110).
pub(super) fn token(text: &str) -> Option<String> {
    is_token(text).then(|| text.to_owned())
}

/// Returns true if `text` is a token (RFC 9110) of at most [`TOKEN_MAX`] bytes.
fn is_token(text: &str) -> bool {
    let belongs = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.len() <= TOKEN_MAX && text.bytes().all(belongs)
}

/// Reads an address or a network. IPv4-mapped IPv6 addresses become IPv4, as in requests.
pub(super) fn network(text: &str) -> Result<IpNet, ConfigFault> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(address.to_canonical()));
    }
    let network: IpNet = text.parse().map_err(|_| {
        let message = format!(
            "{} is neither an address nor a network",
            ConfigFault::quote(text)
        );
        ConfigFault::new(message)
            .help("for example `203.0.113.7`, `203.0.113.0/24` or `2001:db8::/32`")
    })?;
    if network.trunc() != network {
        let message = format!(
            "{} has bits set beyond its prefix",
            ConfigFault::quote(text)
        );
        let help = format!(
            "did you mean `{}` or `{}`?",
            network.trunc(),
            network.addr()
        );
        return Err(ConfigFault::new(message).help(help));
    }
    Ok(canonical(network))
}

/// Reads an address to listen on. `localhost:8080` is `127.0.0.1:8080`; `:8080` is `[::]:8080`, which
/// is every address, including IPv4.
pub(super) fn listen_address(text: &str) -> Result<SocketAddr, ConfigFault> {
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

/// Reads the path of a PEM file, without opening the file.
pub(super) fn pem_path(
    reader: &mut ConfigReader<'_>,
    fields: &FieldReader<'_>,
    name: &str,
) -> Option<String> {
    reader.parse(&fields.get(name)?, |path| match path {
        "" => {
            Err(ConfigFault::new(format!("`{name}` is empty"))
                .help("expected the path of a PEM file"))
        }
        path => Ok(path.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::{listen_address, name, network, whole};

    #[test]
    fn names_are_plain() {
        for text in ["a", "per-client", "v1.2_x", "0", &"x".repeat(64)] {
            assert!(name(text).is_ok(), "{text}");
        }
        for text in ["", "-a", ".", "a b", "a/b", "ä", "a:b", &"x".repeat(65)] {
            assert!(name(text).is_err(), "{text}");
        }
    }

    #[test]
    fn networks_are_exact() {
        for (text, read) in [
            ("203.0.113.0/24", "203.0.113.0/24"),
            ("203.0.113.7", "203.0.113.7/32"),
            ("::1", "::1/128"),
            ("::ffff:10.0.0.0/104", "10.0.0.0/8"),
            ("::ffff:10.0.0.1", "10.0.0.1/32"),
            ("::/0", "::/0"),
        ] {
            assert_eq!(network(text).unwrap().to_string(), read);
        }
        for text in [
            "203.0.113.7/24",
            "203.0.113.0/33",
            "example.com",
            "",
            "10.0.0",
        ] {
            assert!(network(text).is_err(), "{text}");
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
    fn whole_numbers_keep_to_their_range() {
        assert_eq!(whole("1_000", &(1..=1_000)), Ok(1_000));
        for text in ["0", "1001", "-1", "1.0", "", "ten", "99999999999999999999"] {
            assert!(whole(text, &(1..=1_000)).is_err(), "{text}");
        }
    }
}
