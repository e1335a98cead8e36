//! The store of the buckets, as plain data.
//!
//! | module | contents |
//! |---|---|
//! | this one | the settings of a store |
//! | `target` | the store itself: memory, or Redis and how to reach it |

mod target;

pub use target::{
    KeyNameStyle, LayoutWord, RedisAddress, RedisMode, RedisSettings, SlotTag, StoreTarget,
};

use crate::text::Secret;
use std::path::PathBuf;
use std::time::Duration;

/// The store of the buckets, and the behavior without it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreSettings {
    /// The store itself.
    pub target: StoreTarget,
    /// The longest wait for a response of the store.
    pub timeout: Duration,
    /// The default `on_failure` of limits: their behavior if the store does not respond in time.
    pub on_failure: OnFailure,
    /// The share of a policy that this instance may grant while the store is unavailable.
    pub local_share: LocalShare,
    /// The secret that keys the hashes of identities; it must be the same on all instances.
    pub key_secret: Option<Secret>,
    /// The form of secrets in the names of keys, if it is set; see
    /// `Config::has_literal_keys`.
    pub key_names: Option<KeyNameStyle>,
    /// The maximum number of buckets of a store in memory.
    pub max_keys: u64,
    /// The snapshot of a store in memory, if it is to survive a restart.
    pub snapshot: Option<SnapshotSettings>,
}

/// The snapshot of a store in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotSettings {
    /// The path of the file.
    pub file: PathBuf,
    /// The longest time of charges that a crash may lose.
    pub every: Duration,
}

impl SnapshotSettings {
    /// The default of `every`.
    pub const EVERY: Duration = Duration::from_secs(10);

    /// Returns settings for `file`, with the default interval.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        Self {
            file: file.into(),
            every: Self::EVERY,
        }
    }
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            target: StoreTarget::Memory,
            timeout: Duration::from_millis(20),
            on_failure: OnFailure::Local,
            local_share: LocalShare::default(),
            key_secret: None,
            key_names: None,
            max_keys: 1_000_000,
            snapshot: None,
        }
    }
}

impl StoreSettings {
    /// Returns the key that identities are hashed with, derived from `key_secret`; `None` without one.
    /// It is the same on every instance with the same secret.
    pub fn hash_key(&self) -> Option<[u8; 32]> {
        let secret = self.key_secret.as_ref()?;
        let secret = secret.expose().as_bytes();
        Some(blake3::derive_key("tidegate 2025 store.key_secret", secret))
    }
}

/// The action when the store does not respond in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// Decide in memory, with a share of the policy's amounts.
    #[default]
    Local,
    /// Allow the request.
    Allow,
    /// Refuse the request.
    Deny,
    /// Fail with an error.
    Error,
}

/// The share of a policy that one instance may grant while the store is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalShare {
    /// A share in millionths, from 1 to 1 000 000: 500 000 is a half.
    Millionths(u32),
    /// One divided by the number of instances last known to be alive.
    Auto,
}

impl Default for LocalShare {
    fn default() -> Self {
        Self::Millionths(500_000)
    }
}
