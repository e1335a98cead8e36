//! What is asked of each key of a call, and how the script is told.

use crate::request::Key;
use crate::script::record_id;
use foldhash::quality::RandomState;
use hashbrown::HashTable;
use smallvec::SmallVec;
use std::hash::BuildHasher;
use tidegate_core::Quota;

/// The keys of one call, each once, with what is asked of it in order.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    keys: Vec<Entry>,
    /// From a key to its place in `keys`.
    places: HashTable<usize>,
    hasher: RandomState,
    /// Runs of all keys together.
    runs: usize,
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) quota: Quota,
    /// Equal costs in a row.
    runs: SmallVec<[Run; 1]>,
    /// Who asked, by the caller's numbers, and for how much; in order.
    pub(crate) askers: SmallVec<[(usize, u64); 1]>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    cost: u64,
    count: u64,
}

/// More runs than this on one key do not fit into a group's header.
const RUNS_MAX: usize = u16::MAX as usize;

impl Entries {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// How many runs of equal costs there are, over all keys.
    pub(crate) fn runs(&self) -> usize {
        self.runs
    }

    /// In the order in which the keys are sent, once [`encode`](Self::encode) has been called.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.keys.iter()
    }

    /// Whether anything is asked of `key`.
    pub(crate) fn has(&self, key: &Key) -> bool {
        let hash = self.hasher.hash_one(key.as_slice());
        let is_it = |at: &usize| self.keys.get(*at).is_some_and(|it| it.key == *key);
        self.places.find(hash, is_it).is_some()
    }

    /// Adds that `asker` takes `cost` from `key`. Refuses, with `false`, what this call cannot
    /// express: the same key under another quota, which happens while a policy changes.
    pub(crate) fn add(&mut self, key: &Key, quota: &Quota, cost: u64, asker: usize) -> bool {
        let hash = self.hasher.hash_one(key.as_slice());
        let entries = &mut self.keys;
        let found = self
            .places
            .find(hash, |at| entries.get(*at).is_some_and(|it| it.key == *key));
        if let Some(entry) = found.and_then(|at| entries.get_mut(*at)) {
            let before = entry.runs.len();
            let is_added = entry.add(quota, cost, asker);
            self.runs = self
                .runs
                .saturating_add(entry.runs.len().saturating_sub(before));
            return is_added;
        }
        self.runs = self.runs.saturating_add(1);
        let place = entries.len();
        entries.push(Entry {
            key: key.clone(),
            quota: *quota,
            runs: SmallVec::from_buf([Run { cost, count: 1 }]),
            askers: SmallVec::from_buf([(asker, cost)]),
        });
        let hasher = &self.hasher;
        self.places.insert_unique(hash, place, |at| {
            entries
                .get(*at)
                .map_or(0, |it| hasher.hash_one(it.key.as_slice()))
        });
        true
    }

    /// The script's program. Brings keys of which the same is asked together, so that it is said
    /// once.
    pub(crate) fn encode(&mut self) -> Vec<u8> {
        // Nearly always everything is one group already; the sort is stable and finds that out.
        self.keys.sort_by_key(Entry::shape);
        self.places.clear();
        let mut program = Vec::with_capacity(64);
        let mut entries = self.keys.as_slice();
        while let Some(first) = entries.first() {
            let same = entries.iter().take_while(|it| it.asks_the_same(first));
            let keys = same.count().clamp(1, usize::from(u16::MAX));
            first.encode(keys, &mut program);
            entries = entries.get(keys..).unwrap_or_default();
        }
        program
    }
}

impl Entry {
    fn add(&mut self, quota: &Quota, cost: u64, asker: usize) -> bool {
        if self.quota != *quota {
            return false;
        }
        let is_full = self.runs.len() >= RUNS_MAX;
        match self.runs.last_mut() {
            Some(run) if run.cost == cost => run.count = run.count.saturating_add(1),
            _ if is_full => return false,
            _ => self.runs.push(Run { cost, count: 1 }),
        }
        self.askers.push((asker, cost));
        true
    }

    /// What keys are sorted by; the same for those of which the same is asked.
    fn shape(&self) -> (u64, u64, usize, u64, u64) {
        let (cost, count) = self
            .runs
            .first()
            .map_or((0, 0), |run| (run.cost, run.count));
        let id = self.quota.id().as_u64();
        (id, self.quota.capacity(), self.runs.len(), cost, count)
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.quota == other.quota && self.runs == other.runs
    }

    fn encode(&self, keys: usize, program: &mut Vec<u8>) {
        let (drain, price) = self.quota.drain_and_price();
        let brim = self.quota.capacity().saturating_mul(price);
        let floor = brim.saturating_add(self.quota.overdraft().saturating_mul(price));
        let ahead = (floor / drain.max(1)).saturating_add(1);
        for number in [record_id(&self.quota), drain, price, brim, ahead] {
            push(program, number);
        }
        for count in [keys, self.runs.len()] {
            program.extend_from_slice(&u16::try_from(count).unwrap_or(u16::MAX).to_le_bytes());
        }
        for run in &self.runs {
            push(program, run.cost);
            push(program, run.count);
        }
    }
}

/// Numbers travel as doubles, which Lua counts in. All of them are below 2^53.
fn push(program: &mut Vec<u8>, number: u64) {
    #[expect(
        clippy::cast_precision_loss,
        reason = "below 2^53, as the quota was built to"
    )]
    let number = number as f64;
    program.extend_from_slice(&number.to_le_bytes());
}
