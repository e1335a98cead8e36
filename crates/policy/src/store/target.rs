//! The store, in memory or Redis, as plain data that needs no further parsing.

use crate::text::Secret;
use crate::tls::ClientTls;
use std::fmt;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::time::Duration;

/// The store. Its `Display` is a URL without its password.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum StoreTarget {
    /// In the memory of this process.
    #[default]
    Memory,
    /// Redis or Valkey.
    Redis(Box<RedisSettings>),
}

/// The connection settings of Redis or Valkey, and the layout of its keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// The topology.
    pub mode: RedisMode,
    /// The addresses, without duplicates: exactly one for a standalone server, otherwise at least one.
    pub addresses: Vec<RedisAddress>,
    /// The number of the database; 0 in a Cluster.
    pub database: u32,
    /// The user, always with a password. Default: the server's default user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// The TLS settings, if the connection uses TLS.
    pub tls: Option<ClientTls>,
    /// The number of connections to each node, from 1 to 64.
    pub connections: u16,
    /// The longest time to establish a connection.
    pub connect_timeout: Duration,
    /// The number of retries of a call that is known not to have been executed, up to 5.
    pub retries: u8,
    /// True if the server must not start without the store.
    pub required_at_start: bool,
    /// The prefix of key names: visible ASCII without braces. It does not apply to keys that a template
    /// names.
    pub prefix: String,
    /// The part of a key that is its hash tag.
    pub tag: SlotTag,
    /// The storage format of buckets.
    pub layout: LayoutWord,
    /// The maximum number of entries in the deny cache; 0 disables it.
    pub deny_cache: usize,
}

/// The form of secrets, such as API keys, and of long values in the names of keys (`store.redis.key_names`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyNameStyle {
    /// Hashed.
    #[default]
    Hashed,
    /// Unchanged. Only in the open layout, where another system uses these names for its keys.
    Literal,
}

/// The topology of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisMode {
    /// A single server.
    Standalone,
    /// Sentinels, which know the address of the master.
    Sentinel {
        /// The name of the master.
        master: String,
        /// The user for the sentinels, always with a password.
        user: Option<String>,
        /// The password for the sentinels. Default: the master's user and password.
        password: Option<Secret>,
    },
    /// Nodes of a Cluster. Each of them knows the others.
    Cluster,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress {
    /// A host name or an address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The storage format of buckets in Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayoutWord {
    /// A short value for all bands of a subject.
    #[default]
    Packed,
    /// Values that people and other systems can read, one for each band.
    /// [`Limit::template`](crate::Limit::template) names their keys.
    Open,
}

// === impl StoreTarget ===

impl StoreTarget {
    /// Returns true if the store is in memory.
    pub fn is_memory(&self) -> bool {
        *self == Self::Memory
    }

    /// Returns the settings of Redis, if it is the store.
    pub fn redis(&self) -> Option<&RedisSettings> {
        match self {
            Self::Memory => None,
            Self::Redis(redis) => Some(redis),
        }
    }
}

impl fmt::Display for StoreTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redis(redis) => redis.fmt(f),
        }
    }
}

impl fmt::Debug for StoreTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redis(redis) => fmt::Debug::fmt(redis, f),
        }
    }
}

// === impl RedisSettings ===

impl RedisSettings {
    /// Returns true if both lead to the same keys, regardless of timeouts and credentials.
    pub fn is_same_place(&self, other: &Self) -> bool {
        let is_same_mode = match (&self.mode, &other.mode) {
            (
                RedisMode::Sentinel { master: one, .. },
                RedisMode::Sentinel { master: other, .. },
            ) => one == other,
            (one, other) => one == other,
        };
        is_same_mode && self.addresses == other.addresses && self.database == other.database
    }
}

/// Formats the equivalent URL, with `***` for the password.
impl fmt::Display for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.tls.is_some() {
            "rediss"
        } else {
            "redis"
        })?;
        if let RedisMode::Sentinel { .. } = self.mode {
            f.write_str("+sentinel")?;
        }
        f.write_str("://")?;
        if let Some(user) = &self.user {
            write_escaped(f, user)?;
        }
        if self.password.is_some() {
            f.write_str(":***")?;
        }
        if self.user.is_some() || self.password.is_some() {
            f.write_char('@')?;
        }
        for (i, address) in self.addresses.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{address}")?;
        }
        if let RedisMode::Sentinel { master, .. } = &self.mode {
            write!(f, "/{master}")?;
        }
        match self.database {
            0 => Ok(()),
            database => write!(f, "/{database}"),
        }
    }
}

impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// Writes `text` with all bytes percent-encoded except letters, digits and `-` `.` `_`.
fn write_escaped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_') {
            f.write_char(char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

/// The part of a key that selects its hash slot in a Cluster (`store.redis.tag`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SlotTag {
    /// The subject: keys spread over all nodes.
    #[default]
    Subject,
    /// The policy: all its keys live in one slot.
    Policy,
}
