use super::{AlgorithmModel, ModelQuota};
use std::collections::BTreeMap;

/// Permits: at most the amount is in use at any instant.
///
/// What a request takes is in use until it is refunded. What it acquires under an id is in use until its end,
/// or until it is released.
#[derive(Clone, Debug)]
pub struct PermitsModel {
    quota: ModelQuota,
    held: u64,
    /// Units and end of each id.
    timed: BTreeMap<u64, (u64, u64)>,
}

impl PermitsModel {
    /// Creates one in which nothing is in use.
    pub fn new(quota: ModelQuota) -> Self {
        Self {
            quota,
            held: 0,
            timed: BTreeMap::new(),
        }
    }

    /// Returns the units in use.
    pub fn used(&self, now_us: u64) -> u64 {
        let timed = self.timed.values().filter(|(_, end_us)| *end_us > now_us);
        self.held + timed.map(|(units, _)| units).sum::<u64>()
    }

    /// Returns the instant from which the units of an id are free, if they are in use.
    pub fn end_us(&self, now_us: u64, id: u64) -> Option<u64> {
        let (_, end_us) = self.timed.get(&id)?;
        (*end_us > now_us).then_some(*end_us)
    }

    /// Acquires `units` until `end_us` if they fit, and returns true if they do. An id that has units keeps them,
    /// until the later end.
    pub fn acquire(&mut self, now_us: u64, (id, units): (u64, u64), end_us: u64) -> bool {
        if self.renew(now_us, id, end_us) {
            return true;
        }
        let fits = self.used(now_us) + units <= self.quota.amount;
        if fits {
            self.timed.insert(id, (units, end_us));
        }
        fits
    }

    /// Moves the end of an id to `end_us` if that is later. Returns false if it has no units in use.
    pub fn renew(&mut self, now_us: u64, id: u64, end_us: u64) -> bool {
        let Some(old_us) = self.end_us(now_us, id) else {
            return false;
        };
        if let Some((_, end)) = self.timed.get_mut(&id) {
            *end = end_us.max(old_us);
        }
        true
    }

    /// Releases the units of an id. Returns false if it has none in use.
    pub fn release(&mut self, now_us: u64, id: u64) -> bool {
        let was_held = self.end_us(now_us, id).is_some();
        self.timed.remove(&id);
        was_held
    }

    /// Takes units without an end if they fit, and returns true if they do.
    pub fn take(&mut self, now_us: u64, units: u64) -> bool {
        let fits = self.used(now_us) + units <= self.quota.amount;
        if fits {
            self.held += units;
        }
        fits
    }

    /// Refunds units that were taken without an end.
    pub fn give_back(&mut self, units: u64) {
        self.held -= units;
    }

    /// Returns the instant from which `units` fit if nothing is refunded or released; `None` if only that helps.
    pub fn fits_at_us(&self, now_us: u64, units: u64) -> Option<u64> {
        let ends = self.timed.values().map(|(_, end_us)| *end_us);
        let mut instants: Vec<u64> = ends.filter(|end_us| *end_us > now_us).collect();
        instants.push(now_us);
        instants.sort_unstable();
        let fits = |at: &u64| self.used(*at) + units <= self.quota.amount;
        instants.into_iter().find(fits)
    }
}

/// Time alone refunds nothing: a cost that does not fit never will.
impl AlgorithmModel for PermitsModel {
    fn remaining(&self, now_us: u64) -> u64 {
        self.quota.amount.saturating_sub(self.used(now_us))
    }

    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        Some(self.fits_at_us(now_us, cost)? - now_us)
    }

    fn reset_us(&self, now_us: u64) -> u64 {
        let ends = self.timed.values().map(|(_, end_us)| *end_us);
        ends.max().map_or(0, |end_us| end_us.saturating_sub(now_us))
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        self.held += cost.min(self.quota.room_above(self.used(now_us)));
    }

    fn give_back(&mut self, _taken_at_us: u64, cost: u64) {
        self.held = self.held.saturating_sub(cost);
    }

    fn give_back_latest(&mut self, _now_us: u64, cost: u64) {
        self.held = self.held.saturating_sub(cost);
    }
}
