//! Servers: the addresses that they listen on, their names, and which of several nginx chooses.
//!
//! nginx chooses a server by the address on which a request arrives, and then by its host. Tidegate knows only
//! the host. The limits of a server may replace those of another only if nginx never chooses the other for
//! the same hosts, on any of its addresses.

use super::syntax::NginxDirective;
use crate::scopes::hosts_overlap;
use std::collections::BTreeSet;

/// The address of a server without `listen`.
const ADDRESS: &str = "*:80";

/// A `listen`.
#[derive(Debug)]
struct NginxListen {
    address: String,
    is_default: bool,
}

/// A server.
#[derive(Debug)]
pub(super) struct NginxServer<'d> {
    pub(super) names: Vec<&'d str>,
    listens: Vec<NginxListen>,
    /// True if `return` answers all its requests.
    pub(super) returns: bool,
}

impl<'d> NginxServer<'d> {
    /// Returns the only server of a file of the `http` level.
    pub(super) fn only() -> Self {
        Self {
            names: Vec::new(),
            listens: vec![NginxListen {
                address: ADDRESS.to_owned(),
                is_default: true,
            }],
            returns: false,
        }
    }

    /// Reads the directives of a server.
    pub(super) fn read(inside: &[&'d NginxDirective]) -> Self {
        let all = |name: &'static str| inside.iter().filter(move |it| it.name == name);
        let names = all("server_name").flat_map(|it| &it.words);
        let names = names.map(String::as_str);
        let mut listens: Vec<NginxListen> = all("listen").map(|it| NginxListen::read(it)).collect();
        if listens.is_empty() {
            listens.push(NginxListen {
                address: ADDRESS.to_owned(),
                is_default: false,
            });
        }
        Self {
            names: names.filter(|name| !matches!(*name, "" | "_")).collect(),
            listens,
            returns: all("return").next().is_some(),
        }
    }

    /// Returns true if requests for unknown hosts are this server's, on any of its addresses.
    pub(super) fn is_default(&self) -> bool {
        self.listens.iter().any(|it| it.is_default)
    }

    /// Returns its names in the syntax of conditions, except for those that conditions cannot express.
    pub(super) fn hosts(&self) -> Vec<String> {
        let names = self.names.iter().filter(|name| is_expressible(name));
        let hosts = names.flat_map(|name| match name.strip_prefix('.') {
            Some(domain) => vec![
                domain.to_ascii_lowercase(),
                format!("*.{domain}").to_ascii_lowercase(),
            ],
            None => vec![name.to_ascii_lowercase()],
        });
        hosts.collect()
    }

    fn is_at(&self, address: &str) -> bool {
        self.listens.iter().any(|it| it.address == address)
    }
}

/// Returns true if a condition can have this server name: it is not a regular expression and does not end
/// with a wildcard.
pub(super) fn is_expressible(name: &str) -> bool {
    !name.starts_with('~') && !name.ends_with(".*")
}

impl NginxListen {
    fn read(it: &NginxDirective) -> Self {
        let has = |wanted: &str| it.words.iter().any(|word| word == wanted);
        let mut address = address(it.first());
        if has("quic") {
            address.push_str("/udp");
        }
        Self {
            address,
            is_default: has("default_server") || has("default"),
        }
    }
}

/// Returns an address in one form: `80`, `*:80` and `0.0.0.0:80` are the same.
fn address(text: &str) -> String {
    let text = text.to_ascii_lowercase();
    if text.starts_with("unix:") {
        return text;
    }
    let is_port = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '-');
    let (host, port) = match text.rsplit_once(':') {
        _ if is_port => ("*", text.as_str()),
        // The colons of `[::1]` are its own.
        Some((host, port)) if !port.ends_with(']') => (host, port),
        _ => (text.as_str(), "80"),
    };
    let host = if host == "0.0.0.0" { "*" } else { host };
    format!("{host}:{port}")
}

/// Makes the first server of every address its default if none is declared. Servers that only redirect come
/// last: requests for unknown hosts rather get limits than none.
pub(super) fn choose_defaults(servers: &mut [NginxServer<'_>]) {
    let all = || servers.iter().flat_map(|it| &it.listens);
    let declared = all().filter(|it| it.is_default);
    let mut done: BTreeSet<String> = declared.map(|it| it.address.clone()).collect();
    for returns in [false, true] {
        for server in servers.iter_mut().filter(|it| it.returns == returns) {
            for listen in &mut server.listens {
                listen.is_default |= done.insert(listen.address.clone());
            }
        }
    }
}

/// Returns true if nginx chooses the server `first`, or a third one, rather than `second` for all requests for
/// the hosts of `first`, regardless of the address on which they arrive.
pub(super) fn is_before(servers: &[NginxServer<'_>], first: usize, second: usize) -> bool {
    let (Some(one), Some(two)) = (servers.get(first), servers.get(second)) else {
        return false;
    };
    let hosts = one.hosts();
    // A default server has all hosts, but on its own addresses only.
    if one.is_default() || hosts.is_empty() {
        return false;
    }
    let names = two.hosts();
    // True if nginx chooses `name` of another server rather than any name of the second one.
    let wins = |name: &str, host: &str| {
        let mut names = names.iter().filter(|it| hosts_overlap(it, host));
        names.all(|it| is_narrower(name, it))
    };
    if !hosts.iter().all(|host| wins(host, host)) {
        return false;
    }
    let others = || servers.iter().enumerate().filter(|(at, _)| *at != second);
    let is_taken = |address: &str, host: &String| {
        let mut others = others().filter(|(_, it)| it.is_at(address));
        others.any(|(_, it)| {
            let mut hosts = it.hosts().into_iter();
            hosts.any(|name| covers(&name, host) && wins(&name, host))
        })
    };
    let mut listens = two.listens.iter().map(|it| it.address.as_str());
    listens.all(|address| one.is_at(address) || hosts.iter().all(|host| is_taken(address, host)))
}

/// Returns true if nginx chooses `host` rather than `other` where both match: exact names come first, then the
/// longest wildcard.
fn is_narrower(host: &str, other: &str) -> bool {
    let rank = |name: &str| (!name.starts_with('*'), name.len());
    rank(host) > rank(other)
}

/// Returns true if all hosts of a name or wildcard are those of another.
fn covers(outer: &str, inner: &str) -> bool {
    let ending = outer.strip_prefix('*');
    outer == inner || ending.is_some_and(|ending| inner.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::address;

    #[test]
    fn addresses_have_one_form() {
        for (text, expected) in [
            ("80", "*:80"),
            ("*:80", "*:80"),
            ("0.0.0.0:443", "*:443"),
            ("127.0.0.1", "127.0.0.1:80"),
            ("127.0.0.1:8081", "127.0.0.1:8081"),
            ("[::]:80", "[::]:80"),
            ("[::1]", "[::1]:80"),
            ("LOCALHOST", "localhost:80"),
            ("8000-8010", "*:8000-8010"),
            ("unix:/run/nginx.sock", "unix:/run/nginx.sock"),
        ] {
            assert_eq!(address(text), expected, "{text}");
        }
    }
}
