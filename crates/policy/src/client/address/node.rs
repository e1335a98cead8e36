//! Addresses in the formats that proxies write, with or without a port.

use std::borrow::Cow;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the address in `192.0.2.1`, `192.0.2.1:4711`, `2001:db8::1`, `[2001:db8::1]` or
/// `[2001:db8::1]:4711`; `None` for anything else, such as `unknown` and `_hidden`.
pub(super) fn node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    // Nearly always there is nothing to strip.
    let address = text
        .parse()
        .ok()
        .or_else(|| parse_decorated(&without_zone(text)));
    address.map(|address: IpAddr| address.to_canonical())
}

/// Parses an address with brackets, a port, or both.
fn parse_decorated(text: &str) -> Option<IpAddr> {
    if let Some(text) = text.strip_prefix('[') {
        let (address, port) = text.split_once(']')?;
        let address = address.parse::<Ipv6Addr>().ok()?;
        return is_port(port).then_some(IpAddr::V6(address));
    }
    match text.split_once(':') {
        Some((address, behind)) if !behind.contains(':') => {
            let port = text.strip_prefix(address)?;
            let address = address.parse::<Ipv4Addr>().ok()?;
            is_port(port).then_some(IpAddr::V4(address))
        }
        // No port: the address had a zone.
        _ => text.parse().ok(),
    }
}

/// Returns the text without the zone of a link-local address, `%eth0`, which some proxies write. It refers to
/// an interface of the proxy.
fn without_zone(text: &str) -> Cow<'_, str> {
    let Some((address, zone)) = text.split_once('%') else {
        return Cow::Borrowed(text);
    };
    match zone.split_once(']') {
        Some((_, behind)) => Cow::Owned(format!("{address}]{behind}")),
        None => Cow::Borrowed(address),
    }
}

/// Returns true if the text is empty, or a colon and a port. The port may be obfuscated as in RFC 7239, 6.3.
fn is_port(text: &str) -> bool {
    let Some(port) = text.strip_prefix(':') else {
        return text.is_empty();
    };
    match port.strip_prefix('_') {
        Some(hidden) => {
            let belongs = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            !hidden.is_empty() && hidden.chars().all(belongs)
        }
        None => port.bytes().all(|byte| byte.is_ascii_digit()) && port.parse::<u16>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::node;

    #[test]
    fn addresses_may_have_ports() {
        for (text, address) in [
            ("192.0.2.1", "192.0.2.1"),
            ("192.0.2.1:4711", "192.0.2.1"),
            ("192.0.2.1:_p0rt", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]", "2001:db8::1"),
            ("[2001:db8::1]:4711", "2001:db8::1"),
            ("::ffff:192.0.2.1", "192.0.2.1"),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1"),
            ("fe80::1%eth0", "fe80::1"),
            ("[fe80::1%eth0]:80", "fe80::1"),
        ] {
            assert_eq!(node(text.as_bytes()), address.parse().ok(), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_address() {
        for text in [
            "",
            "unknown",
            "_hidden",
            "192.0.2",
            "192.0.2.01",
            "192.0.2.1:",
            "192.0.2.1:99999",
            "192.0.2.1:+80",
            "192.0.2.1:80:80",
            "192.0.2.1/32",
            "[192.0.2.1]",
            "[2001:db8::1",
            "[2001:db8::1]80",
            "[2001:db8::1]:",
            "2001:db8::1]:80",
            "[fe80::1%eth0",
            "example.com",
            "192.0.2.1 ",
        ] {
            assert_eq!(node(text.as_bytes()), None, "{text}");
        }
        assert_eq!(node(b"192.0.2.\xff"), None);
    }
}
