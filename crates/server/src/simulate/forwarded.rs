//! The client behind proxies.

use std::net::IpAddr;
use tidegate_policy::config::ClientSettings;

/// How many addresses of `X-Forwarded-For` are looked at, from the last.
const HOPS_MAX: usize = 32;

/// The client, as far as trusted proxies tell: going back from the address that was seen, the first
/// that is not one of theirs. Where one of them names something that is no address, it is itself
/// as far as anybody can tell.
pub(super) fn client(seen: IpAddr, forwarded: &str, settings: &ClientSettings) -> IpAddr {
    let is_trusted = |address: IpAddr| {
        let address = address.to_canonical();
        let mut proxies = settings.trusted_proxies.iter();
        proxies.any(|network| network.contains(&address))
    };
    let mut client = seen;
    for hop in forwarded.rsplit(',').take(HOPS_MAX) {
        if !is_trusted(client) {
            break;
        }
        match hop.trim().parse() {
            Ok(address) => client = address,
            Err(_) => break,
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trusted_proxies_are_believed() {
        let settings = ClientSettings::default();
        for (seen, forwarded, expected) in [
            ("192.0.2.1", "198.51.100.1", "192.0.2.1"),
            ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
            ("::ffff:127.0.0.1", "198.51.100.1", "198.51.100.1"),
            (
                "127.0.0.1",
                "203.0.113.9, 198.51.100.1, 127.0.0.9",
                "198.51.100.1",
            ),
            ("127.0.0.1", "198.51.100.1, nonsense", "127.0.0.1"),
            ("127.0.0.1", "", "127.0.0.1"),
        ] {
            let seen = seen.parse().expect("an address");
            let client = client(seen, forwarded, &settings);
            assert_eq!(client.to_string(), expected, "{forwarded}");
        }
    }
}
