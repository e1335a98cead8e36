//! The counts of each limit.

use super::distinct::DistinctCounter;
use super::frequent::FrequentKeys;
use foldhash::quality::FixedState;
use std::hash::BuildHasher;
use tidegate::LimitMode;
use tidegate_policy::guard::GuardEffect;
use tidegate_policy::{Guard, Limit};

/// The seed for the hash of keys. It is fixed, so that the same trace always gives the same summary; the
/// author of a trace that is slow because of collisions only wastes their own time.
const SEED: u64 = 0x7469_6465_6761_7465;

/// Stands for requests that were refused because they had no identity. No key has this form.
const NO_IDENTITY: &str = "(no identity)";

/// The counts of each limit, and of the keys that were refused most.
#[derive(Debug)]
pub(super) struct Rows {
    pub(super) all: Vec<LimitRow>,
    pub(super) refused: FrequentKeys,
    hasher: FixedState,
}

/// The counts of one limit.
#[derive(Debug)]
pub(super) struct LimitRow {
    pub(super) policy: Box<str>,
    pub(super) limit: Box<str>,
    pub(super) is_shadow: bool,
    pub(super) counts: RowCounts,
    pub(super) keys: DistinctCounter,
}

/// The counts of one guard.
#[derive(Debug)]
pub(super) struct GuardRow {
    pub(super) name: Box<str>,
    pub(super) effect: GuardEffect,
    pub(super) is_shadow: bool,
    /// The number of requests that it refused or exempted, or would have in shadow mode.
    pub(super) count: u64,
}

/// The number of requests, and of refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RowCounts {
    pub(super) asked: u64,
    pub(super) refused: u64,
}

// === impl Rows ===

impl Default for Rows {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            refused: FrequentKeys::default(),
            hasher: FixedState::with_seed(SEED),
        }
    }
}

impl Rows {
    /// Adds a row for a limit of `policy`, and returns its index.
    pub(super) fn add(&mut self, policy: &str, limit: &Limit) -> usize {
        let row = self.all.len();
        self.all.push(LimitRow::new(policy, limit));
        row
    }

    /// Counts a limit's result for one request. The key is empty if an identity was missing.
    #[inline]
    pub(super) fn count(&mut self, row: usize, is_allowed: bool, key: &str) {
        let Some(counted) = self.all.get_mut(row) else {
            return;
        };
        counted.counts.add(is_allowed);
        let shown = if key.is_empty() { NO_IDENTITY } else { key };
        let hash = self.hasher.hash_one(shown);
        if !key.is_empty() {
            counted.keys.insert(hash);
        }
        if !is_allowed {
            self.refused.add(row, shown, hash);
        }
    }
}

// === impl LimitRow ===

impl LimitRow {
    fn new(policy: &str, limit: &Limit) -> Self {
        Self {
            policy: policy.into(),
            limit: limit.name.as_str().into(),
            is_shadow: limit.mode == LimitMode::Shadow,
            counts: RowCounts::default(),
            keys: DistinctCounter::default(),
        }
    }
}

// === impl GuardRow ===

impl GuardRow {
    pub(super) fn new(guard: &Guard) -> Self {
        Self {
            name: guard.name.as_str().into(),
            effect: guard.effect,
            is_shadow: guard.mode == LimitMode::Shadow,
            count: 0,
        }
    }
}

// === impl RowCounts ===

impl RowCounts {
    #[inline]
    pub(super) fn add(&mut self, is_allowed: bool) {
        self.asked += 1;
        self.refused += u64::from(!is_allowed);
    }

    pub(super) fn allowed(self) -> u64 {
        self.asked.saturating_sub(self.refused)
    }
}
