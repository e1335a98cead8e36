//! Which store: in this process, or Redis; plain data, with nothing left to parse.

use crate::config::secret::Secret;
use crate::group::SlotTag;
use std::fmt;
use std::fmt::Write as _;
use std::net::Ipv6Addr;
use std::time::Duration;

/// Which store. It prints as a URL without its password.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum StoreTarget {
    /// In this process.
    #[default]
    Memory,
    /// Redis or Valkey.
    Redis(Box<RedisSettings>),
}

/// How to reach Redis or Valkey, and what to keep there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// What stands at the addresses.
    pub mode: RedisMode,
    /// Where: one for a server that stands alone, else at least one. Each is there once.
    pub addresses: Vec<RedisAddress>,
    /// The number of the database; 0 in a Cluster.
    pub database: u32,
    /// Who asks; there is a password with it. The server's default user where absent.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Secret>,
    /// How it speaks TLS, if it does.
    pub tls: Option<RedisTls>,
    /// How many connections to each node, from 1 to 64.
    pub connections: u16,
    /// How long a connection may take to be there.
    pub connect_timeout: Duration,
    /// How often a call that is known not to have been executed is tried again, up to 5.
    pub retries: u8,
    /// Whether not to start without it.
    pub required_at_start: bool,
    /// What the names of keys begin with: visible ASCII without braces. Keys that have a template
    /// are named by that alone.
    pub prefix: String,
    /// Which part of a key is its hash tag.
    pub tag: SlotTag,
    /// In what form buckets are kept.
    pub layout: LayoutWord,
    /// How many refused keys to remember; 0 for none.
    pub deny_cache: usize,
}

/// How secrets, such as API keys, and long values stand in the names of keys (`store.key_names`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyNameStyle {
    /// As a hash.
    #[default]
    Hashed,
    /// As they are sent: only in the open layout, where another system knows its keys by these names.
    Literal,
}

/// What stands at the addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisMode {
    /// One server.
    Standalone,
    /// Sentinels, who know where the master is.
    Sentinel {
        /// The name under which they know it.
        master: String,
        /// Who asks the sentinels; there is a password with it.
        user: Option<String>,
        /// The password for the sentinels; the master's user and password hold for them too where
        /// it is absent.
        password: Option<Secret>,
    },
    /// Nodes of a Cluster, any of which knows the others.
    Cluster,
}

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisAddress {
    /// A name, or an address; IPv6 without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// The TLS of a store: what its PEM files hold, read together with the configuration. None of it is
/// ever printed: a file of certificates may well have the private key beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RedisTls {
    /// Who may have signed the server's certificate; the system's own where absent.
    pub ca: Option<Secret>,
    /// The certificate to show and its private key.
    pub identity: Option<RedisIdentity>,
}

/// A certificate and its private key, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisIdentity {
    /// The certificate chain.
    pub cert: Secret,
    /// Its private key.
    pub key: Secret,
}

/// In what form buckets are kept in Redis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LayoutWord {
    /// One short value for all bands of a subject.
    #[default]
    Packed,
    /// Values that people and other systems can read, one for each band, under the names that
    /// [`Limit::template`](crate::Limit::template) tells.
    Open,
}

// === impl StoreTarget ===

impl StoreTarget {
    /// Whether buckets live in this process.
    pub fn is_memory(&self) -> bool {
        *self == Self::Memory
    }

    /// How to reach Redis, if that is where buckets live.
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
    /// Whether both lead to the same keys, however long that may take and whoever asks.
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

/// A URL that says the same, with `***` for the password.
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

/// Everything but letters, digits and `-` `.` `_` as `%` and two digits.
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
