//! Settings of a connection: plain data.

use crate::address::Address;
use std::fmt;
use std::time::Duration;

/// The settings of a connection to Redis.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tidegate_redis_client::{Address, RedisTopology, ConnectionSettings};
///
/// let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![Address::new("127.0.0.1", 6379)])
///     .user("limiter")
///     .password("secret")
///     .timeout(Duration::from_millis(10));
/// assert!(!format!("{settings:?}").contains("secret"));
/// ```
#[derive(Clone, Debug)]
pub struct ConnectionSettings {
    /// The topology.
    pub mode: RedisTopology,
    /// Standalone: the server (the first is used). Sentinel: the sentinels. Cluster: seed nodes.
    pub addresses: Vec<Address>,
    /// TLS to every node, sentinels included; without it connections are plain.
    pub tls: Option<TlsSettings>,
    /// The ACL user; without it the password is that of the default user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<Password>,
    /// The sentinels' own credentials; without them they get those of the data nodes.
    pub sentinel: Option<Credentials>,
    /// The database number; 0 in a Cluster.
    pub database: u32,
    /// Connections to each node, used in turn. Each carries any number of calls; two let Redis work on
    /// one's while the answers of the other are read.
    pub connections: usize,
    /// The time limit of connecting to a node, including checks and the loading of scripts.
    pub connect_timeout: Duration,
    /// The deadline of a decision.
    pub timeout: Duration,
    /// The number of times that a call is sent again within the deadline if it was certainly not
    /// executed. With 0, a charge whose execution is unknown is not sent again either.
    pub retries: u32,
    /// The client name that `CLIENT LIST` shows.
    pub client_name: String,
}

impl ConnectionSettings {
    /// The defaults: no credentials, no TLS, database 0, two connections a node, 1 s to connect,
    /// 20 ms for a decision, one retry.
    pub fn new(mode: RedisTopology, addresses: Vec<Address>) -> Self {
        Self {
            mode,
            addresses,
            tls: None,
            user: None,
            password: None,
            sentinel: None,
            database: 0,
            connections: 2,
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_millis(20),
            retries: 1,
            client_name: "tidegate".to_owned(),
        }
    }

    /// Encrypts all connections.
    #[must_use]
    pub fn tls(mut self, tls: TlsSettings) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Sets the ACL user.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// Sets the password.
    #[must_use]
    pub fn password(mut self, password: impl Into<Password>) -> Self {
        self.password = Some(password.into());
        self
    }

    /// Sets the sentinels' credentials, where they differ from those of the data nodes.
    #[must_use]
    pub fn sentinel(mut self, credentials: Credentials) -> Self {
        self.sentinel = Some(credentials);
        self
    }

    /// Sets the database number.
    #[must_use]
    pub fn database(mut self, database: u32) -> Self {
        self.database = database;
        self
    }

    /// Sets the number of connections to each node; 0 counts as 1.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how long connecting may take.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the deadline of a decision.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Sets how often a call that was not executed is sent again.
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// Sets what `CLIENT LIST` shows.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Returns the credentials for data nodes.
    pub(crate) fn credentials(&self) -> Credentials {
        Credentials {
            user: self.user.clone(),
            password: self.password.clone(),
        }
    }

    /// Returns the credentials for sentinels.
    pub(crate) fn sentinel_credentials(&self) -> Credentials {
        self.sentinel.clone().unwrap_or_else(|| self.credentials())
    }
}

/// The topology of Redis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RedisTopology {
    /// One server.
    Standalone,
    /// One master, found through sentinels.
    Sentinel {
        /// The name of the master in the sentinels' configuration.
        master: String,
    },
    /// Redis Cluster.
    Cluster,
}

impl fmt::Display for RedisTopology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standalone => "standalone",
            Self::Sentinel { .. } => "sentinel",
            Self::Cluster => "cluster",
        })
    }
}

/// A user and a password.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Credentials {
    /// The ACL user; without it the default one.
    pub user: Option<String>,
    /// The password; without it there is no authentication.
    pub password: Option<Password>,
}

/// A secret that no output shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// A password.
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Returns the secret. Never log it.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Password {
    fn from(secret: &str) -> Self {
        Self::new(secret)
    }
}

impl From<String> for Password {
    fn from(secret: String) -> Self {
        Self::new(secret)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// Settings of TLS.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct TlsSettings {
    /// The authorities that sign the servers' certificates, PEM; without it the system's authorities.
    pub ca: Option<Vec<u8>>,
    /// The name in the servers' certificates and in SNI; without it the host of each address.
    pub server_name: Option<String>,
    /// Our certificate chain and its key, PEM, where servers ask for them.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl TlsSettings {
    /// TLS with the system's authorities and without a certificate of our own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Trusts these authorities (PEM) and no others.
    #[must_use]
    pub fn ca(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca = Some(pem.into());
        self
    }

    /// Expects this name in the certificate of every node and sentinel, instead of its host: for nodes that
    /// announce themselves by IP address.
    #[must_use]
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    /// Shows this certificate chain (PEM) and proves it with this key (PEM).
    #[must_use]
    pub fn identity(mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        self.identity = Some((chain.into(), key.into()));
        self
    }
}

impl fmt::Debug for TlsSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSettings")
            .field("ca", &self.ca.as_ref().map(|_| "given"))
            .field("server_name", &self.server_name)
            .field("identity", &self.identity.as_ref().map(|_| "***"))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_never_shown() {
        let settings = ConnectionSettings::new(RedisTopology::Cluster, vec![Address::new("a", 1)])
            .password("hunter2")
            .sentinel(Credentials {
                user: None,
                password: Some("hunter2".into()),
            })
            .tls(TlsSettings::new().identity("hunter2", "hunter2"));
        assert!(!format!("{settings:?} {settings:#?}").contains("hunter2"));
    }
}
