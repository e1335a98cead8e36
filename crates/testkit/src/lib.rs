//! Tools for Tidegate's own tests in addition to [`tidegate_store_laws`]: the [`vectors`], [`golden`]
//! files, and real servers.
//!
//! The vectors are decisions that must come out to the letter; if the model and a vector differ,
//! the model is wrong. The feature `redis` adds real servers: Redis, Valkey, etcd, and a proxy that
//! makes faults.
//!
//! This crate is never published.

pub use tidegate_store_laws::{cases, history, laws, model, shared_state, soak_cases, store_laws};

#[cfg(feature = "redis")]
pub mod etcd;
pub mod golden;
#[cfg(feature = "redis")]
pub mod redis;
pub mod vectors;
