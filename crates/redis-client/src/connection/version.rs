//! The oldest supported servers.

use std::fmt;

/// A server and its version, from `INFO server`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeVersion {
    product: &'static str,
    number: (u32, u32, u32),
}

impl NodeVersion {
    /// Reads `INFO server`. Valkey calls itself Redis 7.2.4 there, and reports its own version in another
    /// field.
    pub(super) fn parse(info: &str) -> Option<Self> {
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
        };
        let (product, text) = match field("valkey_version") {
            Some(text) => ("Valkey", text),
            None => ("Redis", field("redis_version")?),
        };
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        let mut next = || parts.next().unwrap_or(0);
        Some(Self {
            product,
            number: (next(), next(), next()),
        })
    }

    /// The oldest that is supported, if this one is older.
    pub(super) fn too_old_for(&self) -> Option<&'static str> {
        let (floor, name) = match self.product {
            "Valkey" => ((7, 2, 0), "Valkey 7.2"),
            _ => ((6, 2, 0), "Redis 6.2"),
        };
        (self.number < floor).then_some(name)
    }
}

impl fmt::Display for NodeVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor, patch) = self.number;
        write!(f, "{} {major}.{minor}.{patch}", self.product)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> NodeVersion {
        NodeVersion::parse(text).unwrap()
    }

    #[test]
    fn the_floor_is_redis_6_2_and_valkey_7_2() {
        assert_eq!(
            parse("redis_version:6.0.16").too_old_for(),
            Some("Redis 6.2")
        );
        assert_eq!(parse("redis_version:6.2.0").too_old_for(), None);
        assert_eq!(
            parse("# Server\r\nredis_version:7.0.15\r\n").too_old_for(),
            None
        );
        let valkey = parse("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:9.0.1\r\n");
        assert_eq!(valkey.to_string(), "Valkey 9.0.1");
        assert_eq!(valkey.too_old_for(), None);
        let old = parse("redis_version:7.2.4\r\nvalkey_version:7.1.0\r\n");
        assert_eq!(old.too_old_for(), Some("Valkey 7.2"));
    }

    #[test]
    fn other_text_has_no_version() {
        assert_eq!(NodeVersion::parse(""), None);
        assert_eq!(NodeVersion::parse("version:7"), None);
    }
}
