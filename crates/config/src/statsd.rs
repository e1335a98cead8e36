//! Statistics of limits for a statsd server (`statsd`): their destination and their names.

use std::time::Duration;
use tidegate_policy::matching::{DescriptorPattern, EntryPattern, ValuePattern, is_secret_name};
use tidegate_policy::policy::Policy;

/// The statsd server, the interval, and the format (`statsd`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statsd {
    /// True if statistics are sent.
    pub enabled: bool,
    /// Host and port of the server, such as `127.0.0.1:8125`.
    pub address: String,
    /// The protocol that carries them.
    pub protocol: StatsdProtocol,
    /// The format that the server reads.
    pub format: Format,
    /// The time between two flushes.
    pub interval: Duration,
    /// The beginning of every name.
    pub prefix: String,
    /// Tags of every statistic; names and values.
    pub tags: Vec<(String, String)>,
}

/// The protocol that carries statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StatsdProtocol {
    /// Datagrams, which may be lost unnoticed.
    #[default]
    Udp,
    /// One connection, which stays open.
    Tcp,
}

/// The format of tags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Plain statsd: tags are part of the name, `name.__tag=value`, as gostats writes them.
    #[default]
    Statsd,
    /// `DogStatsD`: tags follow the value, `name:1|c|#tag:value`.
    Dogstatsd,
}

impl Statsd {
    /// The default address.
    pub const ADDRESS: &str = "127.0.0.1:8125";
    /// The default interval.
    pub const INTERVAL: Duration = Duration::from_secs(10);
    /// The shortest interval.
    pub const SHORTEST: Duration = Duration::from_secs(1);
    /// The longest interval.
    pub const LONGEST: Duration = Duration::from_secs(3_600);
    /// The default beginning of names.
    pub const PREFIX: &str = "tidegate.rate_limit";
    /// The beginning of names that envoyproxy/ratelimit uses.
    pub const ENVOY_PREFIX: &str = "ratelimit.service.rate_limit";

    /// Returns the settings that envoyproxy/ratelimit has by default: its names, to `localhost:8125` over
    /// TCP, every ten seconds.
    pub fn envoy() -> Self {
        Self {
            address: "localhost:8125".to_owned(),
            protocol: StatsdProtocol::Tcp,
            prefix: Self::ENVOY_PREFIX.to_owned(),
            ..Self::default()
        }
    }

    /// Returns the name of a limit in statistics, by its number: the domain of its policy, and the path of
    /// descriptor entries that leads to the limit, as in envoyproxy/ratelimit. A limit without such a path,
    /// or with a path that may contain a secret, has its own name instead.
    ///
    /// ```
    /// use tidegate_config::Config;
    /// use tidegate_config::statsd::Statsd;
    ///
    /// let config = Config::from_yaml("
    /// policies:
    ///   - name: edge
    ///     limits:
    ///       - { name: a, match: { descriptor: [kind: mail, to] }, key: descriptor:to, rate: 5/day }
    ///       - { name: per-client, key: ip, rate: 5/s }
    /// ")?;
    /// let policy = &config.policies[0];
    /// let names = [0, 1].map(|limit| Statsd::key(policy, limit));
    /// assert_eq!(names, ["edge.kind_mail.to", "edge.per-client"]);
    /// # Ok::<(), tidegate_config::ConfigErrors>(())
    /// ```
    pub fn key(policy: &Policy, limit: usize) -> String {
        sanitise(&Self::full_key(policy, limit))
    }

    /// Returns the same name without replacing any characters.
    pub fn full_key(policy: &Policy, limit: usize) -> String {
        let domain = if policy.is_joined() {
            policy.origin(limit)
        } else {
            policy.domain()
        };
        let path = match policy.limit(limit).map(|it| it.conditions.as_slice()) {
            Some([only]) => only.descriptor.as_ref().and_then(path),
            _ => None,
        };
        let name = policy.limit(limit).map_or("", |limit| limit.name.as_str());
        format!("{domain}.{}", path.as_deref().unwrap_or(name))
    }
}

impl Default for Statsd {
    fn default() -> Self {
        Self {
            enabled: true,
            address: Self::ADDRESS.to_owned(),
            protocol: StatsdProtocol::default(),
            format: Format::default(),
            interval: Self::INTERVAL,
            prefix: Self::PREFIX.to_owned(),
            tags: Vec::new(),
        }
    }
}

