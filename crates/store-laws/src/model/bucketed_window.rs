use std::collections::BTreeMap;
use std::iter;

use super::{AlgorithmModel, ModelQuota};

/// A sliding window counted by parts: `parts` sub-windows to a period, each of the same length in
/// whole microseconds, rounded up, the first starting at the epoch.
///
/// Every part that overlaps the window `(now - period, now]` counts, the oldest one whole: at most
/// `parts + 1` of them. A cost passes if their count with it is at most the amount. So no window of
/// one period ever holds more, and a charge returns at most one part late.
#[derive(Clone, Debug)]
pub(super) struct BucketedWindowModel {
    quota: ModelQuota,
    part_us: u64,
    counts: BTreeMap<u64, u64>,
}

impl BucketedWindowModel {
    pub(super) fn new(quota: ModelQuota, parts: u64) -> Self {
        Self {
            quota,
            part_us: quota.period_us.div_ceil(parts),
            counts: BTreeMap::new(),
        }
    }

    fn part(&self, at_us: u64) -> u64 {
        at_us / self.part_us
    }

    /// Returns the first instant whose window a part does not overlap.
    fn leaves_at_us(&self, part: u64) -> u64 {
        (part + 1) * self.part_us + self.quota.period_us
    }

    /// Returns the parts that count at `now_us` and hold something, oldest first.
    fn counting(&self, now_us: u64) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.counts
            .iter()
            .map(|(part, count)| (*part, *count))
            .filter(move |(part, count)| *count > 0 && now_us < self.leaves_at_us(*part))
    }

    fn count(&self, now_us: u64) -> u64 {
        self.counting(now_us).map(|(_, count)| count).sum()
    }
}

impl AlgorithmModel for BucketedWindowModel {
    fn remaining(&self, now_us: u64) -> u64 {
        self.quota.amount.saturating_sub(self.count(now_us))
    }

    fn wait_us(&self, now_us: u64, cost: u64) -> Option<u64> {
        let leaving_us = self
            .counting(now_us)
            .map(|(part, _)| self.leaves_at_us(part));
        iter::once(now_us)
            .chain(leaving_us)
            .find(|then_us| cost <= self.remaining(*then_us))
            .map(|then_us| then_us - now_us)
    }

    fn reset_us(&self, now_us: u64) -> u64 {
        self.counting(now_us)
            .next_back()
            .map_or(0, |(newest, _)| self.leaves_at_us(newest) - now_us)
    }

    fn charge(&mut self, now_us: u64, cost: u64) {
        let room = self.quota.room_above(self.count(now_us));
        *self.counts.entry(self.part(now_us)).or_insert(0) += cost.min(room);
    }

    fn give_back(&mut self, taken_at_us: u64, cost: u64) {
        if let Some(count) = self.counts.get_mut(&self.part(taken_at_us)) {
            *count = count.saturating_sub(cost);
        }
    }
    fn give_back_latest(&mut self, now_us: u64, cost: u64) {
        let mut left = cost;
        let newest_first: Vec<(u64, u64)> = self.counting(now_us).rev().collect();
        for (part, count) in newest_first {
            let goes = count.min(left);
            left -= goes;
            self.counts.insert(part, count - goes);
        }
    }
}
