//! Tidegate's memory store through its synchronous API: the only file here that uses it.
//!
//! Keys and quotas are prepared, as in an application. Hashing the key is part of the call, and so
//! is the complete result: remaining, wait and reset.

use std::hint::black_box;

use tidegate_core::{Ask, Quota};
use tidegate_memory::MemoryStore;

use crate::subject::Subject;
use crate::workload::{self, Keys};

/// One bucket, one decision.
struct One {
    store: MemoryStore,
    quota: Quota,
}

impl One {
    #[inline]
    fn ask<'a>(&'a self, keys: &'a Keys, at: usize) -> Ask<'a> {
        Ask::take(keys.names[at].as_bytes(), &self.quota, 1)
    }
}

impl Subject for One {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        black_box(self.store.decide_one(&self.ask(keys, at))).is_allowed()
    }

    fn meet(&self, keys: &Keys, at: usize) -> bool {
        is_alone(&self.store, &self.ask(keys, at))
    }
}

/// Takes one unit; returns true if it was the first: otherwise the key shares its bucket.
fn is_alone(store: &MemoryStore, ask: &Ask<'_>) -> bool {
    let outcome = store.decide_one(ask);
    outcome.is_allowed() && outcome.remaining + 1 == ask.quota.capacity()
}

/// One decision over three names, as when one request matches three limits with different keys.
struct ThreeNames {
    store: MemoryStore,
    quotas: [Quota; 3],
}

impl ThreeNames {
    #[inline]
    fn asks<'a>(&'a self, keys: &'a Keys, at: usize) -> [Ask<'a>; 3] {
        let [first, second, third] = &self.quotas;
        let [addresses, paths] = &keys.companions;
        [
            Ask::take(keys.names[at].as_bytes(), first, 1),
            Ask::take(addresses[at].as_bytes(), second, 1),
            Ask::take(paths[at].as_bytes(), third, 1),
        ]
    }
}

impl Subject for ThreeNames {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        black_box(self.store.decide_now(&self.asks(keys, at))).passed
    }

    fn meet(&self, keys: &Keys, at: usize) -> bool {
        let asks = self.asks(keys, at);
        asks.iter().all(|ask| is_alone(&self.store, ask))
    }
}

/// One decision over three bands under one name, as in `bands: [10/s, 40/10s, 90/min]`.
struct ThreeBands {
    store: MemoryStore,
    quotas: [Quota; 3],
}

impl ThreeBands {
    #[inline]
    fn asks<'a>(&'a self, keys: &'a Keys, at: usize) -> [Ask<'a>; 3] {
        let name = keys.names[at].as_bytes();
        self.quotas
            .each_ref()
            .map(|quota| Ask::take(name, quota, 1))
    }
}

impl Subject for ThreeBands {
    #[inline]
    fn decide(&self, keys: &Keys, at: usize) -> bool {
        black_box(self.store.decide_now(&self.asks(keys, at))).passed
    }

    fn meet(&self, keys: &Keys, at: usize) -> bool {
        let asks = self.asks(keys, at);
        asks.iter().all(|ask| is_alone(&self.store, ask))
    }
}

pub(crate) fn build_one(keys: usize, quota: workload::Quota) -> anyhow::Result<Box<dyn Subject>> {
    Ok(Box::new(One {
        store: store(keys),
        quota: band(quota, "only")?,
    }))
}

pub(crate) fn build_three_names(
    keys: usize,
    quota: workload::Quota,
) -> anyhow::Result<Box<dyn Subject>> {
    Ok(Box::new(ThreeNames {
        store: store(keys * 3),
        quotas: bands(quota)?,
    }))
}

pub(crate) fn build_three_bands(
    keys: usize,
    quota: workload::Quota,
) -> anyhow::Result<Box<dyn Subject>> {
    Ok(Box::new(ThreeBands {
        store: store(keys * 3),
        quotas: bands(quota)?,
    }))
}

fn store(buckets: usize) -> MemoryStore {
    MemoryStore::builder().max_keys(buckets.max(1_024)).build()
}

fn bands(quota: workload::Quota) -> anyhow::Result<[Quota; 3]> {
    Ok([
        band(quota, "first")?,
        band(quota, "second")?,
        band(quota, "third")?,
    ])
}

/// Returns a band; the label distinguishes bands under one name.
fn band(quota: workload::Quota, label: &str) -> anyhow::Result<Quota> {
    let period_us = u64::from(quota.period_s) * 1_000_000;
    Ok(Quota::new(quota.amount.into(), period_us)
        .burst(quota.burst.into())
        .label(label)
        .build()?)
}
