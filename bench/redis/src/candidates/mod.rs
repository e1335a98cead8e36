//! Candidates: Tidegate's store, plain scripts under `redis-benchmark`, and the peers.

pub(crate) mod bare;
#[cfg(feature = "limitador")]
pub(crate) mod limitador;
pub(crate) mod plain;
pub(crate) mod tidegate;

pub(crate) use bare::BareClient;
#[cfg(feature = "limitador")]
pub(crate) use limitador::Limitador;
pub(crate) use plain::Plain;
pub(crate) use tidegate::Tidegate;
