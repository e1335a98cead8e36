//! Values that are neither words, rates nor durations: addresses, networks, numbers, flags, names.
//!
//! Each function reads one value, reports one error that quotes it, and returns `None`. The caller
//! continues, so that all errors of a configuration are reported together.

use super::reader::ConfigReader;
use super::table::FieldReader;
use ipnet::IpNet;
use std::net::IpAddr;
use tidegate_policy::client::canonical;
use tidegate_policy::text::ConfigFault;
pub(crate) use tidegate_policy::text::scalar::{header_name, method, name, token, whole};

/// Reads an address or a network. IPv4-mapped IPv6 addresses become IPv4, as in requests.
pub(crate) fn network(text: &str) -> Result<IpNet, ConfigFault> {
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

/// Reads the path of a PEM file, without opening the file.
pub(crate) fn pem_path(
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
    use super::{name, network, whole};

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
    fn integers_outside_their_range_are_rejected() {
        assert_eq!(whole("1_000", &(1..=1_000)), Ok(1_000));
        for text in ["0", "1001", "-1", "1.0", "", "ten", "99999999999999999999"] {
            assert!(whole(text, &(1..=1_000)).is_err(), "{text}");
        }
    }
}
