//! What Tidegate's own tests need besides [`tidegate_store_laws`]: the [`vectors`], and real servers.
//!
//! The vectors are decisions that must come out to the letter; where the model and a vector differ, the
//! model is wrong. The feature `redis` adds real servers: Redis, Valkey, etcd, and a proxy that makes
//! faults.
//!
//! This crate is never published.

pub use tidegate_store_laws::{cases, history, laws, model, shared_state, store_laws};

#[cfg(feature = "redis")]
pub mod etcd;
#[cfg(feature = "redis")]
pub mod redis;
pub mod vectors;
