//! A driver for stores that can only compare and swap.
//!
//! Many databases cannot run Tidegate's arithmetic. They read keys, and write keys if no other client has
//! written them since (etcd, Consul, any SQL database). Implement [`CompareAndSwap`] for such a database,
//! and [`CasStore`] makes a [`Store`](crate::Store) of it that keeps all laws.
//!
//! A decision takes two round trips if it changes a bucket, and one if it does not. Of several callers that
//! change one bucket at the same time one succeeds, and the others try again.

mod codec;
mod store;

pub use store::CasStore;

use crate::{StoreError, Timestamp};
use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

/// Keys and values with versions, of which several can be written at once if none has changed.
///
/// An implementation need not bound the number of keys in one call: a request has one for each
/// of its bands. It returns [`StoreError`] whenever it does not know the result, and never a guess. It
/// must not retry a [`swap`](Self::swap) whose result it does not know.
pub trait CompareAndSwap: Debug + Send + Sync {
    /// Version of a key: no two writes of a key have the same. A key that does not exist has one as well.
    type Version: Send + Sync;

    /// Reads these keys, and then the time.
    ///
    /// The values must be those of one moment, and the latest that any instance had written by then (a
    /// linearizable read).
    fn read(
        &self,
        keys: &[Vec<u8>],
    ) -> impl Future<Output = Result<Snapshot<Self::Version>, StoreError>> + Send;

    /// Makes all changes in one transaction if every key, those to [keep](KeyChange::Keep) included,
    /// still has the expected version. Returns false, having changed nothing, if one has not.
    fn swap(
        &self,
        swaps: &[KeySwap<'_, Self::Version>],
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Waits before another attempt, by the timer of the runtime in use.
    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Result of [`CompareAndSwap::read`].
#[derive(Clone, Debug)]
pub struct Snapshot<V> {
    /// The store's time if it has a clock, otherwise that of this instance. Read after the values.
    pub at: Timestamp,
    /// A value for each key, in order.
    pub values: Vec<VersionedValue<V>>,
}

/// The value of a key, or its absence.
#[derive(Clone, Debug)]
pub struct VersionedValue<V> {
    /// The version of the key.
    pub version: V,
    /// The value; `None` if the key does not exist or has expired.
    pub value: Option<Vec<u8>>,
}

/// One key of a transaction.
#[derive(Clone, Debug)]
pub struct KeySwap<'a, V> {
    /// The key.
    pub key: &'a [u8],
    /// The version that it must still have.
    pub expected: &'a V,
    /// The change to make.
    pub change: KeyChange,
}

/// A change to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyChange {
    /// Leaves the key as it is: only its version is compared.
    Keep,
    /// Writes the key.
    Put {
        /// The value.
        value: Vec<u8>,
        /// The least time that the value must be readable. The store removes it some time after that.
        keep_for: Duration,
    },
    /// Removes the key.
    Delete,
}
