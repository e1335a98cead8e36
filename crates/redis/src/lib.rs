//! Buckets in Redis or Valkey. Any number of instances share them and together admit exactly what the
//! policy allows, in one round trip.
//!
//! [`RedisBuckets`] is the store. A decision is one call of a script, which computes the new states; the
//! engine in this process computes the answers from the states before. Sets, bans, counts and the list of
//! instances are in the crate `tidegate-redis-shared`, the connection in `tidegate-redis-client`.
//!
//! | module | contents |
//! |---|---|
//! | `store` | the store and its options |
//! | `key`, `layout` | names of keys, and the form of their values for people and other systems |
//! | `slots` | the asks of a request by slot |
//! | `deny` | the deny cache: refusals without a call |
//! | `across_slots` | requests over several slots: reserve, then refund on refusal |
//! | `dispatch` | lanes: concurrent requests travel in one call |
//! | `any_op` | the arguments of a call, and the answers from its reply |
//! | `script`, `record` | the Lua scripts, and the packed value that they keep |
//!
//! # Example
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use tidegate_core::{Ask, Quota, Store};
//! use tidegate_redis::{Address, ConnectionSettings, RedisBuckets, RedisOptions, RedisTopology};
//!
//! let address = Address::new("127.0.0.1", 6379);
//! let settings = ConnectionSettings::new(RedisTopology::Standalone, vec![address]);
//! let store = RedisBuckets::connect(settings, RedisOptions::default()).await?;
//!
//! let quota = Quota::new(100, 60_000_000).build()?;
//! let reply = store.decide(&[Ask::take(b"api/per-client/ip:192.0.2.1", &quota, 1)]).await?;
//! assert!(reply.passed);
//! # Ok(())
//! # }
//! ```

// A new algorithm, operation or state is an error wherever it matters, and nowhere a guess.
#![cfg_attr(not(test), deny(clippy::wildcard_enum_match_arm))]

mod across_slots;
mod any_op;
mod clock;
mod deny;
mod dispatch;
mod failure;
mod key;
mod layout;
mod record;
mod request;
mod script;
mod slots;
mod stats;
mod store;

pub use failure::store_error;
pub use key::HashTag;
pub use layout::{KeyPiece, Layout, OpenLayout, OpenLimit, TokenFields};
pub use stats::{Counter, RedisStats};
pub use store::{RedisBuckets, RedisOptions};
pub use tidegate_redis_client::{
    Address, CallError, ConnectError, Connection, ConnectionSettings, Credentials, Password,
    RedisTopology, TlsSettings,
};
