//! The reply to `INFO`.

/// The text of `INFO`: `name:value` in lines.
#[derive(Clone, Debug, Default)]
pub struct Info(String);

impl Info {
    /// Wraps the reply to `INFO`.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&str> {
        let mut lines = self.0.lines();
        lines.find_map(|line| line.trim().strip_prefix(name)?.strip_prefix(':'))
    }

    /// Returns the number of a field.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.get(name)?.parse().ok()
    }

    /// Returns the product and its version. Valkey calls itself Redis 7.2.4, and reports its own version
    /// separately.
    pub fn version(&self) -> Option<ServerVersion> {
        let (product, text) = match self.get("valkey_version") {
            Some(text) => ("Valkey", text),
            None => ("Redis", self.get("redis_version")?),
        };
        let mut parts = text.split('.').map(|part| part.parse().unwrap_or(0));
        Some(ServerVersion {
            product,
            text: text.to_owned(),
            number: (parts.next().unwrap_or(0), parts.next().unwrap_or(0)),
        })
    }
}

/// A server and its version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVersion {
    pub(crate) product: &'static str,
    text: String,
    number: (u32, u32),
}

impl ServerVersion {
    /// Returns the oldest supported version, if this one is older.
    pub fn too_old_for(&self) -> Option<&'static str> {
        let (floor, name) = match self.product {
            "Valkey" => ((7, 2), "Valkey 7.2"),
            _ => ((6, 2), "Redis 6.2"),
        };
        (self.number < floor).then_some(name)
    }

    /// Returns true if `CLIENT SETINFO` is known: otherwise an ACL rule that names it is rejected.
    pub fn has_setinfo(&self) -> bool {
        self.number >= (7, 2)
    }
}

impl std::fmt::Display for ServerVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.product, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::Info;

    #[test]
    fn fields_are_found_by_their_full_name() {
        let info = Info::new("# Memory\r\nmaxmemory:10\r\nmaxmemory_policy:noeviction\r\n");
        assert_eq!(info.number("maxmemory"), Some(10));
        assert_eq!(info.get("maxmemory_policy"), Some("noeviction"));
        assert_eq!(info.get("memory"), None);
    }

    #[test]
    fn versions_are_compared_with_the_minimum() {
        for (text, shown, floor) in [
            ("redis_version:6.0.16", "Redis 6.0.16", Some("Redis 6.2")),
            ("redis_version:6.2.0", "Redis 6.2.0", None),
            ("redis_version:8.2.1", "Redis 8.2.1", None),
            (
                "redis_version:7.2.4\r\nvalkey_version:9.0.1",
                "Valkey 9.0.1",
                None,
            ),
            (
                "redis_version:7.2.4\nvalkey_version:7.1.9",
                "Valkey 7.1.9",
                Some("Valkey 7.2"),
            ),
        ] {
            let version = Info::new(text).version().unwrap();
            assert_eq!(version.to_string(), shown);
            assert_eq!(version.too_old_for(), floor, "{shown}");
        }
        assert_eq!(Info::new("").version(), None);
    }
}