/// Returns the entries of an exact pattern, as `key_value.key`, or `None` if one of them may be a secret.
fn path(pattern: &DescriptorPattern) -> Option<String> {
    let DescriptorPattern::Exactly(entries) = pattern else {
        return None;
    };
    let steps: Option<Vec<String>> = entries.iter().map(step).collect();
    Some(steps?.join("."))
}

fn step(entry: &EntryPattern) -> Option<String> {
    let EntryPattern { name, value } = entry;
    let value = match value {
        ValuePattern::Any => return Some(name.clone()),
        ValuePattern::Is(value) => value.as_str(),
        ValuePattern::Like(wildcard) => wildcard.as_str(),
    };
    (!is_secret_name(name)).then(|| format!("{name}_{value}"))
}

/// Replaces characters that would end a name, and the dots of IPv4 addresses, by `_`, as
/// envoyproxy/ratelimit does. Control characters are replaced as well: lines end with one.
fn sanitise(name: &str) -> String {
    let replaced = |c: char| match c {
        ':' | '|' => '_',
        c if c.is_control() => '_',
        c => c,
    };
    let name: String = name.chars().map(replaced).collect();
    let mut clean = String::with_capacity(name.len());
    let mut rest = name.as_str();
    while let Some(first) = rest.chars().next() {
        let address = address_length(rest);
        let length = address.unwrap_or_else(|| first.len_utf8());
        let Some((head, tail)) = rest.split_at_checked(length) else {
            break;
        };
        match address {
            Some(_) => clean.push_str(&head.replace('.', "_")),
            None => clean.push_str(head),
        }
        rest = tail;
    }
    clean
}

/// Returns the length of the IPv4 address that `text` begins with: four groups of one to three digits.
fn address_length(text: &str) -> Option<usize> {
    let mut length = 0_usize;
    for group in 0..4 {
        let rest = text.get(length..)?;
        let digits = rest.bytes().take(3).take_while(u8::is_ascii_digit).count();
        if digits == 0 {
            return None;
        }
        length = length.saturating_add(digits);
        if group < 3 {
            text.get(length..)?.strip_prefix('.')?;
            length = length.saturating_add(1);
        }
    }
    Some(length)
}

#[cfg(test)]
mod tests {
    use super::{Statsd, sanitise};
    use crate::config::Config;

    #[test]
    fn names_are_sanitized_as_in_envoyproxy_ratelimit() {
        for (name, expected) in [
            ("edge.path_/a b", "edge.path_/a b"),
            ("edge:8080.key_a|b", "edge_8080.key_a_b"),
            ("edge.ip_10.0.0.1", "edge.ip_10_0_0_1"),
            ("10.0.0.1.10.0.0.2.x", "10_0_0_1.10_0_0_2.x"),
            ("1.2.3.4567", "1_2_3_4567"),
            ("1234.5.6.7", "1234_5_6_7"),
            ("1.2.3", "1.2.3"),
            ("1.2.3.4.5", "1_2_3_4.5"),
            ("version_1.2.3.x", "version_1.2.3.x"),
            ("größe_1.1.1.1\n", "größe_1_1_1_1_"),
        ] {
            assert_eq!(sanitise(name), expected, "{name}");
        }
    }

    #[test]
    fn a_secret_in_a_path_never_appears_in_a_name() {
        let config = Config::from_yaml(
            "policies: [{ name: edge, domain: shop/http, limits: [\
             { name: a, match: { descriptor: [authorization: hunter2] }, rate: 1/s },\
             { name: b, match: { descriptor: [authorization] }, rate: 1/s },\
             { name: c, match: { descriptor: [path: '/a*'] }, rate: 1/s },\
             { name: d, match: [{ path: /x }, { path: /y }], rate: 1/s }] }]",
        );
        let config = config.unwrap();
        let policy = config.policies.first().unwrap();
        let names = [0, 1, 2, 3, 4].map(|limit| Statsd::key(policy, limit));
        let expected = ["a", "authorization", "path_/a*", "d", "override"];
        assert_eq!(names, expected.map(|name| format!("shop/http.{name}")));
    }
}
