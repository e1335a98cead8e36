//! State that instances share in Redis in addition to buckets.
//!
//! [`RedisSharedState`] is core's [`SharedState`](tidegate_core::SharedState) in Redis. Its parts can also
//! be used one by one, over a [`Connection`].
//!
//! | module | contents |
//! |---|---|
//! | `state` | the shared state, as the limiter uses it |
//! | `sets` | sets that other systems write and we read |
//! | `bans` | a set some of whose members leave at a time |
//! | `address_counts` | counts by address, per period and in total |
//! | `documents` | a hash of documents with a version |
//! | `heartbeat` | the instances that share a store |
//! | `secret` | a secret that all instances have |
//! | `foreign_keys` | keys that other systems may have filled with something else |
//! | `same_slot` | names of keys in the slot of another key |

mod address_counts;
mod bans;
mod documents;
mod failure;
mod foreign_keys;
mod heartbeat;
mod same_slot;
mod secret;
mod sets;
mod state;

pub use address_counts::{
    BatchPlacement, Census, CensusFigures, CensusLimits, CensusMap, CensusNames, ClosingToken,
    CountBatch, MapPlacement, OTHER, PeriodClose,
};
pub use bans::Bans;
pub use documents::{RedisDocuments, WriteOutcome};
pub use heartbeat::Heartbeat;
pub use same_slot::key_in_same_slot;
pub use sets::{LoadError, RedisSets};
pub use state::RedisSharedState;
pub use tidegate_core::shared_state::{Instance, InstanceConfig, Roll};
pub use tidegate_redis_client::Connection;
