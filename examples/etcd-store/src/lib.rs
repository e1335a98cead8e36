//! Buckets in etcd: a store in two hundred lines, by [`tidegate_core::cas`].
//!
//! A bucket is a key below a prefix, its version the key's `mod_revision`. A read is one transaction of
//! ranges; a write is one transaction that compares the revisions of all keys that were read. Keys
//! expire with leases.
//!
//! # The clock
//!
//! etcd has no clock to read. Each instance brings its own, [`WallClock`], and the driver decides a
//! bucket at no instant before that of its last write, which its value carries. So instants of a bucket
//! never run backwards (law 3). The clocks of instances must agree within
//! [`CasStore::clock_skew_max`](tidegate_core::cas::CasStore::clock_skew_max): run NTP.

mod client;
mod clock;
mod leases;

pub use clock::WallClock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use client::Client;
use leases::Leases;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;
use tidegate_core::cas::{CompareAndSwap, KeyChange, KeySwap, Snapshot, VersionedValue};
use tidegate_core::{Clock, StoreError};

/// Keys of one etcd, below a prefix.
#[derive(Debug)]
pub struct Etcd<C> {
    client: Client,
    prefix: String,
    clock: C,
    leases: Leases,
}

impl<C: Clock> Etcd<C> {
    /// Creates a store for the keys below `prefix` in the etcd at `address`, which is `HOST:PORT`.
    /// Connects on the first use.
    pub fn new(address: &str, prefix: &str, clock: C) -> Self {
        Self {
            client: Client::new(address),
            prefix: prefix.to_owned(),
            clock,
            leases: Leases::default(),
        }
    }

    /// Sets the longest that a call to etcd may take. Default: 1 s.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.client.timeout = timeout;
        self
    }

    fn key(&self, key: &[u8]) -> String {
        STANDARD.encode([self.prefix.as_bytes(), key].concat())
    }
}

impl<C: Clock + Debug> CompareAndSwap for Etcd<C> {
    /// The revision of etcd at which the key was written last; 0 if it does not exist.
    type Version = u64;

    async fn read(&self, keys: &[Vec<u8>]) -> Result<Snapshot<u64>, StoreError> {
        let range = |key: &Vec<u8>| json!({ "request_range": { "key": self.key(key) } });
        let ranges: Vec<Value> = keys.iter().map(range).collect();
        let read = self
            .client
            .call("kv/txn", &json!({ "success": ranges }))
            .await?;
        let ranges = read.get("responses").and_then(Value::as_array);
        let values = ranges.into_iter().flatten().map(|range| {
            match range.pointer("/response_range/kvs/0") {
                Some(entry) => Some(VersionedValue {
                    version: entry.get("mod_revision")?.as_str()?.parse().ok()?,
                    value: Some(STANDARD.decode(entry.get("value")?.as_str()?).ok()?),
                }),
                None => Some(VersionedValue {
                    version: 0,
                    value: None,
                }),
            }
        });
        let values: Option<Vec<_>> = values.collect();
        Ok(Snapshot {
            values: values.ok_or_else(|| StoreError::permanent("etcd's answer has no form"))?,
            at: self.clock.now(),
        })
    }

    async fn swap(&self, swaps: &[KeySwap<'_, u64>]) -> Result<bool, StoreError> {
        let longest = swaps.iter().filter_map(|swap| match swap.change {
            KeyChange::Put { keep_for, .. } => Some(keep_for),
            _ => None,
        });
        // One lease for all of them: some keys are kept for longer than they need.
        let lease = match longest.max() {
            Some(keep_for) => self.leases.at_least(&self.client, keep_for).await?,
            None => String::new(),
        };
        let (mut compare, mut success) = (Vec::new(), Vec::new());
        for swap in swaps {
            let (key, revision) = (self.key(swap.key), swap.expected.to_string());
            compare.push(json!({
                "key": key, "target": "MOD", "result": "EQUAL", "mod_revision": revision,
            }));
            success.push(match &swap.change {
                KeyChange::Keep => continue,
                KeyChange::Delete => json!({ "request_delete_range": { "key": key } }),
                KeyChange::Put { value, .. } => json!({
                    "request_put": { "key": key, "value": STANDARD.encode(value), "lease": lease },
                }),
            });
        }
        let swapped = json!({ "compare": compare, "success": success });
        let swapped = self.client.call("kv/txn", &swapped).await;
        if swapped.is_err() {
            // It may know the lease no longer: its data may be gone.
            self.leases.forget();
        }
        Ok(swapped?.get("succeeded") == Some(&Value::Bool(true)))
    }

    async fn pause(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }
}
